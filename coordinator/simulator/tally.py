"""Figures of each round of a run in virtual time, out of the rows that its coordinator would have stored.

Pure. Joules are None where those of some board are not known.
"""

from collections.abc import Mapping, Sequence
from statistics import mean, pstdev
from typing import Any

from msgspec import Struct

from edged.messages import PARTS

Row = Mapping[str, Any]


class RoundFigures(Struct, frozen=True):
    """One round of the whole fleet; `until_seconds` is the virtual second at which it was over."""

    round: int
    makespan_seconds: float | None
    wall_seconds: float
    until_seconds: float
    joules: dict[str, float | None]
    total_joules: float | None
    wait_share: float
    variation: float
    accepted: int
    reallocated: bool
    shares: dict[str, int]
    reason: str
    held_out: dict[str, Any] = {}


def tally(rows: Mapping[str, Sequence[Row]]) -> tuple[RoundFigures, ...]:
    """From the rows by table, as `World.rows` has them."""
    closed: dict[int, list[Row]] = {}
    for row in rows.get("closed", ()):
        closed.setdefault(row["round"], []).append(row["parts"])
    seconds: dict[int, list[float]] = {}
    for row in rows.get("board_round", ()):
        if row["seconds"] is not None:
            seconds.setdefault(row["round"], []).append(row["seconds"])
    held_out = {row["round"]: row for row in rows.get("evaluation", ())}
    before: Mapping[str, int] | None = None
    found = []
    for row in rows.get("round", ()):
        number, parts = row["round"], closed.get(row["round"], [])
        joules = {name: joules_of(parts, name) for name in PARTS}
        known = [value for value in joules.values() if value is not None]
        spent = sum(part[name]["seconds"] for part in parts for name in PARTS)
        waited = sum(part["wait"]["seconds"] for part in parts)
        found.append(
            RoundFigures(
                number,
                row["makespan_seconds"],
                row["wall_seconds"],
                row["at_seconds"],
                joules,
                sum(known) if len(known) == len(PARTS) else None,
                waited / spent if spent else 0.0,
                variation(seconds.get(number, [])),
                row["accepted"],
                before is not None and before != row["shares"],
                dict(row["shares"]),
                row["reason"],
                {
                    k: v
                    for k, v in held_out.get(number, {}).items()
                    if k not in ("run", "round", "at_seconds")
                },
            )
        )
        before = row["shares"]
    return tuple(found)


def joules_of(parts: Sequence[Row], name: str) -> float | None:
    """Of one part over all boards; a part that did not occur used nothing, one without a reading is None."""
    values = [0.0 if part[name]["seconds"] == 0 else part[name]["joules"] for part in parts]
    return None if None in values else float(sum(values))


def variation(seconds: Sequence[float]) -> float:
    """Population standard deviation over the mean."""
    return pstdev(seconds) / mean(seconds) if seconds else 0.0
