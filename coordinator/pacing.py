"""Whether emulated boards kept the pace of the boards that they stand for, of a round or a whole run. Pure.

A step that took longer than on the emulated board makes its seconds and joules those of this machine.
"""

from collections.abc import Iterable, Mapping
from typing import Any, Final

BEHIND_PACE_LIMIT: Final = 0.01
"""Share of emulated steps behind their pace above which timing and joules are invalid (ARCHITECTURE 10)."""

Row = Mapping[str, Any]


def behind_pace(rows: Iterable[Row]) -> float | None:
    """Share of the steps of board rows that took longer than on the emulated board; None where none was
    emulated."""
    emulated = [row for row in rows if row["steps"] and row["basis"] == "emulated"]
    steps = sum(row["steps"] for row in emulated)
    return sum(row["behind_pace_steps"] or 0 for row in emulated) / steps if steps else None


def warning(row: Row) -> str:
    """What is to be said of a round's row; empty where its emulated boards kept their pace."""
    share = row.get("behind_pace")
    if share is None or share <= BEHIND_PACE_LIMIT:
        return ""
    return (
        f"{100 * share:.0f} % of its steps took longer than on the boards they stand for: its seconds and "
        "joules are invalid (start emulated boards with a larger --speed-scale)"
    )
