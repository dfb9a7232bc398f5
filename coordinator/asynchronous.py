"""Asynchronous updates: every board has an order of its own, each update is applied as it arrives. Pure.

An update is applied in order of arrival, one after another; each makes a version, and its board gets the next
order from the newest. A push that was lost, came twice or came late counts once or not at all: orders, their
reports and their stored updates are those of every regime (`assignments`, `hearing`, `reports`).
"""

from typing import TYPE_CHECKING

from coordinator import closing, dealing, periods, pushes
from coordinator import events as ev
from coordinator.assignments import Assignment
from coordinator.controller.staleness import mixing
from coordinator.pushes import Pushes
from coordinator.run import RunState
from coordinator.silos import ALL
from edged.messages import Accepted, Refused, Report, Train
from edged.topics import version_id

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

LONGEST_PAUSE_SECONDS = 30.0


def begin(run: "Rounds", ready: tuple[str, ...], now: float) -> None:
    """The boards that a run waited for are there: its first period, or after a pause the present one."""
    s, first = run.state, run.state.round == 0
    if first and not periods.turn(run, ready, now):
        return
    s.phase, s.reason = "running", ""
    run.emit(ev.Announce())
    if first and s.settings.evaluate:
        run.afterwards.append(ev.Evaluate(s.run, 0, s.version))


def tend(run: "Rounds", now: float) -> None:
    """After every event: apply what waits, give orders to boards without one, all said after one save."""
    s, p = run.state, _of(run)
    if s.phase != "running":
        return
    before = (s.open_count, len(p.pending), p.applying)
    _apply_next(run, now)
    if not s.paused:
        dealing.deal(run, now)
    elif not s.open_count and not p.pending:
        s.phase = "paused"
    if run.saying or before != (s.open_count, len(p.pending), p.applying) or s.phase == "paused":
        run.emit(ev.Save(), *run.saying, ev.Announce())
        run.saying.clear()


def reported(run: "Rounds", a: Assignment, report: Report, now: float) -> None:
    """The update of an open order can be fetched, unless it is too old by now."""
    age = staleness_of(run, a)
    bound = _of(run).settings.bound
    if bound is not None and age > bound:
        _drop(run, a, age, now)
    else:
        run.emit(ev.Save(), collect(run, a, report), ev.Announce())


def collect(run: "Rounds", a: Assignment, report: Report) -> ev.Collect:
    """How the update of a reported order is fetched and checked."""
    assert report.manifest is not None
    assert isinstance(a.message, Train)
    rate = None
    if _of(run).settings.grain == "gradient":
        rate = (run.state.settings.learning_rate or 0.0) * _scale(run, a.samples)
    return ev.Collect(a.board, a.order, report.manifest, a.message.model, rate)


def stored(run: "Rounds", a: Assignment, now: float) -> None:
    """The checked update lies on the disk: from here on it cannot be lost any more."""
    if a.status == "reported" and a.report is not None:
        a.settle("stored", "", now)
        _of(run).pending.append(a.board)
        if _of(run).applying or _of(run).trouble:
            run.emit(ev.Save())  # else it is applied at once, after a save


def applied(run: "Rounds", event: ev.Applied | ev.ApplyFailed, now: float) -> None:
    """The first of the stored updates is in the new version, or cannot be."""
    s, p = run.state, _of(run)
    if not p.applying or event.version != version_id(s.run, s.merges + 1):
        run.note("-", "stray_merges", f"{event.version} is made, the newest version is {s.version}")
        return
    p.applying = False
    a = s.assignments[p.pending[0]]
    if isinstance(event, ev.ApplyFailed) and not event.unusable:
        s.paused, p.trouble = True, event.error
        s.reason = f"the update of {a.order} could not be applied: {event.error}"
        run.note("-", "failed_merges", s.reason)
        run.emit(ev.Save(), ev.Announce())
        return
    p.pending.pop(0)
    if isinstance(event, ev.ApplyFailed):
        run.note(a.board, "refused_updates", f"{a.order}: {event.error}")
        run.saying.append(ev.Send(a.board, Refused(a.order, s.boot, s.term, event.error)))
        a.settle("reported", "", now)
        run.lose(a, "refused", event.error, now)
        return
    _accept(run, a, event, now)


def lost(run: "Rounds", a: Assignment, now: float) -> None:
    """An order came to nothing; its samples are in the queue again."""
    s, p = run.state, _of(run)
    pusher, tally = p.pusher(a.board), p.tally(a.board)
    pusher.failures += 1
    pusher.not_before = now + _pause(pusher.failures)
    tally.lost += 1
    tally.returned += a.samples
    tally.reason = a.reason
    p.barren += 1
    if p.barren >= closing.MAX_EMPTY_ROUNDS * max(1, len(p.members)):
        s.paused, p.barren = True, 0
        s.reason = f"no update was accepted for a long time, the last order was lost: {a.reason}"


def closed(run: "Rounds", report: Report) -> None:
    """The account of an order is closed."""
    tally, pusher = _of(run).tally(report.board), _of(run).pusher(report.board)
    tally.parts, tally.closed = pushes.add(tally.parts, report.parts), tally.closed + 1
    if report.order == pusher.holding:
        tally.held, pusher.holding = pushes.joined(tally.held, report.parts.wait), ""


def resume(run: "Rounds") -> None:
    """What could not be applied is tried again, and so are boards whose orders came to nothing."""
    p = _of(run)
    p.trouble, p.barren, p.left, run.state.reason = "", 0, [], ""
    for pusher in p.boards.values():
        pusher.failures, pusher.not_before = 0, 0.0


def halt(run: "Rounds", now: float) -> None:
    """The run is over: what is open now counts no more, what was accepted has its rows."""
    p = _of(run)
    p.pending, p.applying = [], False
    if p.tallies:
        periods.close(run, now)


def versions(state: RunState) -> set[str]:
    """Model versions that boards work from, or that an update still to be checked was made from."""
    return {a.message.model for a in state.assignments.values() if a.open and isinstance(a.message, Train)}


def staleness_of(run: "Rounds", a: Assignment) -> int:
    """Versions made since the model that the order was given."""
    message = a.message
    assert isinstance(message, Train)
    return run.state.merges - int(message.model.rpartition(".")[2])


def _of(run: "Rounds") -> Pushes:
    found = run.state.pushes
    assert found is not None
    return found


def _pause(failures: int) -> float:
    return (
        0.0 if failures < dealing.FAILURES_TO_STEP_BACK else min(LONGEST_PAUSE_SECONDS, 2.0 ** (failures - 2))
    )


def _scale(run: "Rounds", samples: int) -> float:
    """b_k / mean(b) over the boards that take part, or 1."""
    p = _of(run)
    if p.settings.scale == "none":
        return 1.0
    sizes = [dealing.share(run, board) for board in p.members]
    return samples * len(sizes) / sum(sizes) if sum(sizes) else 1.0


def _apply_next(run: "Rounds", now: float) -> None:
    s, p = run.state, _of(run)
    while p.pending and not p.applying and not p.trouble:
        a = s.assignments[p.pending[0]]
        age = staleness_of(run, a)
        if p.settings.bound is not None and age > p.settings.bound:
            p.pending.pop(0)
            _drop(run, a, age, now)
            continue
        p.applying = True
        run.saying.append(_apply(run, a, age))


def _apply(run: "Rounds", a: Assignment, age: int) -> ev.Apply:
    s, p = run.state, _of(run)
    factor, scale = p.factor(age), _scale(run, a.samples)
    gradient = p.settings.grain == "gradient"
    a.age, a.factor, a.scale = age, factor, scale
    return ev.Apply(
        s.run,
        version_id(s.run, s.merges + 1),
        s.version,
        a.board,
        a.order,
        a.samples,
        p.settings.grain,
        (s.settings.learning_rate or 0.0) * scale * factor
        if gradient
        else mixing(p.settings.alpha, scale * factor),
        p.settings.momentum,
        (s.settings.weight_decay or 0.0) if gradient else 0.0,
    )


def _accept(run: "Rounds", a: Assignment, event: ev.Applied, now: float) -> None:
    s, p = run.state, _of(run)
    assert a.report is not None
    s.merges, s.manifest = s.merges + 1, event.manifest
    a.settle("accepted", "", now)
    s.open_count -= 1
    s.accepted += a.samples
    s.silos[ALL].accepted += a.samples
    p.barren = 0
    pushes.count(p.tally(a.board), p.pusher(a.board), a.age, a.samples, a.report)
    run.emit(ev.Record("push", periods.push_row(s, a)))
    told = ev.Send(a.board, Accepted(a.order, s.boot, s.term))
    if s.accepted >= s.target:
        periods.close(run, now)
        run.emit(ev.Save(), told)
        closing.finish(run, f"all {s.accepted} samples are accepted", True)
        return
    run.saying.append(told)
    if s.accepted >= s.round * s.settings.budget:
        periods.close(run, now)
        periods.turn(run, tuple(p.members), now)


def _drop(run: "Rounds", a: Assignment, age: int, now: float) -> None:
    """Too old to count: the board's work is lost, its samples are not."""
    s, p = run.state, _of(run)
    why = f"it is {age} versions old, the bound is {p.settings.bound}"
    a.settle("refused", why, now)
    a.age = age
    s.open_count -= 1
    s.silos[ALL].queue.give_back(a.pieces)
    pusher, tally = p.pusher(a.board), p.tally(a.board)
    pusher.dropped += 1
    tally.dropped += 1
    tally.returned += a.samples
    run.note(a.board, "stale_updates", f"{a.order}: {why}")
    run.emit(ev.Record("push", periods.push_row(s, a)))
    run.saying += [
        ev.Discard(a.board, a.order),
        ev.Send(a.board, Refused(a.order, s.boot, s.term, why)),
    ]
