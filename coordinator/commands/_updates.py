"""Asynchronous updates for people: counts and the distribution of staleness by board, never a mean alone."""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator.commands import _show
from coordinator.pushes import quantile

Row = Mapping[str, Any]
COLUMNS: Final = ("board", "updates", "samples", "too old", "behind", "staleness: versions x updates")
SIDES: Final = "<>>>><"
MOST_AGES: Final = 8


def distribution(ages: Mapping[str, int]) -> str:
    """`0 x8, 1 x1, 2 x6`; of many ages the least, the quartiles and the greatest."""
    found = sorted((int(age), n) for age, n in ages.items())
    if not found:
        return "none"
    if len(found) <= MOST_AGES:
        return ", ".join(f"{age} x{n:,}" for age, n in found)
    marks = (found[0][0], *(quantile(ages, q) for q in (0.25, 0.5, 0.75)), found[-1][0])
    return f"{' | '.join(str(mark) for mark in marks)} (least, quartiles, greatest)"


def boards(pushed: Mapping[str, Row]) -> list[list[str]]:
    """Cells by board of what `fleet/state` tells of updates."""
    return [
        [
            board,
            f"{row['updates']:,}",
            f"{row['samples']:,}",
            f"{row['dropped']:,}" if row["dropped"] else "",
            "" if row.get("behind") is None else f"{row['behind']:,}",
            distribution(row["staleness"]),
        ]
        for board, row in pushed.items()
    ]


def lines(pushed: Mapping[str, Row], waited: Mapping[str, Row]) -> Iterator[str]:
    """A small table, for status and top; `waited` are the last period's waits, where the rule makes any."""
    cells, sides = boards(pushed), SIDES
    columns: tuple[str, ...] = COLUMNS
    if waited:
        columns, sides = (*columns, "waited for others, last period"), sides + "<"
        cells = [[*row, wait(waited[row[0]]) if row[0] in waited else ""] for row in cells]
    if pushed:
        yield from _show.plain("updates", columns, cells, sides)


def wait(row: Row) -> str:
    """`3.0 s, 16.3 J emulated`; what is not known is not 0, and has its reason."""
    spent = f", {_show.figure(row['joules'])} J {row['basis']}".rstrip() if row["seconds"] else ""
    return _show.duration(row["seconds"]) + spent + (f" ({row['reason']})" if row["reason"] else "")


def rule(row: Row) -> str:
    """How updates of a period counted, in words."""
    options = ", ".join(f"{name} {value}" for name, value in (row.get("rule_options") or {}).items())
    bound = "" if row.get("bound") is None else f", dropped above {row['bound']} versions"
    return (
        f"grain {row['grain']}, staleness rule {row['rule']}{f' ({options})' if options else ''}, "
        f"scale {row['scale']}{bound}"
    )


def period_cells(row: Row, accuracy: str, joules: str) -> list[str]:
    """A line of `rounds`."""
    ages: dict[str, int] = {}
    for found in row["staleness"].values():
        for age, n in found.items():
            ages[age] = ages.get(age, 0) + n
    return [
        str(row["round"]),
        _show.duration(row["wall_seconds"]),
        joules,
        accuracy,
        " ".join(f"{board}:{n}" for board, n in sorted(row["updates"].items())),
        distribution(ages),
        " ".join(f"{board}:{n}" for board, n in sorted(row["batches"].items())),
        row["reason"],
    ]


PERIOD_COLUMNS: Final = (
    "period",
    "in all",
    "compute joules",
    "accuracy",
    "updates",
    "staleness",
    "samples an order",
    "reason",
)
PERIOD_SIDES: Final = ">>>><<<<"
