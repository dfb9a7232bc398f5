"""The run's state machine: (event, now) -> effects. Pure: no clock, randomness, disk, network or threads.

Rules: accepted + returned + open = ordered in every round; a round ends when nobody's order is open;
what boards say is judged in `hearing`, what the next shares are in `allocation`.
"""

from collections.abc import Callable
from typing import Any

from msgspec import structs

from coordinator import (
    allocation,
    asynchronous,
    attempts,
    closing,
    hearing,
    mustering,
    opening,
    periods,
    records,
    silos,
    wishes,
)
from coordinator import events as ev
from coordinator.allocation import Control
from coordinator.assignments import Assignment, Status
from coordinator.controller import Allocation, Weights
from coordinator.fleet import Fleet, Wanted
from coordinator.run import RunState
from coordinator.silos import ALL, SYNCHRONOUS
from edged.messages import Abort, Accepted, FleetState, Manifest, Train


class Rounds:
    """One run over a fleet of boards. `handle` is the only way in, its effects the only way out."""

    def __init__(self, state: RunState, fleet: Fleet, host: str = "") -> None:
        self.state, self.fleet, self.host = state, fleet, host
        self.own_link = True
        self._frozen_since: float | None = None
        self._effects: list[ev.Effect] = []
        self.afterwards: list[ev.Effect] = []
        """Effects that come after the next orders, such as an evaluation."""
        self.saying: list[ev.Effect] = []
        """Of asynchronous updates: what is to be said once the state is saved."""

    def handle(self, event: ev.Event, now: float) -> list[ev.Effect]:
        """What is to be done about the event, in this order."""
        self._effects, self.afterwards, self.saying = [], [], []
        paused = self.state.paused
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
            case ev.Folded() | ev.FoldFailed() | ev.Applied() | ev.ApplyFailed():
                self._merged(event, now)
            case ev.Metered() | ev.Arriving() | ev.Stored():
                self._uploading(event, now)
            case ev.Prepared():
                self.state.opened_seconds = now
                self.emit(ev.Save(), ev.Announce())
        if self.state.phase == "gathering":
            opening.gather(self, now)
        if self.state.pushes is not None:
            asynchronous.tend(self, now)
        wishes.own_pause(self, event, paused)
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
        told = records.fleet_state(self.state, self.state.boot, self.host, now)
        return told if self.state.pushes is None else structs.replace(told, pushes=periods.pushed(self.state))

    def lack(self, board: str, now: float) -> str:
        """Why the board takes no part; empty when it can."""
        s = self.state
        if s.settings.boards and board not in s.settings.boards:
            return "is not among the boards of this run"
        name = silos.name_of(s.settings, self.fleet, board)
        silo = s.silos.get(name)
        pool = silos.pool_of(s.settings, name) if silo is None else silo.pool
        wanted = Wanted(s.settings.task, s.task_hash, pool, None if silo is None else silo.fingerprint)
        lack = self.fleet.lack(board, wanted, board in s.drained, now)
        if lack or s.settings.regime not in SYNCHRONOUS:
            return lack
        if silo is None and (s.silos or not name):
            return f"is in silo {name}, which this run has not" if name else "is in no silo"
        boot, reason = s.unfit.get(board, ("", ""))
        if boot == self.fleet.boards[board].birth.boot:
            return reason
        return mustering.lack(self.fleet, board, self._peers(name))

    def _peers(self, silo: str) -> tuple[str, ...]:
        """Boards that are there and may be ranks of the silo."""
        s = self.state
        return tuple(
            name
            for name, seen in self.fleet.boards.items()
            if seen.birth.link == "up"
            and (not s.settings.boards or name in s.settings.boards)
            and silos.name_of(s.settings, self.fleet, name) == silo
        )

    def manifest_of(self, version: str) -> Manifest | None:
        """Of a version that boards may have now: the newest, or one that an open order is trained from."""
        if version == self.state.version:
            return self.state.manifest
        for a in self.state.assignments.values():
            if a.open and isinstance(a.message, Train) and a.message.model == version:
                return a.message.manifest
        return None

    def preview(self, weights: Weights) -> Allocation | None:
        """What the next shares would become under other weights; None before anybody had a share."""
        return self._previewed(lambda control: structs.replace(control, w_t=weights.w_t, w_e=weights.w_e))

    def preview_policy(self, policy: str, options: dict[str, Any]) -> Allocation | None:
        """The same under another policy. Raises ValueError for one that this run cannot have."""
        allocation.chosen(self.state.rule, policy, options)
        return self._previewed(lambda control: allocation.chosen(control, policy, options))

    def _previewed(self, change: Callable[[Control], Control]) -> Allocation | None:
        s, found = self.state, dict[str, Allocation]()
        for silo in s.silos.values():
            boards = tuple(sorted(silo.control.shares))
            if boards:
                other = change(silo.control)
                budget, batch = (silo.budget, s.batch) if s.pushes is None else periods.sizes(s, len(boards))
                decision = allocation.allocate(other, boards, budget, s.round + 1, batch)
                found[silo.name] = decision if s.pushes is None else allocation.without_makespan(decision)
        if not found:
            return None
        return allocation.merged(found)

    def lose(self, a: Assignment | None, status: Status, reason: str, now: float) -> None:
        """The order ends without an update; its pieces are dealt first in the next round."""
        if a is None or not (a.open or a.status == "attending") or a.status == "stored":
            return  # a stored update counts, whatever becomes of its board
        group = attempts.of(self, a.board)
        if group is not None and a.open:
            attempts.lost(self, group, a, now, status=status, reason=reason)
            return
        was_open = a.open
        a.settle(status, reason, now)
        if was_open:
            self.state.open_count -= 1
            self.state.silos[ALL].queue.give_back(a.pieces)
            self.emit(ev.Discard(a.board, a.order), ev.Announce())
            if self.state.pushes is not None:
                asynchronous.lost(self, a, now)
            else:
                closing.maybe_fold(self, now)

    def repeat(self, a: Assignment, now: float) -> None:
        """Say the order again when it is due and the board is connected."""
        seen = self.fleet.boards.get(a.board)
        if seen is not None and seen.birth.link == "up" and seen.birth.boot == a.boot and a.due(now):
            self.emit(ev.Send(a.board, a.say))

    def _wake(self, now: float) -> None:
        attempts.wake(self, now)
        for a in list(self.state.assignments.values()):
            self.repeat(a, now)
            waits = a.open and a.status != "stored" and not a.gone
            if waits and self._frozen_since is None and now >= a.deadline_seconds:
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

    def _merged(self, event: ev.Folded | ev.FoldFailed | ev.Applied | ev.ApplyFailed, now: float) -> None:
        if isinstance(event, ev.Folded | ev.FoldFailed):
            closing.merged(self, event, now)
        elif self.state.pushes is not None:
            asynchronous.applied(self, event, now)

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
        elif a.silo:
            group = attempts.of(self, a.board)
            if group is not None:
                attempts.stored(self, group, a, event.error, now)
        elif event.error is not None:
            hearing.refuse(self, a, "refused_updates", event.error, now)
        elif s.pushes is not None:
            asynchronous.stored(self, a, now)
        elif a.report is not None:
            a.settle("accepted", "", now)
            s.open_count -= 1
            s.accepted += a.samples
            s.silos[ALL].accepted += a.samples
            unused = allocation.learn(
                s.silos[ALL].control, a.board, s.round, a.report, s.settings.energy_window
            )
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
            attempts.renew(self, a)
            fetched = not a.silo or s.groups[a.silo].uploader == a.board
            if a.status == "reported" and fetched and a.report is not None and a.report.manifest is not None:
                plain = ev.Collect(a.board, a.order, a.report.manifest)
                self.emit(plain if s.pushes is None else asynchronous.collect(self, a, a.report))
            elif (a.open and a.status != "stored") or a.status == "attending":
                a.repeat_at(now)
        if s.phase == "folding":
            self.emit(closing.fold(s))
        if s.pushes is not None:
            s.pushes.applying = False
        self.emit(ev.Save(), ev.Announce())
