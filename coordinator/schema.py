"""Tables of the coordinator's store and how an older file becomes a present one; it opens nothing itself.

A migration is never edited once it has been released: a change of the tables is a new one at the end.
"""

import sqlite3
from typing import Final

from msgspec import Struct

MIGRATIONS: Final = (
    """
    CREATE TABLE starts (term INTEGER PRIMARY KEY, boot TEXT NOT NULL, host TEXT NOT NULL, at REAL NOT NULL);
    CREATE TABLE runs (
        run TEXT PRIMARY KEY, at REAL NOT NULL, ended REAL, reason TEXT NOT NULL DEFAULT '', complete INTEGER,
        task_hash TEXT NOT NULL, task_source TEXT NOT NULL, settings TEXT NOT NULL
    );
    CREATE TABLE states (run TEXT PRIMARY KEY REFERENCES runs, at REAL NOT NULL, state TEXT NOT NULL);
    CREATE TABLE rounds (
        run TEXT NOT NULL, round INTEGER NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, round)
    );
    CREATE TABLE board_rounds (
        run TEXT NOT NULL, round INTEGER NOT NULL, board TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, round, board)
    );
    CREATE TABLE decisions (
        run TEXT NOT NULL, round INTEGER NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, round)
    );
    CREATE TABLE closed (
        run TEXT NOT NULL, "order" TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, "order")
    );
    CREATE TABLE evaluations (
        run TEXT NOT NULL, round INTEGER NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, round)
    );
    CREATE TABLE controls (id INTEGER PRIMARY KEY, run TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL);
    CREATE TABLE power (id INTEGER PRIMARY KEY, run TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL);
    CREATE TABLE counters (
        board TEXT NOT NULL, counter TEXT NOT NULL, at REAL NOT NULL, count INTEGER NOT NULL,
        text TEXT NOT NULL, PRIMARY KEY (board, counter)
    );
    CREATE INDEX power_of_run ON power (run, at);
    CREATE INDEX controls_of_run ON controls (run, id);
    """,
    """
    CREATE TABLE pushes (
        run TEXT NOT NULL, "order" TEXT NOT NULL, at REAL NOT NULL, row TEXT NOT NULL,
        PRIMARY KEY (run, "order")
    );
    """,
    """
    CREATE TABLE asked (run TEXT PRIMARY KEY, at REAL NOT NULL, who TEXT NOT NULL, settings TEXT NOT NULL);
    """,
)


class Table(Struct, frozen=True):
    """A table of recorded rows: the keys that are columns of their own; a row with equal keys replaces."""

    name: str
    keys: tuple[str, ...] = ()


TABLES: Final = {
    "round": Table("rounds", ("round",)),
    "board_round": Table("board_rounds", ("round", "board")),
    "decision": Table("decisions", ("round",)),
    "closed": Table("closed", ("order",)),
    "evaluation": Table("evaluations", ("round",)),
    "control": Table("controls"),
    "power": Table("power"),
    "push": Table("pushes", ("order",)),
}


class SchemaError(ValueError):
    """The file was written by a newer program."""


def version(connection: sqlite3.Connection) -> int:
    """How many of the migrations the file has seen."""
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def migrate(connection: sqlite3.Connection) -> None:
    """Bring the file to the present tables, each step a transaction. Raises SchemaError for a newer file."""
    found = version(connection)
    if found > len(MIGRATIONS):
        raise SchemaError(
            f"has tables of version {found}, this program knows {len(MIGRATIONS)}: "
            "it was written by a newer edged; install that one or give another folder"
        )
    for step in range(found, len(MIGRATIONS)):
        connection.executescript(
            f"BEGIN IMMEDIATE;{MIGRATIONS[step]};PRAGMA user_version = {step + 1};COMMIT;"
        )
