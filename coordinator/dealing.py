"""Which boards get their next order now, of how many samples, and who has to wait for a slower one. Pure.

Of asynchronous runs: a board has at most one order, and the last ones are cut so that a run ends exactly.
"""

from statistics import fmean
from typing import TYPE_CHECKING

from msgspec import structs

from coordinator import allocation, opening, orders
from coordinator import events as ev
from coordinator.assignments import Assignment, deadline
from coordinator.pushes import Pushes
from coordinator.silos import ALL
from edged.topics import order_id

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

FAILURES_TO_STEP_BACK = 2
"""Boards whose last orders came to nothing so often are waited for by nobody, and try again after a while."""


def deal(run: "Rounds", now: float) -> None:
    """Give an order to every board that is ready and has none, the slowest first."""
    s, p = run.state, _of(run)
    ready = [board for board in sorted(run.fleet.boards) if not run.lack(board, now) and board not in p.left]
    _gather(run, ready)
    left = s.target - s.accepted - s.open_samples
    for board in sorted(ready, key=lambda name: (p.pusher(name).clock, name)):
        a = s.assignments.get(board)
        if left < 1 or (a is not None and a.open) or now < p.pusher(board).not_before:
            continue
        if not _held(run, board, now):
            samples = min(left, share(run, board))
            if samples:
                _issue(run, board, samples, now)
                left -= samples


def _gather(run: "Rounds", ready: list[str]) -> None:
    """Who takes part now. Who comes (back) stands beside the slowest of the others, so that nobody waits for
    what it has missed, nor it for what they have."""
    s, p = run.state, _of(run)
    here = {*ready, *(a.board for a in s.assignments.values() if a.open)}
    here = {board for board in here if p.pusher(board).failures < FAILURES_TO_STEP_BACK}
    stayed = [p.pusher(board).clock for board in p.members if board in here]
    for board in here.difference(p.members):
        pusher = p.pusher(board)
        pusher.clock = min(stayed, default=pusher.clock)
    p.members = sorted(here)


def _held(run: "Rounds", board: str, now: float) -> bool:
    """Whether the board has to wait for a slower one; it is told once, and its waiting is accounted."""
    s, p = run.state, _of(run)
    working = [name for name in p.members if share(run, name)] if p.ahead is not None else []
    if p.ahead is None or not working:
        return False
    slowest = min(working, key=lambda name: (p.pusher(name).clock, name))
    lead = p.pusher(board).clock - p.pusher(slowest).clock
    if lead < p.ahead:
        return False
    a = s.assignments.get(board)
    if a is None or a.status != "attending":
        why = f"waits for {slowest}: {lead} updates ahead of it, {p.ahead} at most"
        boot = run.fleet.boards[board].birth.boot
        after = _after(a, boot)
        message = structs.replace(orders.attend(s, _next_id(run, board), why), accepted=after or None)
        limit = now + s.settings.deadline_limit_seconds
        floor = s.settings.deadline_floor_seconds
        waiting = Assignment(board, boot, message, 0, (), "attending", now, limit, limit, floor)
        waiting.since_seconds = waiting.sent_seconds = now
        waiting.after = after
        waiting.due(now)
        p.pusher(board).holding = waiting.order
        s.assignments[board] = waiting
        run.saying.append(ev.Send(board, message))
    return True


def _issue(run: "Rounds", board: str, samples: int, now: float) -> None:
    s, p = run.state, _of(run)
    silo, after = s.silos[ALL], _after(s.assignments.get(board), run.fleet.boards[board].birth.boot)
    predicted = allocation.predicted_seconds(silo.control, board, samples)
    due, limit = deadline(
        now, predicted, s.settings.deadline_floor_seconds, s.settings.deadline_limit_seconds
    )
    pieces = silo.queue.take(samples)
    message = orders.train(s, silo, _next_id(run, board), pieces, limit_seconds=limit - now)
    message = structs.replace(message, grain=p.settings.grain, accepted=after or None)
    opening.assigned(run, board, message, pieces, (now, due, limit)).after = after
    p.ordered += samples
    run.saying.append(ev.Send(board, message))
    if not opening.holds_model(run, board):
        run.saying.append(ev.Deliver(s.version, board))


def _after(before: Assignment | None, boot: str) -> str:
    """The accepted order that this process of the board had before its next one; "" where there is none."""
    if before is None or before.boot != boot:
        return ""
    return (
        before.order if before.status == "accepted" else before.after if before.status == "attending" else ""
    )


def _next_id(run: "Rounds", board: str) -> str:
    pusher = _of(run).pusher(board)
    pusher.sequence += 1
    return order_id(run.state.run, run.state.round, board, pusher.sequence)


def share(run: "Rounds", board: str) -> int:
    """Samples of the board's next order: as decided; who came after the decision has the others' mean."""
    s, p = run.state, _of(run)
    shares = s.silos[ALL].control.shares
    if board in shares:
        return shares[board]
    if shares:
        return max(1, round(fmean(shares.values())))
    return s.batch if p.settings.grain == "gradient" else max(1, s.settings.budget // max(1, len(p.members)))


def _of(run: "Rounds") -> Pushes:
    found = run.state.pushes
    assert found is not None
    return found
