"""How a round begins: which boards are there, whose share is how large, and the orders that say so. Pure."""

from typing import TYPE_CHECKING

from coordinator import allocation, asynchronous, closing, orders, records, silos
from coordinator import events as ev
from coordinator.assignments import NEW_BOARD_FACTOR, Assignment, deadline
from coordinator.controller import Allocation
from coordinator.controller.batches import schedule, steps_for
from coordinator.group import Group
from coordinator.silos import SYNCHRONOUS, Silo
from edged import dealing
from edged.groups import Rendezvous
from edged.messages import Piece, Train
from edged.topics import order_id

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

STRICT_SECONDS = 10.0
"""How long a strict run waits for the boards it names before it gives up."""
SETTLE_SECONDS = 2.0
"""A run whose boards are not named starts once no further one has appeared for so long."""
COLLECTIVE_SECONDS = 30.0
MUSTER_FACTOR = 2.0
"""Ranks that were never timed get so many times a new board's deadline: before the first group torch is
imported twice, once to try what fits into memory, and each takes minutes on a RISC-V board."""


def gather(run: "Rounds", now: float) -> None:
    """Begin a round if all that it waits for is there."""
    s = run.state
    if s.paused:
        s.phase = "paused"
        return
    settled = s.settings.boards or s.round or now - run.fleet.last_birth_seconds >= SETTLE_SECONDS
    if now < s.not_before or not settled:
        return
    for silo in s.silos.values():
        if silo.fingerprint is None:
            found = run.fleet.fingerprint(silo.pool)
            silo.fingerprint = found[0] if found else None
            silo.queue.size = found[1] if found else 0
    lacking = {name: run.lack(name, now) for name in sorted({*run.fleet.boards, *s.settings.boards})}
    ready = tuple(name for name, lack in lacking.items() if not lack)
    s.reason = "waiting for boards: " + (
        "; ".join(f"{n} {lack}" for n, lack in lacking.items() if lack) or "none yet"
    )
    if s.round == 0:
        waited = now - s.opened_seconds >= (STRICT_SECONDS if s.settings.boards else SETTLE_SECONDS)
        if s.settings.strict_boards and waited and len(ready) < len(lacking):
            closing.finish(run, s.reason, False)
            return
        missing = [name for name in s.settings.boards if lacking[name]]
        if missing or len(ready) < s.settings.min_boards:
            return
        if not s.silos and ready:
            try:
                s.silos = silos.formed(s.settings, run.fleet, ready, s.rule)
            except ValueError as error:
                stop(run, f"no silos: {error}")
                return
    if ready and s.pushes is not None:
        asynchronous.begin(run, ready, now)
    elif ready:
        _open(run, ready, now)


def stop(run: "Rounds", reason: str) -> None:
    """The run cannot go on as it is: it pauses, and says why."""
    s = run.state
    s.phase, s.paused, s.reason = "paused", True, reason
    run.note("-", "infeasible", reason)
    run.emit(ev.Save(), ev.Announce())


def _open(run: "Rounds", boards: tuple[str, ...], now: float) -> None:
    s = run.state
    try:
        made = _decided(run, boards)
    except ValueError as error:
        return stop(run, f"no shares can be given: {error}")
    if not made:
        return None
    s.round, s.phase, s.reason = s.round + 1, "running", ""
    s.costs = {board: cost for decision in made.values() for board, cost in decision.costs.items()}
    s.share_reason = allocation.merged(made).reason
    s.opened_seconds = now
    s.share_rule = {"policy": s.control.policy, "w_t": s.control.w_t, "w_e": s.control.w_e}
    s.assignments, s.groups, s.open_count = {}, {}, 0
    for board in boards:
        if not any(decision.shares.get(board) for decision in made.values()):
            _attend(run, board, now)
    for name, decision in made.items():
        silo = s.silos[name]
        shares = {board: n for board, n in decision.shares.items() if n}
        if s.settings.regime in SYNCHRONOUS:
            budget = sum(shares.values())
            group = s.groups[name] = Group(name, silo.queue.take(budget), steps_for(budget, s.batch))
            issue(run, silo, group, shares, now)
        else:
            _alone(run, silo, shares, now)
    s.assignments = dict(sorted(s.assignments.items()))
    run.emit(ev.Record("decision", records.decision_row(s, made)), ev.Announce())
    if s.round == 1 and s.settings.evaluate:
        run.afterwards.append(ev.Evaluate(s.run, 0, s.version))
    return None


def _decided(run: "Rounds", boards: tuple[str, ...]) -> dict[str, Allocation]:
    """The shares of every silo that still has samples to train and somebody to do it. Raises ValueError."""
    s = run.state
    decisions: dict[str, tuple[Allocation, int]] = {}
    for silo in s.silos.values():
        members = tuple(b for b in boards if silos.name_of(s.settings, run.fleet, b) == silo.name)
        budget = min(silo.budget, s.settings.rounds * silo.budget - silo.accepted)
        if not members or budget < 1:
            continue
        cores = {name: run.fleet.boards[name].birth.cores for name in members}
        silo.control.resources = {name: float(number) for name, number in cores.items() if number}
        for name in members:
            watts = run.fleet.boards[name].idling.watts
            if watts is not None:
                silo.control.idle_watts[name] = watts
        decisions[silo.name] = (
            allocation.allocate(silo.control, members, budget, s.round + 1, s.batch),
            budget,
        )
    for name, (decision, budget) in decisions.items():
        if budget == s.silos[name].budget:
            allocation.adopt(s.silos[name].control, decision)
    return {name: decision for name, (decision, _) in decisions.items()}


def _attend(run: "Rounds", board: str, now: float) -> None:
    s = run.state
    order = order_id(s.run, s.round, board, 1)
    boot = run.fleet.boards[board].birth.boot
    limit = s.settings.deadline_limit_seconds
    floor = s.settings.deadline_floor_seconds
    message = orders.attend(s, order)
    a = Assignment(board, boot, message, 0, (), "attending", now, now + limit, now + limit, floor)
    a.since_seconds = a.sent_seconds = now
    a.due(now)
    s.assignments[board] = a
    run.emit(ev.Save(), ev.Send(board, message))


def _alone(run: "Rounds", silo: Silo, shares: dict[str, int], now: float) -> None:
    """Every board for itself: the pieces of a board are consecutive."""
    s, made = run.state, []
    for board, samples in shares.items():
        predicted = allocation.predicted_seconds(silo.control, board, samples)
        due, limit = deadline(
            now, predicted, s.settings.deadline_floor_seconds, s.settings.deadline_limit_seconds
        )
        pieces = silo.queue.take(samples)
        order = order_id(s.run, s.round, board, 1)
        message = orders.train(s, silo, order, pieces, limit_seconds=limit - now)
        made.append(assigned(run, board, message, pieces, (now, due, limit)))
    _send(run, made, now)


def issue(run: "Rounds", silo: Silo, group: Group, shares: dict[str, int], now: float) -> None:
    """Orders for the group's next attempt: step by step every rank takes its part of the same places."""
    s = run.state
    group.boards = tuple(sorted(shares))
    group.shares = tuple(shares[board] for board in group.boards)
    group.attempt, group.standing = group.attempt + 1, "mustering"
    group.name, group.uploader, group.uploaded = "", "", False
    group.answered, group.blamed = [], []
    rows = schedule(group.shares, group.steps)
    times = [
        allocation.predicted_seconds(silo.control, board, n)
        for board, n in zip(group.boards, group.shares, strict=True)
    ]
    longest = _longest(silo, group, times)
    floor = s.settings.deadline_floor_seconds * (MUSTER_FACTOR if longest is None else 1)
    due, limit = deadline(now, longest, floor, s.settings.deadline_limit_seconds)
    patience = COLLECTIVE_SECONDS * NEW_BOARD_FACTOR
    if longest is not None:
        patience = max(COLLECTIVE_SECONDS, 3 * longest / group.steps)
    made = []
    for rank, board in enumerate(group.boards):
        order = order_id(s.run, s.round, board, group.attempt)
        samples = group.shares[rank]
        message = orders.train(s, silo, order, group.pieces, samples, limit_seconds=limit - now)
        ranks = Rendezvous(
            silo.name,
            group.boards,
            rank,
            group.shares,
            group.steps,
            "0" * 64,
            patience,
            allocation.stepwise(silo.control),
        )
        message = dealing.with_plan(message, ranks)
        own = dealing.dealt(group.pieces, rows, rank)
        a = assigned(run, board, message, own, (now, due, limit))
        a.silo = silo.name
        made.append(a)
    _send(run, made, now)


def _longest(silo: Silo, group: Group, times: list[float | None]) -> float | None:
    """Seconds until all ranks are through: the slowest one's computing, or what steps took last where the
    exchange is most of it. None while a rank was never timed."""
    known = [time for time in times if time is not None]
    if len(known) < len(times):
        return None
    return max(*known, (silo.step_seconds or 0.0) * group.steps)


def assigned(
    run: "Rounds",
    board: str,
    message: Train,
    pieces: tuple[Piece, ...],
    times: tuple[float, float, float],
) -> Assignment:
    """An order that is open from now on. `times` are now, the deadline and its hard limit."""
    s, (now, due, limit) = run.state, times
    a = Assignment(
        board,
        run.fleet.boards[board].birth.boot,
        message,
        message.samples,
        pieces,
        "issued",
        now,
        due,
        limit,
        s.settings.deadline_floor_seconds,
        since_seconds=now,
        sent_seconds=now,
    )
    a.due(now)
    s.assignments[board] = a
    s.open_count += 1
    return a


def _send(run: "Rounds", made: list[Assignment], now: float) -> None:
    s = run.state
    run.emit(ev.Save(), *(ev.Send(a.board, a.message) for a in made))
    fetching = tuple(a.board for a in made if not holds_model(run, a.board))
    if fetching:
        run.emit(ev.Distribute(s.version, fetching))


def holds_model(run: "Rounds", board: str) -> bool:
    """Whether the board has said that it has the newest version."""
    state = run.fleet.boards[board].state
    return state is not None and state.model == run.state.version
