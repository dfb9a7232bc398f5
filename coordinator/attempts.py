"""A round of ranks that step together: all get an order, meet, train, and one update counts for all. Pure.

On any failure the attempt is over for all of them, and the whole round is done again by those who are left,
from the model at its beginning; a process group that failed is never used again (ARCHITECTURE 5, 7).
"""

from typing import TYPE_CHECKING

from msgspec import structs

from coordinator import allocation, closing, mustering, opening
from coordinator import events as ev
from coordinator.assignments import Assignment, Status
from coordinator.group import Group
from edged.messages import Abort, Accepted, Refused, Report, State

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

MOST_ATTEMPTS = 5
ANSWER_SECONDS = 10.0
"""So long ranks have to say that they have stopped; who does not is left out of the round."""


def of(run: "Rounds", board: str) -> Group | None:
    """The running group that the board is a rank of."""
    a = run.state.assignments.get(board)
    group = run.state.groups.get(a.silo) if a is not None and a.silo else None
    return group if group is not None and group.standing not in ("done", "lost") else None


def heard(run: "Rounds", group: Group, a: Assignment, state: State, now: float) -> None:
    """A rank's state: it is ready, it has joined, or it has stopped."""
    if group.standing == "failing":
        working = state.order == a.order and state.phase in ("fetching", "training", "uploading")
        if not working and a.board not in group.answered:
            group.answered.append(a.board)
            _again_if_all_answered(run, group, now)
        return
    ready = state.ready
    if group.standing == "mustering" and ready is not None and ready.order == a.order and a.ready is None:
        a.ready = ready
        a.alive(now, 0.0)
        unlike = mustering.unlike(run, group)
        if unlike is not None:
            lost(run, group, unlike[0], now, status="abandoned", reason=unlike[1])
        else:
            mustering.meet_if_ready(run, group, now)
    elif a.join is not None and state.joined == a.join.group:
        a.alive(now, 0.0)


def lost(run: "Rounds", group: Group, a: Assignment, now: float, *, status: Status, reason: str) -> None:
    """A rank gave up, died, ran out of time, or its update does not count."""
    s = run.state
    seen = run.fleet.boards.get(a.board)
    said = seen.state if seen is not None and seen.birth.boot == a.boot else None
    blames = said.blames if said is not None and said.abandoned == a.order else None
    if group.standing == "ending" and not _last_uploader(run, group, a):
        # All steps are done: what the others have counts for this one too.
        a.gone, a.reason = True, reason
        if a.board == group.uploader and not group.uploaded:
            run.emit(ev.Discard(a.board, a.order))
            _upload_from_another(run, group)
        _finish_if_done(run, group, now)
        return
    if blames is not None:
        group.blamed += [(a.board, board) for board in blames]
        group.answered.append(a.board)
    elif group.standing == "mustering" and status == "abandoned" and said is not None:
        s.unfit[a.board] = (a.boot, reason)  # nothing was trained yet: it would fail the same way again
        group.out[a.board] = reason
    else:
        group.out[a.board] = reason
    if a.board in group.out:
        a.settle(status, reason, now)
        run.state.open_count -= 1
        run.emit(ev.Discard(a.board, a.order))
    if group.standing != "failing":
        _fail(run, group, f"{a.board}: {reason}", now)
    else:
        _again_if_all_answered(run, group, now)


def reported(run: "Rounds", group: Group, a: Assignment, report: Report, now: float) -> None:
    """A rank is through: with the first one all steps are done, and its update is fetched for all."""
    if group.standing == "training":
        group.standing = "ending"
    if not group.uploader and report.manifest is not None:
        group.uploader = a.board
        run.emit(ev.Save(), ev.Collect(a.board, a.order, report.manifest), ev.Announce())
    else:
        run.emit(ev.Save(), ev.Announce())
    first = run.state.assignments[group.uploader].report if group.uploader else None
    said, others = report.synchronous, first.synchronous if first is not None else None
    if said is not None and others is not None and said.checksum != others.checksum:
        text = f"{a.board} ended with {said.checksum}, {group.uploader} with {others.checksum}"
        run.note(a.board, "unlike_replicas", text)
    _finish_if_done(run, group, now)


def stored(run: "Rounds", group: Group, a: Assignment, error: str | None, now: float) -> None:
    """The one update lies on the disk, or cannot be used."""
    if a.board != group.uploader or group.standing == "failing":
        run.emit(ev.Discard(a.board, a.order))
    elif error is not None:
        run.note(a.board, "refused_updates", f"{a.order}: {error}")
        run.emit(ev.Send(a.board, Refused(a.order, run.state.boot, run.state.term, error)))
        group.out[a.board] = error
        a.settle("refused", error, now)
        run.state.open_count -= 1
        # The same bytes lie on every rank: none of them is worth fetching.
        _fail(run, group, f"{a.board}: {error}", now)
    else:
        group.uploaded = True
        run.emit(ev.Save())
    _finish_if_done(run, group, now)


def wake(run: "Rounds", now: float) -> None:
    """Time has passed."""
    for group in list(run.state.groups.values()):
        if group.standing == "failing":
            _again_if_all_answered(run, group, now)


def _finish_if_done(run: "Rounds", group: Group, now: float) -> None:
    s, ranks = run.state, _ranks(run, group)
    waited = [a for a in ranks if a.status != "reported" and not a.gone]
    if group.standing != "ending" or not group.uploaded or waited:
        return
    group.standing = "done"
    silo = s.silos[group.silo]
    windows = [a.report.synchronous.window_seconds for a in ranks if a.report and a.report.synchronous]
    silo.step_seconds = max(windows) / group.steps if windows else silo.step_seconds
    for a in ranks:
        reason = f"all steps were done; then {a.reason}" if a.gone else ""
        a.settle("accepted", reason, now)
        s.open_count -= 1
        s.accepted += a.samples
        silo.accepted += a.samples
        if a.report is None:
            allocation.miss(silo.control, a.board)
            continue
        unused = allocation.learn(silo.control, a.board, s.round, a.report, s.settings.energy_window)
        if unused:
            run.note(a.board, "unused_readings", unused)
        run.emit(ev.Send(a.board, Accepted(a.order, s.boot, s.term)))
    run.emit(ev.Save())
    closing.maybe_fold(run, now)


def _fail(run: "Rounds", group: Group, reason: str, now: float) -> None:
    """The attempt is over for all ranks."""
    s = run.state
    group.standing, group.until_seconds = "failing", now + ANSWER_SECONDS
    group.reason = reason
    group.failures.append(reason)
    run.note("-", "failed_attempts", f"round {s.round}, silo {group.silo}, attempt {group.attempt}: {reason}")
    for a in _ranks(run, group):
        if a.open and a.board not in group.answered:
            text = f"the round begins anew: {reason}"[:500]
            run.emit(ev.Send(a.board, Abort(a.order, s.boot, s.term, text)))
        if a.open:
            run.emit(ev.Discard(a.board, a.order))
    run.emit(ev.Announce())
    _again_if_all_answered(run, group, now)


def _again_if_all_answered(run: "Rounds", group: Group, now: float) -> None:
    if group.standing != "failing":
        return
    ranks = [a for a in _ranks(run, group) if a.board not in group.out]
    silent = [a for a in ranks if a.board not in group.answered]
    if silent and now < group.until_seconds:
        return
    for a in silent:
        group.out[a.board] = f"did not say within {ANSWER_SECONDS:g} s that it has stopped"
    for board in mustering.unreachable(group):
        group.out.setdefault(board, "cannot be reached by another rank")
    _again(run, group, [a.board for a in ranks if a.board not in group.out], now)


def _again(run: "Rounds", group: Group, left: list[str], now: float) -> None:
    """The whole round anew by those who are left, or not at all."""
    s, silo = run.state, run.state.silos[group.silo]
    left = [board for board in left if not run.lack(board, now)]
    everybody = _ranks(run, group)
    shares: dict[str, int] = {}
    why = f"{group.attempt} attempts failed, the last one: {group.reason}"
    if left and group.attempt < MOST_ATTEMPTS:
        try:
            decision = allocation.allocate(silo.control, tuple(left), group.samples, s.round, s.batch)
            shares = {board: n for board, n in decision.shares.items() if n}
        except ValueError as error:
            why = str(error)
    for a in everybody:
        if a.open:
            s.open_count -= 1
            a.settle("abandoned", group.out.get(a.board, f"the attempt failed: {group.reason}"), now)
        if shares:
            a.samples, a.pieces = 0, ()  # dealt again to the others, in this same round
    if shares:
        opening.issue(run, silo, group, shares, now)
        return
    group.standing, group.reason = "lost", why
    silo.queue.give_back(group.pieces)
    run.emit(ev.Save(), ev.Announce())
    closing.maybe_fold(run, now)


def _ranks(run: "Rounds", group: Group) -> list[Assignment]:
    return [run.state.assignments[board] for board in group.boards]


def _last_uploader(run: "Rounds", group: Group, a: Assignment) -> bool:
    """Whether the update goes with this rank: nobody else has reported it, and it is not here yet."""
    others = [b for b in _ranks(run, group) if b is not a and b.status == "reported" and not b.gone]
    return a.board == group.uploader and not group.uploaded and not others


def _upload_from_another(run: "Rounds", group: Group) -> None:
    for a in _ranks(run, group):
        if a.status == "reported" and not a.gone and a.report is not None and a.report.manifest is not None:
            group.uploader = a.board
            run.emit(ev.Save(), ev.Collect(a.board, a.order, a.report.manifest))
            return


def renew(run: "Rounds", a: Assignment) -> None:
    """The coordinator was restarted: what it says bears its new term."""
    s = run.state
    if a.join is not None:
        a.join = structs.replace(a.join, term=s.term, boot=s.boot)
