"""Whether a board's report counts, and if not why, in words. Pure.

A report counts once, for the order that is open, from the process it was given to. What it claims is held
against what was ordered and how much time has passed here; its weight is never its own claim.
"""

from coordinator.assignments import Assignment
from coordinator.group import Group
from edged.messages import Manifest, Report, Train
from edged.orders import round_name

CLOCK_SLACK_SECONDS = 2.0
LENGTH_SLACK_BYTES = 64 * 1024
MOST_STATES = 3.2
"""A model with its optimizer's state (Adam: two numbers a parameter) is so many times as long."""


def stray(report: Report, assignment: Assignment | None, regime: str) -> str:
    """Why the report belongs to no open order of this board, in the regime's words; empty when it does."""
    if assignment is None:
        return "is of no order, this board has none"
    if report.order != assignment.order:
        other = _difference(report.order, assignment.order, round_name(regime))
        return f"is of {other}; the open order is {assignment.order}"
    if report.boot != assignment.boot:
        return "comes from another process of this board than the order went to"
    if report.stage != "trained":
        return f"has the unknown stage {report.stage!r}"
    if not assignment.open:
        return f"comes late: the order is {assignment.status} ({assignment.reason or 'over'})"
    return ""


def fault(report: Report, assignment: Assignment, group: Group | None, model: Manifest, now: float) -> str:
    """What is wrong with the report of an open order; empty when it counts."""
    seconds = report.parts.compute.seconds
    if group is not None:
        why = _of_a_rank(report, assignment, group)
        if why:
            return why
    elif report.samples != assignment.samples:
        return f"{report.samples} samples reported, {assignment.samples} ordered"
    if report.steps < 1 or seconds <= 0:
        return f"{report.steps} steps in {seconds} s is no training"
    passed = None if assignment.sent_seconds is None else now - assignment.sent_seconds
    if passed is not None and seconds > passed + CLOCK_SLACK_SECONDS:
        return f"claims {seconds:.1f} s of compute, {passed:.1f} s after the order went out"
    if report.steady.samples > report.samples or report.steady.seconds > seconds + 1e-6:
        return "its steady part is larger than the whole"
    if report.manifest is None:
        return "announces no update"
    if report.manifest.length_bytes > MOST_STATES * model.length_bytes + LENGTH_SLACK_BYTES:
        return f"announces {report.manifest.length_bytes} bytes for a model of {model.length_bytes}"
    return ""


def _of_a_rank(report: Report, assignment: Assignment, group: Group) -> str:
    """Ranks may change their parts on the way; together they must have trained all of it."""
    said = report.synchronous
    if said is None:
        return "says nothing of its group"
    if said.group != group.name and len(group.boards) > 1:
        return f"was trained in group {said.group!r}, not in {group.name!r}"
    if said.samples != group.samples or said.world != len(group.boards):
        return f"{said.samples} samples by {said.world} ranks, {group.samples} by {len(group.boards)} ordered"
    message = assignment.message
    fixed = isinstance(message, Train) and message.rendezvous is not None and not message.rendezvous.stepwise
    if fixed and report.samples != assignment.samples:
        return f"{report.samples} samples reported, {assignment.samples} ordered"
    return "" if report.samples <= group.samples else f"{report.samples} of {group.samples} samples reported"


def _difference(got: str, want: str, turn: str) -> str:
    names = ("run", turn, "board", "attempt")
    parts = [
        f"another {name} ({a})"
        for name, a, b in zip(names, got.split("."), want.split("."), strict=False)
        if a != b
    ]
    return " and ".join(parts) or "another order"
