"""How a round ends: merge, account, and the end of the run. Pure.

A round of which nothing was accepted changes nothing; after several in a row the run pauses by itself.
"""

from typing import TYPE_CHECKING

from coordinator import allocation, asynchronous, records
from coordinator import events as ev
from coordinator.controller.memories import DEFAULTS
from coordinator.run import RunState
from coordinator.silos import ALL
from edged.messages import Abort, StandBy
from edged.topics import version_id

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

MAX_EMPTY_ROUNDS = DEFAULTS.misses_to_leave
"""After so many every board has left the pool, and what they all died of would not be told."""
EMPTY_PAUSE_SECONDS = 30.0


def fold(state: RunState) -> ev.Fold:
    """The merge of what was accepted, in board order, weighted by what was ordered. Of ranks that stepped
    together one update counts for all; silos weigh what was accepted of their budgets."""
    if state.groups:
        done = [group for _, group in sorted(state.groups.items()) if group.standing == "done"]
        items = tuple((g.uploader, state.assignments[g.uploader].order, g.samples) for g in done)
    else:
        accepted = [a for a in state.assignments.values() if a.status == "accepted"]
        items = tuple((a.board, a.order, a.samples) for a in sorted(accepted, key=lambda a: a.board))
    return ev.Fold(state.run, state.round, version_id(state.run, state.merges + 1), items)


def maybe_fold(run: "Rounds", now: float) -> None:
    """Merge once no order is open."""
    s = run.state
    if s.phase != "running" or s.open_count or s.stepping:
        return
    if any(a.status == "accepted" for a in s.assignments.values()):
        s.phase = "folding"
        run.emit(ev.Save(), fold(s))
    else:
        _close(run, now)


def merged(run: "Rounds", event: ev.Folded | ev.FoldFailed, now: float) -> None:
    """The merge is done, or failed: then the run pauses, and resuming tries it again."""
    s = run.state
    if s.phase != "folding" or event.round != s.round:
        run.note("-", "stray_merges", f"a merge of round {event.round} while round {s.round} is {s.phase}")
    elif isinstance(event, ev.FoldFailed):
        s.paused, s.reason = True, f"round {s.round} could not be merged: {event.error}"
        run.note("-", "failed_merges", s.reason)
        run.emit(ev.Save(), ev.Announce())
    else:
        s.merges, s.manifest = s.merges + 1, event.manifest
        _close(run, now)


def _close(run: "Rounds", now: float) -> None:
    s = run.state
    accepted = [a for a in s.assignments.values() if a.status == "accepted"]
    for a in s.assignments.values():
        tried = a.samples or a.silo
        if tried and a.status != "accepted" and a.board in run.fleet.boards:
            silo = s.silo_of(a.board)
            if silo is not None:
                allocation.miss(silo.control, a.board)
    s.last = records.round_row(s, now)
    run.emit(
        *(
            ev.Record("board_round", records.board_row(s, a))
            for a in s.assignments.values()
            if a.samples or a.status in ("abandoned", "expired", "refused")
        )
    )
    run.emit(ev.Record("round", s.last))
    if accepted and s.settings.evaluate:
        run.afterwards.append(ev.Evaluate(s.run, s.round, s.version))
    s.empty_rounds = 0 if accepted else s.empty_rounds + 1
    if s.accepted >= s.target:
        finish(run, f"all {s.accepted} samples are accepted", True)
        return
    s.phase = "gathering"
    if s.empty_rounds >= MAX_EMPTY_ROUNDS:
        reasons = sorted({a.reason for a in s.assignments.values() if a.reason})
        s.paused, s.reason = (
            True,
            f"{s.empty_rounds} rounds without one accepted update: {'; '.join(reasons)}",
        )
    elif s.empty_rounds:
        s.not_before = now + min(EMPTY_PAUSE_SECONDS, 2.0 ** (s.empty_rounds - 1))
    run.emit(ev.Save(), ev.Announce())


def finish(run: "Rounds", reason: str, complete: bool) -> None:
    """End the run: open orders are aborted, everybody stands by."""
    s = run.state
    for a in s.assignments.values():
        if a.open:
            if s.pushes is not None:
                s.pushes.tally(a.board).returned += a.samples
            s.open_count -= 1
            if not a.silo:
                s.silos[ALL].queue.give_back(a.pieces)
            a.settle("abandoned", reason, s.clock)
            run.emit(ev.Send(a.board, Abort(a.order, s.boot, s.term, reason)), ev.Discard(a.board, a.order))
    for group in s.groups.values():
        if group.standing not in ("done", "lost"):
            group.standing = "lost"
            s.silos[group.silo].queue.give_back(group.pieces)
    if s.pushes is not None:
        asynchronous.halt(run, s.clock)
    s.phase, s.reason = "done", reason
    run.emit(ev.Save())
    run.emit(
        *(ev.Send(name, StandBy(s.boot, s.term, f"the run is over: {reason}")) for name in s.assignments)
    )
    run.emit(ev.Finished(s.run, reason, complete), ev.Announce())
