"""`edged-coordinator top`: the fleet live, a line for each board; without a terminal plain lines."""

import time
from collections.abc import Iterator, Mapping
from itertools import groupby
from typing import Annotated, Any

import typer

from coordinator.cleaning import visible
from coordinator.client import Client, NobodyAnswersError, NoBrokerError
from coordinator.commands import _show, _updates
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    connected,
    told,
)
from coordinator.commands.rounds import joules_by_basis
from coordinator.silos import ALL
from edged.controls import GetBoards, GetRounds, GetStatus
from edged.orders import round_name

Data = Mapping[str, Any]
ROUNDS = 60
COLUMNS = ["board", "share", "done", "seconds", "joules", "wait", "cost", "basis", "watts", "phase"]
SIDES = "<>>>>>><><"


@told
def top(
    context: typer.Context,
    *,
    interval: Annotated[float, typer.Option("--interval", min=0.2, help="Seconds between two looks.")] = 1.0,
    once: Annotated[bool, typer.Option("--once", help="Show it once and end.")] = False,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Watch the fleet: each board's share, seconds, joules, wait, cost and basis; w_e over the rounds.

    Seconds, joules and wait are of the last round. With --json each look is a document on a line.

    Example: edged-coordinator top --interval 2
    """
    with connected(context, config, broker, fleet) as client:
        if as_json or once or not _show.is_terminal():
            _lines(client, interval, once, as_json)
        else:
            _live(client, interval)


def look(client: Client) -> dict[str, Any]:
    """Everything on the screen, asked for now."""
    status = client.demand(GetStatus()).data
    boards = client.demand(GetBoards()).data["boards"]
    run = (status.get("run") or {}).get("run")
    rounds = client.demand(GetRounds(run, ROUNDS, brief=True)).data if run else {}
    shown = {key: rounds.get(key, []) for key in ("rounds", "board_rounds")}
    return {"status": status, "boards": boards, **shown}


def heading(seen: Data) -> Iterator[str]:
    """What stands above the boards."""
    status = seen["status"]
    fleet, run = status["fleet"], status.get("run")
    if run is None:
        yield f"{status['host']}: no run{', one is being prepared' if status.get('preparing') else ''}"
        return
    turn = round_name(run["settings"]["regime"])
    yield (
        f"{run['run']}  {run['phase']}  "
        f"{turn} {run['round']}/{run['settings']['rounds']}"
        f"{_show.beyond(run['round'], run['settings']['rounds'])}  "
        f"{fleet['policy']}  w_t {_show.weight(fleet['w_t'])}  w_e {_show.weight(fleet['w_e'])}"
    )
    waiting = fleet.get("waiting") or ()
    if waiting:
        yield "waits for " + ", ".join(
            f"{item['board']} ({item['what']}, {_show.duration(item['since_seconds'])})" for item in waiting
        )
    for name, group in (run.get("groups") or {}).items():
        if run["phase"] == "running" and group["failures"]:
            of = "" if name == ALL else f"silo {name}: "
            yield f"{of}attempt {group['attempt']}, {group['standing']}; before: {group['failures'][-1]}"
    if not waiting and fleet.get("reason"):
        yield str(fleet["reason"])
    for alert in status.get("alerts") or ():
        yield f"alert: {alert['text']}"
    yield from _updates.lines(fleet.get("pushes") or {}, (fleet.get("last") or {}).get("waited") or {})
    if seen["rounds"]:
        last = seen["rounds"][-1]
        longest = f" ({last['longest']})" if last.get("longest") else ""
        took = f"makespan {_show.duration(last['makespan_seconds'])}{longest}"
        if "updates" in last:
            took = _show.duration(last["wall_seconds"])
        yield (f"last {turn}: {took}, compute {joules_by_basis(last)}; w_e {weights(seen['rounds'])}")


def weights(rounds: list[Data]) -> str:
    """w_e over rounds: `0 (rounds 1-4), 0.25 (5-12)`."""
    spans = []
    for value, rows in groupby(rounds, key=lambda row: row["w_e"]):
        numbers = [row["round"] for row in rows]
        span = str(numbers[0]) if len(numbers) == 1 else f"{numbers[0]}-{numbers[-1]}"
        spans.append(f"{_show.weight(value)} ({span})")
    return ", ".join(spans[-6:])


def rows(seen: Data) -> list[list[str]]:
    """A line for each board."""
    last = seen["rounds"][-1] if seen["rounds"] else None
    parts = {
        row["board"]: row
        for row in seen["board_rounds"]
        if last is not None and row["round"] == last["round"]
    }
    cells = [_cells(board, parts.get(board["board"]), last) for board in seen["boards"]]
    run = seen["status"].get("run")
    if run is not None and run["settings"]["regime"] == "hfl-ddp":
        for line, board in zip(cells, seen["boards"], strict=True):
            line[0] = f"{board.get('silo') or _show.UNKNOWN}/{line[0]}"
    return cells


def _cells(board: Data, part: Data | None, last: Data | None) -> list[str]:
    seconds = part["seconds"] if part else None
    makespan = last["makespan_seconds"] if last else None
    wait = None if seconds is None or makespan is None else max(0.0, makespan - seconds)
    if part and "updates" in part:  # asynchronous: waits for nobody's compute, and its accounts tell for what
        wait = part["parts"]["wait"]["seconds"] if part["closed"] else None
    samples, done = board.get("samples"), board.get("samples_done")
    return [
        board["board"],
        "" if samples is None else f"{samples:,}",
        "" if done is None else f"{done:,}",
        _show.duration(seconds),
        _show.figure(part["joules"] if part else None),
        _show.duration(wait),
        _show.UNKNOWN if board.get("cost") is None else _show.figure(board["cost"]),
        (part["basis"] if part else "") or board.get("basis") or "no meter",
        _show.UNKNOWN if board.get("watts") is None else _show.figure(board["watts"]),
        board.get("lack") or (board.get("phase") or "" if board["link"] == "up" else f"link {board['link']}"),
    ]


def _lines(client: Client, interval: float, once: bool, as_json: bool) -> None:
    while True:
        seen = look(client)
        if as_json:
            _show.json_line(seen)
        else:
            for line in [*heading(seen), *_show.plain("", COLUMNS, rows(seen), SIDES), ""]:
                _show.line(line)
        if once:
            return
        time.sleep(interval)


def _live(client: Client, interval: float) -> None:
    from rich.console import Group
    from rich.live import Live
    from rich.text import Text

    with Live(screen=False, auto_refresh=False) as live:
        while True:
            try:
                seen = look(client)
                table = _show.rich_table("", COLUMNS, rows(seen), SIDES)
                live.update(Group(*(Text(visible(line)) for line in heading(seen)), table), refresh=True)
            except (NobodyAnswersError, NoBrokerError) as error:
                live.update(Text(f"{visible(str(error))}\nasking again; Ctrl-C ends this"), refresh=True)
            client.wait(interval)
            time.sleep(0.2)
