"""What a board's birth, state or report does to the running round. Pure.

Rules: a lost link ends nothing; a repeated message changes nothing; whatever a board sends can at worst
cost the run that board's share of one round.
"""

from typing import TYPE_CHECKING

from coordinator import allocation, asynchronous, attempts, records, reports
from coordinator import events as ev
from coordinator.assignments import Assignment
from edged.messages import Accepted, Birth, Refused, Report, StandBy, State

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

NO_ORDER = {"done": "the run is over", "paused": "the run is paused"}
"""Why a board gets no order now, by the run's phase."""


def born(run: "Rounds", birth: Birth, now: float) -> None:
    """A birth, will or farewell (ARCHITECTURE 7.2)."""
    change = run.fleet.hear(birth, now)
    a = run.state.assignments.get(birth.board)
    if change == "ignored":
        return run.note(
            birth.board, "old_births", f"its word {birth.link!r} is of an older process or connection"
        )
    if change == "duplicate":
        text = "duplicate id: " + " and ".join(run.fleet.boards[birth.board].rivals)
        run.note(birth.board, "duplicate_ids", text)
        run.lose(a, "abandoned", text, now)
        run.emit(ev.Send(birth.board, StandBy(run.state.boot, run.state.term, text)))
    elif a is not None and (a.open or a.status == "attending"):
        if birth.boot != a.boot:
            run.lose(a, "abandoned", "its process was restarted", now)
        elif birth.link == "closed":
            run.lose(a, "abandoned", "it stopped cleanly", now)
        elif birth.link == "up":
            a.repeat_at(now)
            run.repeat(a, now)
    elif birth.link == "up" and run.state.phase != "gathering":
        text = run.lack(birth.board, now)
        if run.state.pushes is not None and run.state.phase == "running" and not text:
            return run.emit(ev.Announce())  # its order comes at once
        text = text or NO_ORDER.get(run.state.phase, "a round is running, the next may be yours")
        run.emit(ev.Send(birth.board, StandBy(run.state.boot, run.state.term, text)))
    return run.emit(ev.Announce())


def heard(run: "Rounds", state: State, now: float) -> None:
    """A state message: acknowledges, moves or gives up the board's order."""
    seen = run.fleet.boards.get(state.board)
    if seen is None or state.boot != seen.birth.boot:
        return run.note(state.board, "foreign_states", "a state of a process that did not announce itself")
    seen.state, seen.heard_seconds = state, now
    if state.term > run.state.term:
        run.note(state.board, "newer_terms", f"obeys term {state.term}: another coordinator is newer")
    a = run.state.assignments.get(state.board)
    if a is None or a.boot != state.boot:
        return None
    if a.open and state.abandoned == a.order:
        return run.lose(a, "abandoned", state.reason or "the board gave it up", now)
    group = attempts.of(run, a.board)
    if group is not None:
        attempts.heard(run, group, a, state, now)
        if run.state.assignments.get(state.board) is not a:
            return None  # it has another order by now
    if state.order == a.order:
        if a.join is None or state.joined == a.join.group or state.phase != "training":
            a.confirm(now)
        a.progress(state.samples_done, state.chunks_held, now)
    elif a.open and a.acknowledged:
        a.repeat_at(now)
    return None


def reported(run: "Rounds", report: Report, now: float) -> None:
    """A report: closes an account, or announces the update of the open order."""
    if report.stage == "closed":
        return _closed(run, report)
    s, a = run.state, run.state.assignments.get(report.board)
    if (
        a is not None
        and report.order == a.order
        and report.boot == a.boot
        and a.status in ("reported", "stored", "accepted")
    ):
        run.note(report.board, "duplicate_reports", f"{report.order} was reported before")
        if a.status == "accepted":
            run.emit(ev.Send(a.board, Accepted(a.order, s.boot, s.term)))
        return None
    if a is not None and a.after and report.order == a.after and report.boot == a.boot:
        run.note(report.board, "duplicate_reports", f"{report.order} was accepted before")
        return run.emit(ev.Send(a.board, Accepted(a.after, s.boot, s.term)))
    why = reports.stray(report, a, s.settings.regime)
    if why or a is None:
        run.note(report.board, "stray_reports", f"a report {why}")
        if a is None or report.boot == a.boot:
            run.emit(ev.Send(report.board, Refused(report.order, s.boot, s.term, why)))
        return None
    if report.term < s.term:
        # The board has not heard of this coordinator yet: told the order again, it reports again.
        run.note(report.board, "older_terms", f"a report is under term {report.term}, it is {s.term} now")
        a.repeat_at(now)
        return run.repeat(a, now)
    group = attempts.of(run, a.board)
    why = reports.fault(report, a, group, s.manifest, now)
    if why:
        return refuse(run, a, "refused_reports", why, now)
    a.confirm(now)
    a.report = report
    a.settle("reported", "", now)
    a.alive(now, 0.0)
    if group is not None:
        return attempts.reported(run, group, a, report, now)
    if s.pushes is not None:
        return asynchronous.reported(run, a, report, now)
    assert report.manifest is not None
    return run.emit(ev.Save(), ev.Collect(a.board, a.order, report.manifest), ev.Announce())


def refuse(run: "Rounds", a: Assignment, counter: str, why: str, now: float) -> None:
    """The report or update of the open order does not count; its pieces are dealt again."""
    run.note(a.board, counter, f"{a.order}: {why}")
    run.emit(ev.Send(a.board, Refused(a.order, run.state.boot, run.state.term, why)))
    run.lose(a, "refused", why, now)


def _closed(run: "Rounds", report: Report) -> None:
    name, round_number, board, _ = report.order.split(".")
    if name != run.state.run or board != report.board:
        return run.note(
            report.board, "stray_reports", f"a report closes {report.order}, which is not its own order"
        )
    silo = run.state.silo_of(board)
    if silo is not None:
        allocation.settle_account(silo.control, board, report)
    if run.state.pushes is not None:
        asynchronous.closed(run, report)
    return run.emit(ev.Record("closed", records.closed_row(run.state, int(round_number), report)))
