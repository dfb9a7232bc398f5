"""The run's state machine: (event, now) -> effects. Pure: no clock, randomness, disk, network or threads.

Rules: accepted + returned + open = ordered in every round; a round ends when nobody's order is open;
what boards say is judged in `hearing`, what the next shares are in `allocation`.
"""

from msgspec import structs

from coordinator import allocation, closing, hearing, orders, records, wishes
from coordinator import events as ev
from coordinator.assignments import Assignment, Status, deadline
from coordinator.controller import Allocation, Weights
from coordinator.fleet import Fleet, Wanted
from coordinator.run import RunState
from edged.messages import Abort, Accepted, FleetState
from edged.topics import order_id

STRICT_SECONDS = 10.0
"""How long a strict run waits for the boards it names before it gives up."""
SETTLE_SECONDS = 2.0
"""A run whose boards are not named starts once no further one has appeared for so long."""


class Rounds:
    """One run over a fleet of boards. `handle` is the only way in, its effects the only way out."""

    def __init__(self, state: RunState, fleet: Fleet, host: str = "") -> None:
        self.state, self.fleet, self.host = state, fleet, host
        self.own_link = True
        self._frozen_since: float | None = None
        self._effects: list[ev.Effect] = []
        self.afterwards: list[ev.Effect] = []
        """Effects that come after the next orders, such as an evaluation."""

    def handle(self, event: ev.Event, now: float) -> list[ev.Effect]:
        """What is to be done about the event, in this order."""
        self._effects, self.afterwards = [], []
        match event:
            case ev.Born():
                hearing.born(self, event.birth, now)
            case ev.Heard():
                hearing.heard(self, event.state, now)
            case ev.Reported():
                hearing.reported(self, event.report, now)
            case ev.Woken():
                self._wake(now)
            case ev.OwnLink():
                self.own_link = event.up
            case ev.Weigh() | ev.Choose() | ev.Hold() | ev.Halt() | ev.Admission():
                wishes.obey(self, event, now)
            case ev.Restored():
                self._restore(event, now)
            case ev.Folded() | ev.FoldFailed():
                closing.merged(self, event, now)
            case ev.Metered() | ev.Arriving() | ev.Stored():
                self._uploading(event, now)
            case ev.Prepared():
                self.state.opened_seconds = now
                self.emit(ev.Save(), ev.Announce())
        if self.state.phase == "gathering":
            self._gather(now)
        self._stand_still(now)
        self.state.clock = now
        return self._effects + self.afterwards

    def emit(self, *effects: ev.Effect) -> None:
        """Add effects to the answer."""
        self._effects.extend(effects)

    def note(self, board: str, counter: str, text: str) -> None:
        """Count something odd and show it."""
        self.emit(ev.Note(board, counter, text))

    def fleet_state(self, now: float) -> FleetState:
        """What everybody may know."""
        return records.fleet_state(self.state, self.state.boot, self.host, now)

    def lack(self, board: str, now: float) -> str:
        """Why the board takes no part; empty when it can."""
        s = self.state
        if s.settings.boards and board not in s.settings.boards:
            return "is not among the boards of this run"
        wanted = Wanted(s.settings.task, s.task_hash, s.settings.pool, s.fingerprint)
        return self.fleet.lack(board, wanted, board in s.drained, now)

    def preview(self, weights: Weights) -> Allocation | None:
        """What the next shares would become under other weights; None before anybody had a share."""
        s = self.state
        boards = tuple(sorted(s.control.shares))
        other = structs.replace(s.control, w_t=weights.w_t, w_e=weights.w_e)
        next_round = s.round + 1
        return allocation.allocate(other, boards, s.settings.budget, next_round, s.batch) if boards else None

    def lose(self, a: Assignment | None, status: Status, reason: str, now: float) -> None:
        """The order ends without an update; its pieces are dealt first in the next round."""
        if a is None or not (a.open or a.status == "attending"):
            return
        was_open = a.open
        a.settle(status, reason, now)
        if was_open:
            self.state.open_count -= 1
            self.state.queue.give_back(a.pieces)
            self.emit(ev.Discard(a.board, a.order), ev.Announce())
            closing.maybe_fold(self, now)

    def repeat(self, a: Assignment, now: float) -> None:
        """Say the order again when it is due and the board is connected."""
        seen = self.fleet.boards.get(a.board)
        if seen is not None and seen.birth.link == "up" and seen.birth.boot == a.boot and a.due(now):
            self.emit(ev.Send(a.board, a.message))

    def _wake(self, now: float) -> None:
        for a in list(self.state.assignments.values()):
            self.repeat(a, now)
            if a.open and self._frozen_since is None and now >= a.deadline_seconds:
                waited = now - a.issued_seconds
                self.emit(ev.Send(a.board, Abort(a.order, self.state.boot, self.state.term, "deadline")))
                self.lose(
                    a, "expired", f"nothing for too long: {a.doing()}, {waited:.0f} s after its order", now
                )

    def _stand_still(self, now: float) -> None:
        # Deadlines stand still while the coordinator or all boards are cut off (ARCHITECTURE 7.2).
        frozen = not self.own_link or self.fleet.all_links_down
        if frozen and self._frozen_since is None:
            self._frozen_since = now
        elif not frozen and self._frozen_since is not None:
            for a in self.state.assignments.values():
                a.shift(now - self._frozen_since)
            self._frozen_since = None

    def _gather(self, now: float) -> None:
        s = self.state
        if s.paused:
            s.phase = "paused"
            return
        settled = s.settings.boards or s.round or now - self.fleet.last_birth_seconds >= SETTLE_SECONDS
        if now < s.not_before or not settled:
            return
        if s.fingerprint is None:
            found = self.fleet.fingerprint(s.settings.pool)
            s.fingerprint = found[0] if found else None
            s.queue.size = found[1] if found else 0
        lacking = {name: self.lack(name, now) for name in sorted({*self.fleet.boards, *s.settings.boards})}
        ready = tuple(name for name, lack in lacking.items() if not lack)
        s.reason = "waiting for boards: " + (
            "; ".join(f"{n} {lack}" for n, lack in lacking.items() if lack) or "none yet"
        )
        if s.round == 0:
            waited = now - s.opened_seconds >= (STRICT_SECONDS if s.settings.boards else SETTLE_SECONDS)
            if s.settings.strict_boards and waited and len(ready) < len(lacking):
                closing.finish(self, s.reason, False)
                return
            missing = [name for name in s.settings.boards if lacking[name]]
            if missing or len(ready) < s.settings.min_boards:
                return
        if ready:
            self._open(ready, now)

    def _open(self, boards: tuple[str, ...], now: float) -> None:
        s = self.state
        budget = min(s.settings.budget, s.target - s.accepted)
        cores = {name: self.fleet.boards[name].birth.cores for name in boards}
        s.control.resources = {name: float(number) for name, number in cores.items() if number}
        for name in boards:
            watts = self.fleet.boards[name].idling.watts
            if watts is not None:
                s.control.idle_watts[name] = watts
        try:
            decision = allocation.allocate(s.control, boards, budget, s.round + 1, s.batch)
        except ValueError as error:
            s.phase, s.paused, s.reason = "paused", True, f"no shares can be given: {error}"
            self.note("-", "infeasible", s.reason)
            self.emit(ev.Save(), ev.Announce())
            return
        if budget == s.settings.budget:
            allocation.adopt(s.control, decision)
        s.round, s.phase, s.reason = s.round + 1, "running", ""
        s.costs, s.share_reason, s.opened_seconds = decision.costs, decision.reason, now
        s.share_rule = {"policy": s.control.policy, "w_t": s.control.w_t, "w_e": s.control.w_e}
        s.assignments = {name: self._assign(name, decision.shares.get(name, 0), now) for name in boards}
        s.open_count = sum(a.open for a in s.assignments.values())
        self.emit(ev.Save(), *(ev.Send(a.board, a.message) for a in s.assignments.values()))
        fetching = tuple(a.board for a in s.assignments.values() if a.open and not self._holds_model(a.board))
        if fetching:
            self.emit(ev.Distribute(s.version, fetching))
        self.emit(ev.Record("decision", records.decision_row(s, decision)), ev.Announce())
        if s.round == 1 and s.settings.evaluate:
            self.afterwards.append(ev.Evaluate(s.run, 0, s.version))

    def _holds_model(self, board: str) -> bool:
        state = self.fleet.boards[board].state
        return state is not None and state.model == self.state.version

    def _assign(self, board: str, samples: int, now: float) -> Assignment:
        s, order = self.state, order_id(self.state.run, self.state.round, board, 1)
        due, limit = deadline(
            now,
            allocation.predicted_seconds(s.control, board, samples),
            s.settings.deadline_floor_seconds,
            s.settings.deadline_limit_seconds,
        )
        pieces = s.queue.take(samples)
        boot = self.fleet.boards[board].birth.boot
        a = Assignment(
            board,
            boot,
            orders.message(s, order, pieces, limit - now),
            samples,
            pieces,
            "issued" if samples else "attending",
            now,
            due,
            limit,
            s.settings.deadline_floor_seconds,
            since_seconds=now,
            sent_seconds=now,
        )
        a.due(now)
        return a

    def _uploading(self, event: ev.Metered | ev.Arriving | ev.Stored, now: float) -> None:
        s, a = self.state, self.state.assignments.get(event.board)
        if a is None or a.order != event.order or not a.open:
            if isinstance(event, ev.Stored):
                self.emit(ev.Discard(event.board, event.order))
            return
        if isinstance(event, ev.Metered):
            if event.boot == a.boot:
                a.joules, a.joules_basis = event.joules, event.basis
        elif isinstance(event, ev.Arriving):
            a.alive(now, 0.0)
        elif event.error is not None:
            hearing.refuse(self, a, "refused_updates", event.error, now)
        elif a.report is not None:
            a.settle("accepted", "", now)
            s.open_count -= 1
            s.accepted += a.samples
            unused = allocation.learn(s.control, a.board, s.round, a.report, s.settings.energy_window)
            if unused:
                self.note(a.board, "unused_readings", unused)
            self.emit(ev.Save(), ev.Send(a.board, Accepted(a.order, s.boot, s.term)))
            closing.maybe_fold(self, now)

    def _restore(self, event: ev.Restored, now: float) -> None:
        s = self.state
        s.rebase(now)
        s.term, s.boot = event.term, event.boot
        for a in s.assignments.values():
            a.message = structs.replace(a.message, term=s.term, boot=s.boot)
            if a.status == "reported" and a.report is not None and a.report.manifest is not None:
                self.emit(ev.Collect(a.board, a.order, a.report.manifest))
            elif a.open or a.status == "attending":
                a.repeat_at(now)
        if s.phase == "folding":
            self.emit(closing.fold(s))
        self.emit(ev.Save(), ev.Announce())
