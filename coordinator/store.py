"""What must outlive the coordinator: one SQLite file, written by one process in durable transactions.

Rows and the run's state go in together, so a reader (and a restart) never sees one without the other.
Models and updates are files beside it (`checkpoints`); reading it back is `history`'s.
"""

import fcntl
import os
import sqlite3
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from coordinator.checkpoints import Checkpoints
from coordinator.history import FILE, History
from coordinator.schema import TABLES, SchemaError, migrate
from coordinator.telemetry.lines import SET_AFTER_SECONDS, is_set
from edged.controls import RunSettings

NEWEST = " UNION ALL ".join(f"SELECT at FROM {table}" for table in ("starts", "runs", "states"))


class StoreError(RuntimeError):
    """The store cannot be opened, read or written; the text names the file, the cause and the way out."""


class Row(Struct, frozen=True):
    """A row to keep: `table` is a key of `schema.TABLES`, whose key columns stand in `values`."""

    run: str
    table: str
    values: dict[str, Any]


class Count(Struct, frozen=True):
    """So often has this happened with this board, and the last time in words."""

    board: str
    counter: str
    count: int
    text: str


class Store:
    """Opened by one coordinator at a time; used from one thread."""

    def __init__(self, folder: Path, *, clock: Callable[[], float] = time.time) -> None:
        self.folder = folder
        self.path = folder / FILE
        self.checkpoints = Checkpoints(folder)
        self._clock = clock
        try:
            folder.mkdir(parents=True, exist_ok=True)
            self._lock = _locked(folder / "lock")
        except OSError as error:
            raise StoreError(
                f"store {folder}: {error.strerror}; give a folder that this user may write "
                "([store] folder in the config, or STATE_DIRECTORY)"
            ) from None
        try:
            self._connection = _opened(self.path)
        except (sqlite3.Error, SchemaError) as error:
            os.close(self._lock)
            raise _explained(self.path, error) from None
        self._newest: float = self._connection.execute(f"SELECT max(at) FROM ({NEWEST})").fetchone()[0] or 0.0
        self._undated = False
        """The newest stamp is no date of its own: rows say so, for who wants to know when they were."""
        self.history = History(self._connection, folder)

    def _stamp(self) -> float:
        """Now; by a clock that was not set since the machine started, the last date that was known here: a
        board without a battery begins in 1970, which nothing is to be dated with or sorted by."""
        now = self._clock()
        self._undated = not is_set(now)
        if self._undated:
            now = max(self._newest, SET_AFTER_SECONDS)
        self._newest = max(self._newest, now)
        return now

    def raise_term(self, boot: str, host: str, above: int = 0) -> int:
        """A term higher than each before and than `above`; every order of this start carries it."""
        with self._transaction() as connection:
            newest = connection.execute("SELECT max(term) FROM starts").fetchone()[0] or 0
            term = max(int(newest), above) + 1
            connection.execute("INSERT INTO starts VALUES (?, ?, ?, ?)", (term, boot, host, self._stamp()))
        return term

    def ask(self, run: str, settings: RunSettings, who: str) -> None:
        """A run that was promised and is being prepared, until `add_run` or `unask`."""
        values = (run, self._stamp(), who, msgspec.json.encode(settings).decode())
        with self._transaction() as connection:
            connection.execute("DELETE FROM asked")
            connection.execute("INSERT INTO asked VALUES (?, ?, ?, ?)", values)

    def unask(self) -> None:
        """What was promised cannot begin, or need not."""
        with self._transaction() as connection:
            connection.execute("DELETE FROM asked")

    def asked(self) -> tuple[str, RunSettings, str] | None:
        """The run that was promised and has not begun, its settings and who asked."""
        row = self._connection.execute("SELECT run, settings, who FROM asked").fetchone()
        return None if row is None else (row[0], msgspec.json.decode(row[1], type=RunSettings), row[2])

    def add_run(
        self,
        run: str,
        settings: RunSettings,
        task_hash: str,
        task_source: str = "",
        state: bytes | None = None,
    ) -> None:
        """A new run; `task_source` is the task's file. Raises StoreError for a name that is taken."""
        values = (run, self._stamp(), task_hash, task_source, msgspec.json.encode(settings).decode())
        with self._transaction() as connection:
            if connection.execute("SELECT 1 FROM runs WHERE run = ?", (run,)).fetchone():
                raise StoreError(f"run {run} is in the store already; give another --name")
            connection.execute(
                "INSERT INTO runs (run, at, task_hash, task_source, settings) VALUES (?, ?, ?, ?, ?)", values
            )
            if state is not None:
                connection.execute("INSERT INTO states VALUES (?, ?, ?)", (run, values[1], state.decode()))
            connection.execute("DELETE FROM asked")

    def end_run(self, run: str, reason: str, complete: bool) -> None:
        """The run is over: it will not be resumed."""
        with self._transaction() as connection:
            connection.execute(
                "UPDATE runs SET ended = ?, reason = ?, complete = ? WHERE run = ?",
                (self._stamp(), reason, int(complete), run),
            )

    def save(
        self, rows: Sequence[Row] = (), counts: Sequence[Count] = (), state: tuple[str, bytes] | None = None
    ) -> None:
        """Keep all of it or nothing; on return it is on the disk. `state` is (run, JSON).

        Raises StoreError; the same call may be made again later, nothing of it has been kept.
        """
        now = self._stamp()
        with self._transaction() as connection:
            for row in rows:
                _insert(connection, row, now, self._undated)
            connection.executemany(
                "INSERT OR REPLACE INTO counters (board, counter, at, count, text) VALUES (?, ?, ?, ?, ?)",
                [(item.board, item.counter, now, item.count, item.text) for item in counts],
            )
            if state is not None:
                connection.execute(
                    "INSERT INTO states VALUES (?, ?, ?) "
                    "ON CONFLICT (run) DO UPDATE SET at = excluded.at, state = excluded.state",
                    (state[0], now, state[1].decode()),
                )

    def close(self) -> None:
        """Give the file up; a second call does nothing."""
        if self._lock >= 0:
            self._connection.close()
            os.close(self._lock)
            self._lock = -1

    def _transaction(self) -> "_Transaction":
        return _Transaction(self._connection, self.path)


class _Transaction:
    def __init__(self, connection: sqlite3.Connection, path: Path) -> None:
        self._connection = connection
        self._path = path

    def __enter__(self) -> sqlite3.Connection:
        try:
            self._connection.execute("BEGIN IMMEDIATE")
        except sqlite3.Error as error:
            raise _explained(self._path, error) from None
        return self._connection

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, _: object) -> None:
        if error is None:
            try:
                self._connection.execute("COMMIT")
                return
            except sqlite3.Error as failed:
                error = failed
        # A full disk rolls back by itself; then there is nothing left to undo.
        if self._connection.in_transaction:
            self._connection.execute("ROLLBACK")
        if isinstance(error, sqlite3.Error):
            raise _explained(self._path, error) from None


def _insert(connection: sqlite3.Connection, row: Row, now: float, undated: bool) -> None:
    table = TABLES[row.table]
    columns = ["run", *table.keys, "at", "row"]
    values = [
        row.run,
        *(row.values[key] for key in table.keys),
        now,
        msgspec.json.encode({**row.values, "undated": True} if undated else row.values).decode(),
    ]
    # Names come from TABLES, never from outside.
    names = ", ".join(f'"{column}"' for column in columns)
    places = ", ".join("?" * len(columns))
    connection.execute(f"INSERT OR REPLACE INTO {table.name} ({names}) VALUES ({places})", values)


def _opened(path: Path) -> sqlite3.Connection:
    """With today's tables. Raises sqlite3.Error, SchemaError."""
    connection = sqlite3.connect(path, timeout=5.0, isolation_level=None)
    try:
        # FULL: in WAL mode anything less leaves a committed state to the page cache.
        for pragma in ("journal_mode = WAL", "synchronous = FULL", "foreign_keys = ON"):
            connection.execute(f"PRAGMA {pragma}")
        migrate(connection)
    except (sqlite3.Error, SchemaError):
        connection.close()
        raise
    return connection


def _locked(path: Path) -> int:
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        holder = os.read(descriptor, 200).decode(errors="replace").strip() or "unknown"
        os.close(descriptor)
        raise StoreError(
            f"store {path.parent}: in use by another coordinator on this machine (process {holder}); "
            "stop that one first, or give another folder"
        ) from None
    os.ftruncate(descriptor, 0)
    os.pwrite(descriptor, f"{os.getpid()}\n".encode(), 0)
    return descriptor


def _explained(path: Path, error: Exception) -> StoreError:
    text = str(error)
    if isinstance(error, SchemaError):
        return StoreError(f"store {path}: {text}")
    if "full" in text:
        return StoreError(f"store {path}: the disk is full; free some space there, the run waits for it")
    if "not a database" in text or "malformed" in text or "corrupt" in text:
        return StoreError(
            f"store {path}: damaged ({text}); move it aside (mv '{path}' '{path}.damaged') "
            "to begin a new one: checkpoints beside it are kept"
        )
    if "locked" in text or "busy" in text:
        return StoreError(f"store {path}: {text}; another program holds a write lock on it")
    if "readonly" in text or "unable to open" in text:
        return StoreError(f"store {path}: {text}; give a folder that this user may write")
    return StoreError(f"store {path}: {text}")
