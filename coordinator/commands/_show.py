"""How commands print: JSON, plain aligned tables or, on a terminal, rich ones; what is unknown is said.

It knows nothing of what the figures mean.
"""

import sys
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec
import typer

from coordinator.cleaning import visible, visible_json

UNKNOWN = "?"
"""Shown where a figure is not known: never 0."""

Cell = str | int | float | None


def json(value: Any) -> None:
    """One JSON document on standard output."""
    typer.echo(visible_json(msgspec.json.format(msgspec.json.encode(value), indent=2).decode()))


def json_line(value: Any) -> None:
    """One JSON document on a line of its own, at once."""
    typer.echo(visible_json(msgspec.json.encode(value).decode()))
    sys.stdout.flush()


def is_terminal() -> bool:
    """True when a person watches standard output."""
    return sys.stdout.isatty()


def progress(text: str) -> None:
    """A line about what is going on, on standard error, so that standard output stays the answer."""
    line(text, err=True)


def line(text: str, err: bool = False) -> None:
    """One line for people. Whatever the text brings along, it stays one line and steers no terminal."""
    typer.echo(visible(text), err=err)


def figure(value: float | None, digits: int = 3) -> str:
    """So many significant digits, without an exponent; `?` for what is not known."""
    if value is None:
        return UNKNOWN
    if value == 0:
        return "0"
    whole = len(str(int(abs(value)))) if abs(value) >= 1 else 0
    if whole >= digits:
        return f"{value:,.0f}"
    decimals = digits - whole if whole else min(6, digits + _leading_zeros(abs(value)))
    return f"{value:.{decimals}f}"


def percent(value: float | None) -> str:
    """A share as per cent."""
    return UNKNOWN if value is None else f"{100 * value:.1f} %"


def duration(seconds: float | None) -> str:
    """Seconds as people say them."""
    if seconds is None:
        return UNKNOWN
    if seconds < 100:
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 60:
        return f"{minutes} min {rest} s"
    hours, minutes = divmod(minutes, 60)
    return f"{hours} h {minutes} min"


def weight(value: float | None) -> str:
    """A weight as it was given."""
    return UNKNOWN if value is None else f"{value:g}"


def beyond(number: int, of: int) -> str:
    """Why there is a round 401 of 400."""
    return " (a short last round makes up for lost samples)" if number > of > 0 else ""


def shares(given: Mapping[str, int], most: int = 6) -> str:
    """Board and samples; of large fleets the first few, and how many more there are."""
    shown = " ".join(f"{board}:{n}" for board, n in list(given.items())[:most])
    return shown + (f" and {len(given) - most:,} more" if len(given) > most else "")


def table(
    title: str,
    columns: Sequence[str],
    rows: Sequence[Sequence[Cell]],
    right: str = "",
    *,
    keys: int = 1,
    between: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """A table; `right` has a character for each column, `>` for those that are aligned to the right. The
    first `keys` columns say what a row is: a narrow terminal has them in each part of a wide table.
    `between` has the lines that stand after so many rows, across all columns."""
    cells = [["" if cell is None else str(cell) for cell in row] for row in rows]
    sides = right.ljust(len(columns), "<")
    if is_terminal():
        from rich.console import Console

        from coordinator.commands import _terminal

        clean = [[visible(cell) for cell in row] for row in cells]
        lines = {after: [visible(text) for text in texts] for after, texts in (between or {}).items()}
        _terminal.show(Console(), visible(title), columns, clean, sides, keys=keys, between=lines)
        return
    shown = plain(title, columns, cells, sides)
    head = len(shown) - len(cells)
    for number, text in enumerate(shown):
        line(text)
        for remark in (between or {}).get(number + 1 - head, ()):
            line(remark)


def plain(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], sides: str) -> list[str]:
    """The lines of a table without any control character; the last column is not padded."""
    title, cells = visible(title), [[visible(cell) for cell in row] for row in cells]
    widths = [max(len(row[i]) for row in [columns, *cells]) for i in range(len(columns))]

    def padded(row: Sequence[str]) -> str:
        parts = zip(row, widths, sides, strict=False)
        return "  ".join(f"{cell:{side}{width}}" for cell, width, side in parts).rstrip()

    return [*([title] if title else []), padded(columns), *(padded(row) for row in cells)]


def rich_table(title: str, columns: Sequence[str], cells: Sequence[Sequence[str]], sides: str) -> Any:
    """A rich Table; foreign text in it is never read as markup."""
    from rich import box
    from rich.table import Table
    from rich.text import Text

    made = Table(title=visible(title) or None, title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for column, side in zip(columns, sides, strict=False):
        made.add_column(column, justify="right" if side == ">" else "left", overflow="fold")
    for row in cells:
        made.add_row(*(Text(visible(cell)) for cell in row))
    return made


def _leading_zeros(value: float) -> int:
    """Zeros between the point and the first other digit."""
    count = 0
    while value < 0.1 and count < 6:
        value *= 10
        count += 1
    return count
