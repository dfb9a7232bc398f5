"""`edged-coordinator boards`: all boards that are known, and `drain`, `readmit`, `forget` for one of them."""

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Final

import typer

from coordinator.commands import _show, exits
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    connected,
    told,
)
from coordinator.commands.exits import CommandError
from coordinator.counters import counted
from edged.controls import Drain, Forget, GetBoards, Readmit
from edged.topics import VALID_ID

ACTIONS: Final[Mapping[str, type[Drain | Readmit | Forget]]] = {
    "drain": Drain,
    "readmit": Readmit,
    "forget": Forget,
}


@told
def boards(
    context: typer.Context,
    action: Annotated[
        str | None, typer.Argument(metavar="[drain|readmit|forget]", show_default=False)
    ] = None,
    board: Annotated[str | None, typer.Argument(metavar="[BOARD]", show_default=False)] = None,
    *,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """List the boards; or drain one (no more samples), readmit it, forget one that is gone.

    Example: edged-coordinator boards drain pi4
    """
    if action is not None and action not in ACTIONS:
        raise CommandError(f"boards {action}: it is drain, readmit or forget", exits.USAGE)
    if action is not None and (board is None or not VALID_ID.match(board)):
        raise CommandError(
            f"boards {action}: name a board" + (f", {board!r} is no board id" if board else ""), exits.USAGE
        )
    do = GetBoards() if action is None or board is None else ACTIONS[action](board)
    with connected(context, config, broker, fleet) as client:
        reply = client.demand(do)
    rows = reply.data.get("boards")
    if as_json:
        _show.json(reply if rows is None else rows)
    elif rows is None:
        _show.line(reply.text)
    else:
        show(rows)


def show(rows: Sequence[Mapping[str, Any]]) -> None:
    """The list, and below it whatever keeps a board from taking part."""
    if not rows:
        _show.line("no board was heard of yet: is `edged run` going on one, with this broker and fleet?")
        return
    columns = ["board", "link", "phase", "share", "done"]
    columns += ["s/sample", "J/sample", "basis", "watts", "what it is"]
    cells, sides = [_cells(row) for row in rows], "<<<>>>><><"
    if any(row.get("silo") for row in rows):
        columns, sides = ["board", "silo", *columns[1:]], "<" + sides
        cells = [[line[0], row.get("silo") or "", *line[1:]] for line, row in zip(cells, rows, strict=True)]
    _show.table("", columns, cells, sides)
    for row in rows:
        for remark in remarks(row):
            _show.line(f"{row['board']}: {remark}")


def remarks(row: Mapping[str, Any]) -> list[str]:
    """Why the board takes no part, what it complains of, and what was refused of it."""
    found = [str(row[key]) for key in ("lack", "reason") if row.get(key)]
    skew = row.get("skew_seconds")
    if skew is not None and abs(skew) > 5:
        found.append(
            f"its clock is {abs(skew):,.0f} s {'ahead' if skew > 0 else 'behind'}; nothing depends on it"
        )
    if row.get("throttled"):
        found.append(f"throttled: {', '.join(row['throttled'])}")
    if row.get("counters"):
        odd = counted(row["counters"])
        last = str(row.get("last_odd", ""))
        # What keeps the board out may be what was counted: a duplicate id.
        told = any(text.startswith(last) for text in found)
        found.append(odd if told else f"{odd}; last: {last}")
    return list(dict.fromkeys(found))


def _cells(row: Mapping[str, Any]) -> list[str]:
    if "boot" not in row:
        return [row["board"], row["link"], *[""] * 8]
    known = row.get("watts") is not None
    return [
        row["board"],
        row["link"],
        row["phase"] or _show.UNKNOWN,
        "" if row["samples"] is None else f"{row['samples']:,}",
        "" if row["samples_done"] is None else f"{row['samples_done']:,}",
        _show.figure(row["seconds_per_sample"]),
        _show.figure(row["joules_per_sample"]),
        row["basis"] or "no meter",
        _show.figure(row["watts"]) if known else _show.UNKNOWN,
        f"emulates {row['emulates']}" if row["emulates"] else row["model"] or row["arch"],
    ]
