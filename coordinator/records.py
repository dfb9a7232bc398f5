"""The rows that are kept of a round, and the fleet's state as everybody sees it. Pure.

An unknown number of joules is None with the boards that lack it named; sums of unlike bases are told apart.
"""

from typing import Any

import msgspec

from coordinator import allocation
from coordinator.assignments import Assignment
from coordinator.controller import Allocation
from coordinator.pacing import behind_pace
from coordinator.run import RunState
from edged.messages import FleetState, Report, Waiting

Row = dict[str, Any]


def board_row(state: RunState, a: Assignment) -> Row:
    """One board's part of a round."""
    report, memory = a.report, state.memory(a.board)
    energy = report.energy if report else None
    loss = None if report is None or report.loss_sum is None else report.loss_sum / max(1, report.samples)
    return {
        "run": state.run,
        "round": state.round,
        "board": a.board,
        "order": a.order,
        "status": a.status,
        "reason": a.reason,
        "samples": a.samples,
        "pieces": [[p.epoch, p.start, p.stop] for p in a.pieces],
        "steps": report.steps if report else None,
        "seconds": report.parts.compute.seconds if report else None,
        "joules": energy.joules if energy else a.joules,
        "joules_reason": energy.reason if energy else _without_report(a),
        "basis": energy.basis if energy else a.joules_basis,
        "scope": energy.scope if energy else "",
        "uncertainty_joules": energy.uncertainty_joules if energy else None,
        "coverage": energy.coverage if energy else None,
        "flags": list(energy.flags) if energy else ["truncated"] if a.joules is not None else [],
        "seconds_per_sample": memory.seconds_per_sample if memory else None,
        "joules_per_sample": memory.joules_per_sample if memory else None,
        "cost": state.costs.get(a.board),
        "loss": loss,
        "behind_pace_steps": report.behind_pace_steps if report else None,
        **(_rank_row(state, a) if a.silo else {}),
        "peak_memory_bytes": report.peak_memory_bytes if report else None,
    }


def _rank_row(state: RunState, a: Assignment) -> Row:
    """What there is to say of a rank beside."""
    said, group = a.report.synchronous if a.report else None, state.groups[a.silo]
    return {
        "silo": a.silo,
        "attempt": group.attempt,
        "uploaded": a.board == group.uploader,
        "trained_samples": a.report.samples if a.report else None,
        "forward_seconds": said.forward_seconds if said else None,
        "window_seconds": said.window_seconds if said else None,
        "deviation": said.deviation if said else None,
        "checksum": said.checksum if said else "",
    }


def _without_report(a: Assignment) -> str:
    return "no report" if a.joules is None else "its last telemetry before it was lost"


def round_row(state: RunState, now: float) -> Row:
    """The round as a whole: accounting, makespan, joules by basis, shares and the reason for them."""
    assignments = state.assignments.values()
    trained = [a for a in assignments if a.report is not None and a.samples]
    seconds = {a.board: _seconds(a.report) for a in trained if a.report}
    longest = _longest(trained)
    by_basis: dict[str, float] = {}
    for a in trained:
        if a.report and a.report.energy.joules is not None:
            by_basis[a.report.energy.basis] = (
                by_basis.get(a.report.energy.basis, 0.0) + a.report.energy.joules
            )
    # Of a rank that was lost after its last step nothing tells what computing took.
    without = [
        a.board
        for a in assignments
        if a.samples and (a.status == "accepted" if a.report is None else a.report.energy.joules is None)
    ]
    ordered = sum(a.samples for a in assignments)
    accepted = sum(a.samples for a in assignments if a.status == "accepted")
    in_flight = sum(a.samples for a in assignments if a.open)
    return {
        "run": state.run,
        "round": state.round,
        "ordered": ordered,
        "accepted": accepted,
        "returned": ordered - accepted - in_flight,
        "outstanding": ordered - accepted,
        "accepted_in_all": state.accepted,
        "makespan_seconds": max(seconds.values(), default=None),
        "longest": longest,
        "wall_seconds": now - state.opened_seconds,
        "compute_joules_by_basis": by_basis,
        "joules_unknown_of": without,
        **state.share_rule,
        "shares": {a.board: a.samples for a in assignments},
        "costs": state.costs,
        "reason": state.share_reason,
        "model": state.merges,
        "behind_pace": behind_pace([board_row(state, a) for a in trained]),
        **({"silos": _silo_rows(state)} if state.groups else {}),
    }


def _seconds(report: Report) -> float:
    """What counts for the makespan: computing, or for ranks the whole of their common steps."""
    return report.parts.compute.seconds if report.synchronous is None else report.synchronous.window_seconds


def _longest(trained: list[Assignment]) -> str | None:
    """Whose computing the round waited for; of ranks, whose window is one, in the last silo."""
    ends: dict[str, float] = {}
    for a in trained:
        if a.report is not None:
            ends[a.silo] = max(ends.get(a.silo, 0.0), _seconds(a.report))
    computed = {a.board: (ends[a.silo], a.report.parts.compute.seconds) for a in trained if a.report}
    return max(computed, key=lambda board: computed[board]) if computed else None


def group_rows(state: RunState) -> Row:
    """How the ranks of each silo stand in the round that goes on."""
    return {
        name: {
            "standing": group.standing,
            "attempt": group.attempt,
            "boards": list(group.boards),
            "failures": list(group.failures),
            "left_out": dict(group.out),
        }
        for name, group in state.groups.items()
    }


def _silo_rows(state: RunState) -> Row:
    """By silo: samples, ranks, attempts with why each failed, and the all-reduced mean loss."""
    rows: Row = {}
    for name, group in state.groups.items():
        up = state.assignments.get(group.uploader)
        said = up.report.synchronous if up is not None and up.report is not None else None
        rows[name] = {
            "ordered": group.samples,
            "accepted": group.samples if group.standing == "done" else 0,
            "boards": list(group.boards),
            "steps": group.steps,
            "attempts": group.attempt,
            "failures": list(group.failures),
            "left_out": dict(group.out),
            "loss": said.loss_sum / group.samples if said is not None else None,
        }
    return rows


def decision_row(state: RunState, decisions: dict[str, Allocation]) -> Row:
    """A decision by silo with its inputs, so that a run can be replayed under another policy. Of several
    silos `decision` holds the shares of all, and `silos` each one's own."""
    control, decision = state.control, allocation.merged(decisions)
    boards = dict.fromkeys((*state.assignments, *decision.shares))
    return {
        "run": state.run,
        "round": state.round,
        "policy": control.policy,
        "options": control.options,
        "w_t": control.w_t,
        "w_e": control.w_e,
        "decision": msgspec.to_builtins(decision),
        "idle_watts": {name: control.idle_watts.get(name) for name in boards},
        "memories": msgspec.to_builtins({name: state.memory(name) for name in boards}),
        **({"silos": msgspec.to_builtins(decisions)} if state.settings.regime == "hfl-ddp" else {}),
    }


def closed_row(state: RunState, round_number: int, report: Report) -> Row:
    """The whole parts of an order that is over."""
    return {
        "run": state.run,
        "round": round_number,
        "board": report.board,
        "order": report.order,
        "basis": report.energy.basis,
        "scope": report.energy.scope,
        "flags": list(report.energy.flags),
        "parts": msgspec.to_builtins(report.parts),
    }


def fleet_state(state: RunState, boot: str, host: str, now: float) -> FleetState:
    """What goes out on fleet/state and stands on the first line of `status`."""
    waiting = tuple(
        Waiting(a.board, a.doing(), max(0.0, now - a.issued_seconds), max(0.0, a.deadline_seconds - now))
        for a in state.assignments.values()
        if a.open
    )
    return FleetState(
        boot=boot,
        term=state.term,
        link="up",
        host=host,
        run=state.run,
        round=state.round,
        rounds=state.settings.rounds,
        phase=state.phase,
        regime=state.settings.regime,
        policy=state.control.policy,
        w_t=state.control.w_t,
        w_e=state.control.w_e,
        shares={a.board: a.samples for a in state.assignments.values()},
        reason=state.reason or ("" if state.phase == "paused" else state.share_reason),
        waiting=waiting,
        last=state.last,
    )
