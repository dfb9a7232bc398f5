"""Runs out of a coordinator's store, for commands that look back; its coordinator may be at work on it."""

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import typer

from coordinator.commands._surroundings import connected
from coordinator.commands.exits import CommandError
from coordinator.comparison import Recorded
from coordinator.config import load
from coordinator.history import History
from edged.controls import GetRounds, GetRuns

TOLD_ROUNDS = 10
"""So many of the newest rounds fit into an answer over the broker."""


def store_folder(store: Path | None, config: Path | None) -> Path:
    """The folder named on the command line, else the configured one."""
    return store.expanduser() if store is not None else load(config).store_folder()


class NoRunError(CommandError):
    """No such run, or no store where it was looked for."""


@contextmanager
def opened(folder: Path) -> Iterator[History]:
    """The store in the folder, read only. Raises CommandError naming the folder and the way out, NoRunError
    where there is none."""
    try:
        history = History.open(folder)
    except FileNotFoundError:
        raise NoRunError(f"{folder}: no runs are stored there; name the folder with --store") from None
    except sqlite3.Error as error:
        raise CommandError(f"store {folder}: cannot be read: {error}") from None
    try:
        yield history
    except sqlite3.Error as error:
        raise CommandError(f"store {folder}: cannot be read: {error}") from None
    finally:
        history.close()


def looked_at(
    context: typer.Context,
    run: str | None,
    *,
    store: Path | None,
    config: Path | None,
    broker: str | None,
    fleet: str | None,
) -> Recorded:
    """The run in the store where it is there and was named, else as the coordinator tells it."""
    if store is not None or (run is not None and broker is None and _holds(store_folder(None, config), run)):
        with opened(store_folder(store, config)) as history:
            return recorded(history, run or history.newest_run() or "")
    with connected(context, config, broker, fleet) as client:
        data = client.demand(GetRounds(run, TOLD_ROUNDS)).data
        runs = {row["run"]: row for row in client.demand(GetRuns()).data["runs"]}
    if data["run"] not in runs:
        raise CommandError(f"the coordinator lists too many runs to tell of {data['run']}: read its --store")
    return Recorded(
        runs[data["run"]],
        rounds=tuple(data["rounds"]),
        boards=tuple(data["board_rounds"]),
        closed=tuple(data["closed"]),
        evaluations=tuple(data["evaluations"]),
        decisions=tuple(data["decisions"]),
    )


def _holds(folder: Path, run: str) -> bool:
    try:
        with opened(folder) as history:
            return history.known(run)
    except CommandError:
        return False


def recorded(history: History, run: str) -> Recorded:
    """All that comparisons need of a run. Raises NoRunError for one that is not in the store."""
    runs = {row["run"]: row for row in history.runs()}
    if run not in runs:
        known = ", ".join(list(runs)[:8]) or "none"
        more = " …" if len(runs) > 8 else ""
        raise NoRunError(f"no run {run} in this store; there are: {known}{more} (in {history.folder})")
    return Recorded(
        runs[run],
        rounds=tuple(history.rows("round", run)),
        boards=tuple(history.board_rounds(run)),
        closed=tuple(history.rows("closed", run)),
        evaluations=tuple(sorted(history.rows("evaluation", run), key=lambda row: int(row["round"]))),
        decisions=tuple(history.rows("decision", run)),
    )
