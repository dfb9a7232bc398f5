"""Tables on a terminal of any width: no figure and no word is ever broken over two lines.

Where a table is too wide its texts wrap between words; then the columns that still do not fit follow below,
each time with the first ones again; a line that is too long even so goes beyond the edge.
"""

from collections.abc import Mapping, Sequence
from typing import Any, Final

GAP: Final = 2
"""Columns of the terminal between two of a table."""
LONGEST_WORD: Final = 32
"""What is longer (a hash, a path, a board's own words) is broken after all, or it would push out the rest."""


def show(
    console: Any,
    title: str,
    columns: Sequence[str],
    cells: Sequence[Sequence[str]],
    sides: str,
    *,
    keys: int,
    between: Mapping[int, Sequence[str]] | None = None,
) -> None:
    """Print the table on a rich Console. `cells` are clean; `keys` first columns say what a row is; `between`
    has the lines after so many rows."""
    from rich.cells import cell_len
    from rich.text import Text

    from coordinator.commands._show import rich_table

    if title:
        console.print(Text(title, style="table.title"))
    by_column = [[row[i] for row in cells] for i in range(len(columns))]
    natural = [max(map(cell_len, [name, *of])) for name, of in zip(columns, by_column, strict=True)]
    least = [narrowest(*column) for column in zip(columns, by_column, sides, strict=True)]
    for number, part in enumerate(parts(least, console.width, keys)):
        found = widths([natural[i] for i in part], [least[i] for i in part], console.width)
        if number:
            console.print()
        # What stands between the rows is said once, not again by each part.
        lines = {} if number else between or {}
        stops = sorted({*lines, len(cells)} - {0}) or [0]
        for text in lines.get(0, ()):
            console.print(Text(text))
        for start, stop in zip([0, *stops], stops, strict=False):
            rows = [[row[i] for i in part] for row in cells[start:stop]]
            made = rich_table("", [columns[i] for i in part], rows, "".join(sides[i] for i in part))
            made.show_edge, made.show_header, made.padding = False, not start, (0, GAP - 1, 0, 0)
            for column, width in zip(made.columns, found, strict=True):
                column.width = width
            # Else rich would squeeze the columns, or cut them off.
            narrow, console.width = console.width, max(console.width, total(found) + GAP)
            console.print(made)
            console.width = narrow
            for text in lines.get(stop, ()) if stop else ():
                console.print(Text(text))


def narrowest(column: str, cells: Sequence[str], side: str) -> int:
    """The least width of a column: figures stay whole, texts and headings wrap between words."""
    from rich.cells import cell_len

    figures = side == ">" or not any(character.isalpha() for cell in cells for character in cell)
    words = [word for text in cells for word in text.split()]
    heading = max(map(cell_len, column.split()), default=0)
    within = max(map(cell_len, cells if figures else words), default=0)
    return max(1, heading, within if figures else min(within, LONGEST_WORD))


def parts(least: Sequence[int], room: int, keys: int) -> list[list[int]]:
    """Which columns stand side by side; the first `keys` of them in every part."""
    found: list[list[int]] = []
    part = list(range(min(keys, len(least))))
    for i in range(keys, len(least)):
        if len(part) > keys and total([least[j] for j in (*part, i)]) > room:
            found.append(part)
            part = list(range(keys))
        part.append(i)
    return [*found, part]


def widths(natural: Sequence[int], least: Sequence[int], room: int) -> list[int]:
    """The widest columns give way first, none below its least."""
    found = list(natural)
    while total(found) > room:
        yielding = [i for i, width in enumerate(found) if width > least[i]]
        if not yielding:
            break
        found[max(yielding, key=found.__getitem__)] -= 1
    return found


def total(widths: Sequence[int]) -> int:
    """Of a whole line; rich keeps one column more at its end."""
    return sum(widths) + GAP * (len(widths) - 1) + 1
