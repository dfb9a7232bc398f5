"""What the operator wants of the running run: weights, policy, pause, end, boards. Pure.

Changes hold from the next round on and are recorded with who asked; values are checked before they get here.
"""

from typing import TYPE_CHECKING, Any

from coordinator import allocation, asynchronous, closing
from coordinator import events as ev
from coordinator.run import RunState

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

Wish = ev.Weigh | ev.Choose | ev.Hold | ev.Halt | ev.Admission


def obey(run: "Rounds", wish: Wish, now: float) -> None:
    """Carry out a wish; one that cannot be carried out is noted and changes nothing."""
    s = run.state
    if s.phase == "done":
        return
    match wish:
        case ev.Weigh():
            record(run, wish.who, "weights", {"w_t": wish.w_t, "w_e": wish.w_e})
            for control in (s.rule, *(silo.control for silo in s.silos.values())):
                control.w_t, control.w_e = wish.w_t, wish.w_e
        case ev.Choose():
            try:
                s.rule = allocation.chosen(s.rule, wish.policy, wish.options)
            except ValueError as error:
                run.note("-", "refused_controls", str(error))
                return
            record(run, wish.who, "policy", {"policy": wish.policy, "options": wish.options})
            for silo in s.silos.values():
                silo.control = allocation.chosen(silo.control, wish.policy, wish.options)
        case ev.Hold():
            record(run, wish.who, "pause" if wish.paused else "resume", {})
            _hold(run, wish.paused, now)
        case ev.Halt():
            record(run, wish.who, "stop", {"reason": wish.reason})
            closing.finish(run, wish.reason, False)
        case ev.Admission():
            record(run, wish.who, wish.what, {"board": wish.board})
            _admit(run, wish.board, wish.what, now)
    run.emit(ev.Save(), ev.Announce())


def _hold(run: "Rounds", paused: bool, now: float) -> None:
    s = run.state
    s.paused = paused
    if paused and s.phase == "gathering":
        s.phase, s.reason = "paused", ""  # what it waited for says nothing of the pause
    elif not paused:
        s.empty_rounds, s.not_before = 0, now
        for silo in s.silos.values():
            for board in silo.control.memories:
                allocation.readmit(silo.control, board)
        if s.pushes is not None:
            asynchronous.resume(run)
        if s.phase == "paused":
            s.phase = "gathering"
        elif s.phase == "folding" and s.reason:
            s.reason = ""
            run.emit(closing.fold(s))


def _admit(run: "Rounds", board: str, what: str, now: float) -> None:
    s = run.state
    if what == "drain" and board not in s.drained:
        s.drained.append(board)
    elif what == "readmit":
        s.drained = [name for name in s.drained if name != board]
        for silo in s.silos.values():
            allocation.readmit(silo.control, board)
        if s.pushes is not None:
            s.pushes.left = [name for name in s.pushes.left if name != board]
    elif what == "forget":
        run.lose(s.assignments.get(board), "abandoned", "forgotten by the operator", now)
        run.fleet.forget(board)
        for silo in s.silos.values():
            silo.control.memories.pop(board, None)
            silo.control.shares.pop(board, None)


def from_round(state: RunState, what: str) -> int:
    """The round from which such a wish holds if it is made now: the next one. Asynchronous orders begin one
    by one, so that boards leave, come back, pause and go on in the present period."""
    present = state.pushes is not None and what not in ("weights", "policy")
    return max(1, state.round) if present else state.round + 1


def own_pause(run: "Rounds", event: ev.Event, before: bool) -> None:
    """Keep, too, that the run has paused by itself; `before`: it was paused before the event."""
    if run.state.paused and not (event.paused if isinstance(event, ev.Hold) else before):
        record(run, "", "pause", {"reason": run.state.reason})


def record(run: "Rounds", who: str, what: str, values: dict[str, Any]) -> None:
    """Keep who did what to the run."""
    since = from_round(run.state, what)
    run.emit(
        ev.Record("control", {"run": run.state.run, "from_round": since, "who": who, "what": what, **values})
    )
