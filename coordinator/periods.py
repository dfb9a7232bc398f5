"""Periods of asynchronous runs, which stand for rounds: a budget of accepted samples each. Pure.

At the turn of one the boards' readings are taken in and the sizes of their next orders decided; its rows are
those of a round, with update counts and the distribution of staleness by board.
"""

from typing import TYPE_CHECKING, Any

import msgspec

from coordinator import allocation, opening, records
from coordinator import events as ev
from coordinator.assignments import Assignment
from coordinator.controller import Allocation, Reading
from coordinator.controller.memories import observe
from coordinator.pacing import behind_pace
from coordinator.pushes import Pushes, Tally, coarse, waiting_share
from coordinator.run import RunState
from coordinator.silos import ALL
from edged.messages import Pushed, Train

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

Row = dict[str, Any]


def turn(run: "Rounds", boards: tuple[str, ...], now: float) -> bool:
    """The next period begins: sizes of orders are decided. False where none can be given: the run pauses."""
    s, p = run.state, _of(run.state)
    control = s.silos[ALL].control
    number = s.accepted // s.settings.budget + 1
    decision = None
    try:
        decision = decided(run, boards, number)
    except ValueError as error:
        if s.round == 0:
            opening.stop(run, f"no batches can be given: {error}")
            return False
        run.note("-", "infeasible", f"period {number} keeps the sizes of orders: {error}")
    s.round, s.opened_seconds = number, now
    p.since_version, p.ordered, p.carried = s.merges, 0, s.open_samples
    if decision is not None:
        allocation.adopt(control, decision)
        p.left = list(decision.left)
        s.costs, s.share_reason = decision.costs, decision.reason
        s.share_rule = {"policy": control.policy, "w_t": control.w_t, "w_e": control.w_e}
        run.emit(ev.Record("decision", records.decision_row(s, {ALL: decision})))
    run.emit(ev.Announce())
    return True


def decided(run: "Rounds", boards: tuple[str, ...], number: int) -> Allocation:
    """The policy's answer: with gradients it splits one mean batch a board, with models the whole period.

    Raises ValueError where none can be given.
    """
    s = run.state
    control = s.silos[ALL].control
    cores = {name: run.fleet.boards[name].birth.cores for name in boards if name in run.fleet.boards}
    control.resources = {name: float(n) for name, n in cores.items() if n}
    for name in cores:
        watts = run.fleet.boards[name].idling.watts
        if watts is not None:
            control.idle_watts[name] = watts
    budget, least = sizes(s, len(boards))
    return allocation.without_makespan(allocation.allocate(control, boards, budget, number, least))


def sizes(state: RunState, boards: int) -> tuple[int, int]:
    """What the policy divides among so many boards, and the least that a board gets."""
    if _of(state).settings.grain == "gradient":
        return state.batch * boards, 1
    return state.settings.budget, state.batch


def close(run: "Rounds", now: float) -> None:
    """The period is over: its rows, and what its readings teach."""
    s, p = run.state, _of(run.state)
    control = s.silos[ALL].control
    for board, tally in sorted(p.tallies.items()):
        learn(run, board, tally)
        if tally.lost and not tally.updates:
            allocation.miss(control, board)
    for board in sorted(p.tallies):
        run.emit(ev.Record("board_round", board_row(s, board)))
    s.last = period_row(s, now)
    run.emit(ev.Record("round", s.last))
    p.marks.append(s.merges)
    p.tallies = {}
    if s.settings.evaluate:
        run.afterwards.append(ev.Evaluate(s.run, s.round, s.version))


def learn(run: "Rounds", board: str, tally: Tally) -> None:
    """A period's updates of a board are one reading."""
    s = run.state
    control = s.silos[ALL].control
    if not tally.steady_samples:
        if tally.updates:
            text = "only the first two steps of a new process: they tell little of what follows"
            run.note(board, "unused_readings", text)
        return
    bases, waited = list(tally.joules), tally.parts.wait
    reading = Reading(
        board,
        s.round,
        tally.steady_samples,
        tally.steady_seconds,
        tally.steady_joules if len(bases) == 1 else None,
        basis=bases[0] if len(bases) == 1 else None,
        wait_seconds=waited.seconds if waited.joules is not None else None,
        wait_joules=waited.joules,
        loss_sum=tally.loss_sum,
        scope=tally.scope or None,
    )
    control.memories[board] = observe(control.memories.get(board), reading, control.settings)


def push_row(state: RunState, a: Assignment) -> Row:
    """One update: what it was, how old, and by what it counted. `model` is the version that it made."""
    loss = (
        a.report.loss_sum / max(1, a.report.samples) if a.report and a.report.loss_sum is not None else None
    )
    made = a.status == "accepted"
    return {
        "run": state.run,
        "order": a.order,
        "round": state.round,
        "board": a.board,
        "status": a.status,
        "reason": a.reason,
        "samples": a.samples,
        "pieces": [[p.epoch, p.start, p.stop] for p in a.pieces],
        "staleness": a.age,
        "factor": a.factor if made else None,
        "scale": a.scale if made else None,
        "model": state.merges if made else None,
        "seconds": a.report.parts.compute.seconds if a.report else None,
        "loss": loss,
    }


def board_row(state: RunState, board: str) -> Row:
    """One board's part of a period."""
    p, tally, memory = _of(state), _of(state).tallies[board], state.memory(board)
    loss = None if tally.loss_sum is None else tally.loss_sum / max(1, tally.samples)
    joules, why = _joules(tally)
    return {
        "run": state.run,
        "round": state.round,
        "board": board,
        "order": tally.order,
        "status": _status(tally),
        "reason": tally.reason if tally.lost else "too old" if tally.dropped and not tally.updates else "",
        "samples": tally.samples,
        "pieces": [],
        "steps": tally.steps if tally.updates else None,
        "seconds": tally.seconds if tally.updates else None,
        "joules": joules,
        "joules_reason": why,
        "basis": " and ".join(tally.joules),
        "scope": tally.scope,
        "uncertainty_joules": None,
        "coverage": None,
        "flags": tally.flags,
        "seconds_per_sample": memory.seconds_per_sample if memory else None,
        "joules_per_sample": memory.joules_per_sample if memory else None,
        "cost": state.costs.get(board),
        "loss": loss,
        "behind_pace_steps": tally.behind_pace_steps if tally.updates else None,
        "peak_memory_bytes": tally.peak_memory_bytes or None,
        "updates": tally.updates,
        "dropped": tally.dropped,
        "lost": tally.lost,
        "returned": tally.returned,
        "staleness": coarse(tally.staleness),
        "batch": state.silos[ALL].control.shares.get(board),
        "clock": p.pusher(board).clock,
        "closed": tally.closed,
        "parts": msgspec.to_builtins(tally.parts),
    }


def _status(tally: Tally) -> str:
    """The best that came of its orders; one that is longer than the period has come to nothing yet."""
    if tally.updates:
        return "accepted"
    return "refused" if tally.dropped else "abandoned" if tally.lost else "working"


def _joules(tally: Tally) -> tuple[float | None, str]:
    if not tally.updates:
        return None, "no update was accepted"
    if tally.unmetered:
        return None, tally.unmetered
    if len(tally.joules) > 1:
        return None, f"of different basis: {', '.join(sorted(tally.joules))}"
    return next(iter(tally.joules.values()), None), ""


def period_row(state: RunState, now: float) -> Row:
    """The period as a whole. `ordered` counts what was open at its beginning, too, so that accepted +
    returned + open = ordered; `shares` are accepted samples, `batches` the sizes of orders."""
    p = _of(state)
    tallies = p.tallies
    worked = {board: tally for board, tally in tallies.items() if tally.updates}
    by_basis: dict[str, float] = {}
    for tally in worked.values():
        for basis, joules in tally.joules.items():
            by_basis[basis] = by_basis.get(basis, 0.0) + joules
    accepted = sum(tally.samples for tally in tallies.values())
    ordered = p.carried + p.ordered
    return {
        "run": state.run,
        "round": state.round,
        "ordered": ordered,
        "accepted": accepted,
        "returned": sum(tally.returned for tally in tallies.values()),
        "open": state.open_samples,
        "carried": p.carried,
        "outstanding": ordered - accepted,
        "accepted_in_all": state.accepted,
        "makespan_seconds": None,  # nobody waits for the longest board
        "longest": None,
        "wall_seconds": now - state.opened_seconds,
        "waiting_share": waiting_share([tally.parts for tally in tallies.values()]),
        "compute_joules_by_basis": by_basis,
        "joules_unknown_of": [board for board, tally in worked.items() if tally.unmetered],
        **state.share_rule,
        "shares": {board: tally.samples for board, tally in worked.items()},
        "costs": state.costs,
        "reason": state.share_reason,
        "model": state.merges,
        "behind_pace": behind_pace([board_row(state, board) for board in worked]),
        "versions": [p.since_version, state.merges],
        "grain": p.settings.grain,
        "rule": p.settings.staleness,
        "rule_options": p.settings.staleness_options,
        "bound": p.settings.bound,
        "scale": p.settings.scale,
        "batches": dict(state.silos[ALL].control.shares),
        "updates": {board: tally.updates for board, tally in tallies.items()},
        "dropped": {board: tally.dropped for board, tally in tallies.items() if tally.dropped},
        "staleness": {board: coarse(tally.staleness) for board, tally in worked.items()},
        "waited": {} if p.ahead is None else {b: _waited(state, b) for b in sorted({*p.members, *tallies})},
    }


def _waited(state: RunState, board: str) -> Row:
    """How long the rule made the board wait for a slower one, by the accounts that were closed in the period:
    seconds, joules with their basis, and why a figure is unknown or not the whole."""
    p, memory = _of(state), state.memory(board)
    tally = p.tallies.get(board, Tally())
    bases = list(tally.joules) or ([memory.basis] if memory and memory.basis else [])
    found = {"seconds": tally.held.seconds, "joules": tally.held.joules, "basis": "", "reason": ""}
    if board in p.boards and p.boards[board].holding:
        found["reason"] = "a wait is not over, or its account has not come"
        if not tally.held.seconds:
            return found | {"seconds": None, "joules": None}
    if tally.held.joules is None:
        return found | {"reason": "the joules of a wait are not known"}
    if tally.held.joules and len(bases) != 1:
        return found | {"joules": None, "reason": f"joules of {'different' if bases else 'unknown'} basis"}
    return found | {"basis": bases[0] if tally.held.joules else ""}


def pushed(state: RunState) -> dict[str, Pushed]:
    """Updates and staleness by board over the run, as everybody may know them."""
    behind = {
        a.board: state.merges - int(a.message.model.rpartition(".")[2])
        for a in state.assignments.values()
        if a.open and isinstance(a.message, Train)
    }
    return {
        name: Pushed(one.updates, one.samples, one.dropped, coarse(one.staleness), behind.get(name))
        for name, one in sorted((state.pushes.boards if state.pushes else {}).items())
    }


def _of(state: RunState) -> Pushes:
    found = state.pushes
    assert found is not None
    return found
