"""Reading the coordinator's store: runs, rounds, decisions, changes, counters; also from another process.

It writes nothing. Rows come back as the dicts that were recorded, with the wall-clock second (`at`) added.
"""

import sqlite3
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

import msgspec

from coordinator.controller import NAMED_WEIGHTS
from coordinator.schema import TABLES

FILE: Final = "edged.sqlite3"


class History:
    """Over an open connection; `History.open(folder)` makes a read-only one of its own."""

    def __init__(self, connection: sqlite3.Connection, folder: Path) -> None:
        self._connection = connection
        self.folder = folder

    @classmethod
    def open(cls, folder: Path) -> "History":
        """Read a store that another process may be writing. Raises FileNotFoundError, sqlite3.Error."""
        path = folder / FILE
        if not path.exists():
            raise FileNotFoundError(f"{folder}: no store of a coordinator there")
        uri = path.resolve().as_uri()
        # Without a -wal nobody writes; `immutable` then reads in a folder where we may not make a -shm.
        mode = "mode=ro" if path.with_name(FILE + "-wal").exists() else "immutable=1"
        return cls(sqlite3.connect(f"{uri}?{mode}", uri=True, timeout=5.0), folder)

    def close(self) -> None:
        """Close the connection (of a History made by `open`)."""
        self._connection.close()

    def runs(self) -> list[dict[str, Any]]:
        """All runs, newest first: settings, how many rounds are recorded, and policy and weights by now."""
        changes = self._changes()
        rows = self._connection.execute(
            "SELECT run, at, ended, reason, complete, task_hash, task_source, settings, "
            "(SELECT count(*) FROM rounds WHERE rounds.run = runs.run) "
            "FROM runs ORDER BY at DESC, rowid DESC"
        )
        return [
            {
                "run": run,
                "at": at,
                "ended": ended,
                "reason": reason,
                "complete": None if complete is None else bool(complete),
                "task_hash": task_hash,
                "task_source": source,
                "settings": (asked := msgspec.json.decode(settings)),
                "rounds": rounds,
                "now": _by_now(asked, changes.get(run, ())),
            }
            for run, at, ended, reason, complete, task_hash, source, settings, rounds in rows
        ]

    def _changes(self) -> dict[str, list[dict[str, Any]]]:
        found: dict[str, list[dict[str, Any]]] = {}
        for run, text in self._connection.execute("SELECT run, row FROM controls ORDER BY id"):
            row = msgspec.json.decode(text)
            if row.get("what") in ("policy", "weights"):
                found.setdefault(run, []).append(row)
        return found

    def newest_run(self) -> str | None:
        """The run that was started last."""
        row = self._connection.execute("SELECT run FROM runs ORDER BY at DESC, rowid DESC LIMIT 1").fetchone()
        return row[0] if row else None

    def unfinished_runs(self) -> list[str]:
        """Runs that have not ended, newest first."""
        rows = self._connection.execute(
            "SELECT run FROM runs WHERE ended IS NULL ORDER BY at DESC, rowid DESC"
        )
        return [run for (run,) in rows]

    def known(self, run: str) -> bool:
        """True for the name of a run in the store."""
        return self._connection.execute("SELECT 1 FROM runs WHERE run = ?", (run,)).fetchone() is not None

    def task_source(self, run: str) -> str | None:
        """The file that the run's task was found in."""
        row = self._connection.execute("SELECT task_source FROM runs WHERE run = ?", (run,)).fetchone()
        return row[0] if row else None

    def settings(self, run: str) -> dict[str, Any]:
        """What a known run was started with."""
        row = self._connection.execute("SELECT settings FROM runs WHERE run = ?", (run,)).fetchone()
        return dict(msgspec.json.decode(row[0]))

    def state(self, run: str) -> bytes | None:
        """The run's state as it was saved last (JSON)."""
        row = self._connection.execute("SELECT state FROM states WHERE run = ?", (run,)).fetchone()
        return row[0].encode() if row else None

    def rows(self, table: str, run: str, last: int | None = None) -> list[dict[str, Any]]:
        """The `last` recorded rows of a table of `schema.TABLES` for a run (None: all), oldest first."""
        name = TABLES[table].name
        found = self._connection.execute(
            f"SELECT at, row FROM {name} WHERE run = ? ORDER BY rowid DESC LIMIT ?",
            (run, -1 if last is None else last),
        ).fetchall()
        return [{**msgspec.json.decode(row), "at": at} for at, row in reversed(found)]

    def board_rounds(self, run: str, first: int = 0) -> list[dict[str, Any]]:
        """One row per round from `first` on and board, in that order."""
        found = self._connection.execute(
            "SELECT at, row FROM board_rounds WHERE run = ? AND round >= ? ORDER BY round, board",
            (run, first),
        )
        return [{**msgspec.json.decode(row), "at": at} for at, row in found]

    def restarts(self, run: str, most: int) -> list[dict[str, Any]]:
        """The newest `most` coordinators that took the run up while it went on, oldest first."""
        found = self._connection.execute(
            "SELECT starts.at, term, host FROM starts JOIN runs ON starts.at > runs.at "
            "AND (runs.ended IS NULL OR starts.at < runs.ended) WHERE run = ? ORDER BY term DESC LIMIT ?",
            (run, most),
        ).fetchall()
        return [
            {"run": run, "what": "restart", "term": term, "host": host, "at": at}
            for at, term, host in reversed(found)
        ]

    def counters(self) -> dict[str, dict[str, tuple[int, str]]]:
        """How often and, in words, the last one: by board, then by counter."""
        counted: dict[str, dict[str, tuple[int, str]]] = {}
        query = "SELECT board, counter, count, text FROM counters ORDER BY board, counter"
        for board, counter, count, text in self._connection.execute(query):
            counted.setdefault(board, {})[counter] = (count, text)
        return counted


def _by_now(settings: dict[str, Any], changes: Sequence[dict[str, Any]]) -> dict[str, Any]:
    """Policy and weights after all wishes of the operator, and how many those were."""
    now = {key: settings.get(key) for key in ("policy", "w_t", "w_e")}
    for row in changes:
        if row["what"] == "weights":
            now |= {"w_t": row["w_t"], "w_e": row["w_e"]}
        else:
            named = NAMED_WEIGHTS.get(row["policy"])
            now |= {"policy": row["policy"]} | ({"w_t": named.w_t, "w_e": named.w_e} if named else {})
    return {**now, "changes": len(changes)}
