"""What somebody should look at now: silent boards, rounds past their deadline, lost meters, points that wait.

Pure: facts in, alerts out. The page, `status`, `/metrics` and an operator's command show the same ones.
"""

from collections.abc import Iterable
from typing import Annotated, Final, Literal

from msgspec import Meta, Struct

Kind = Literal["board-silent", "round-late", "energy-lost", "telemetry", "spool-growing", "store"]
KINDS: Final[tuple[Kind, ...]] = (
    "board-silent",
    "round-late",
    "energy-lost",
    "telemetry",
    "spool-growing",
    "store",
)
SENSED: Final = ("measured", "calibrated")


class AlertOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """[alerts]: `command` gets each alert as JSON on its standard input when it begins and when it ends."""

    command: tuple[str, ...] = ()
    silent_seconds: Annotated[float, Meta(ge=10)] = 30.0
    spool_share: Annotated[float, Meta(gt=0, le=1)] = 0.5


class Alert(Struct, frozen=True):
    """One thing; `board` is empty where it is the coordinator's own."""

    kind: Kind
    board: str
    text: str
    way_out: str = ""

    @property
    def id(self) -> str:
        """The same while it lasts, whatever its text."""
        return f"{self.kind}:{self.board}"


class Seen(Struct, frozen=True):
    """Of one board. `promised` is the basis announced at its birth, `basis` that of its newest reading."""

    board: str
    link: str
    takes_part: bool
    heard_seconds_ago: float
    promised: str = ""
    basis: str | None = None
    """None: no reading since its birth."""
    energy_reason: str = ""
    """Why its last report had no joules; empty where it had some, or none was heard."""


class Waited(Struct, frozen=True):
    """An order that is open, or that ran out in the present round."""

    board: str
    what: str
    since_seconds: float
    until_seconds: float | None
    expired: bool = False


class Facts(Struct, frozen=True):
    """All that alerts depend on; `sending` is how the telemetry goes (`sender.Sending`)."""

    boards: tuple[Seen, ...] = ()
    waiting: tuple[Waited, ...] = ()
    problem: str = ""
    sending_state: str = "stored"
    sending_text: str = ""
    spool_bytes: int = 0
    spool_limit_bytes: int = 0
    spool_problem: str = ""
    dropped_rounds: int = 0


def alerts(facts: Facts, options: AlertOptions) -> tuple[Alert, ...]:
    """In order of kind and board; empty when all is well."""
    found = [*_silent(facts, options), *_late(facts), *_unmetered(facts), *_unsent(facts, options)]
    if facts.problem:
        found.append(Alert("store", "", facts.problem, "the run waits; it goes on by itself"))
    return tuple(sorted(found, key=lambda alert: (KINDS.index(alert.kind), alert.board)))


def _silent(facts: Facts, options: AlertOptions) -> Iterable[Alert]:
    for seen in facts.boards:
        if not seen.takes_part:
            continue
        if seen.link == "lost":
            text = f"{seen.board}: link lost, heard last {seen.heard_seconds_ago:.0f} s ago"
        elif seen.link == "up" and seen.heard_seconds_ago > options.silent_seconds:
            text = f"{seen.board}: connected, but nothing was heard for {seen.heard_seconds_ago:.0f} s"
        else:
            continue
        yield Alert("board-silent", seen.board, text, f"journalctl -u edged on {seen.board}")


def _late(facts: Facts) -> Iterable[Alert]:
    for waited in facts.waiting:
        if waited.expired or waited.until_seconds == 0:
            over = "ran out" if waited.expired else "is past its deadline"
            text = f"{waited.board}: its order {over}: {waited.what}, {waited.since_seconds:.0f} s"
            yield Alert("round-late", waited.board, text, "its samples are dealt again")


def _unmetered(facts: Facts) -> Iterable[Alert]:
    for seen in facts.boards:
        if seen.link != "up" or seen.promised not in SENSED:
            continue
        why = seen.energy_reason
        if seen.basis is not None and seen.basis != seen.promised:
            why = f"its joules are {seen.basis or 'unknown'} now"
        if why:
            text = f"{seen.board}: announced {seen.promised} joules: {why}"
            yield Alert("energy-lost", seen.board, text, "edged doctor on the board")


def _unsent(facts: Facts, options: AlertOptions) -> Iterable[Alert]:
    if facts.sending_state == "settings":
        yield Alert("telemetry", "", facts.sending_text, "edged-coordinator telemetry check")
    elif facts.spool_problem:
        yield Alert("telemetry", "", f"points cannot be kept: {facts.spool_problem}", "free some space there")
    if facts.dropped_rounds:
        yield Alert(
            "spool-growing", "", f"{facts.dropped_rounds} points of rounds were lost", "telemetry import"
        )
    elif facts.spool_limit_bytes and facts.spool_bytes > options.spool_share * facts.spool_limit_bytes:
        text = f"{facts.spool_bytes:,} of {facts.spool_limit_bytes:,} bytes wait to be sent"
        if facts.sending_text:
            text += f": {facts.sending_text}"
        yield Alert("spool-growing", "", text, "the oldest watts are dropped when it is full")
