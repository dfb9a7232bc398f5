"""The store keeps rows and state together, survives a kill at any instant, and says what is wrong with it."""

import os
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.history import FILE, History
from coordinator.schema import MIGRATIONS, TABLES, version
from coordinator.store import Count, Row, Store, StoreError
from coordinator.telemetry.lines import SET_AFTER_SECONDS as EARLIEST
from edged.controls import RunSettings

NOW = 1_800_000_000.0
SETTINGS = RunSettings(task="digits", pool="digits", budget=100, rounds=3)


@pytest.fixture
def store(tmp_path: Path) -> Iterator[Store]:
    store = Store(tmp_path, clock=lambda: NOW)
    yield store
    store.close()


def round_row(number: int, **more: object) -> Row:
    return Row("r1", "round", {"round": number, **more})


def test_each_start_has_a_higher_term(tmp_path: Path) -> None:
    for expected in (1, 2, 3):
        store = Store(tmp_path)
        assert store.raise_term("boot", "host") == expected
        store.close()


def test_a_lost_store_goes_above_the_term_that_the_broker_remembers(store: Store) -> None:
    assert store.raise_term("boot", "host", above=41) == 42


def test_nothing_is_dated_by_a_clock_that_was_not_set(tmp_path: Path) -> None:
    """A board without a battery begins in 1970: what it keeps stands behind what was kept before, and the
    date is right as soon as the clock is."""
    walls = iter((20.0, 30.0, NOW, 40.0, NOW - 5.0))
    store = Store(tmp_path, clock=lambda: next(walls))
    for run in ("first", "second", "third"):
        store.add_run(run, SETTINGS, "h")
    assert [run["at"] for run in store.history.runs()] == [NOW, EARLIEST, EARLIEST]
    store.close()
    store = Store(tmp_path, clock=lambda: next(walls))
    for run in ("fourth", "fifth"):
        store.add_run(run, SETTINGS, "h")
    assert {run["run"]: run["at"] for run in store.history.runs()}["fourth"] == NOW
    assert {run["run"]: run["at"] for run in store.history.runs()}["fifth"] == NOW - 5.0
    store.close()


def test_rows_and_state_come_back(store: Store) -> None:
    store.add_run("r1", SETTINGS, "h", "t.py")
    rows = [round_row(1, makespan_seconds=2.5)]
    rows += [Row("r1", "board_round", {"round": 1, "board": board, "joules": None}) for board in "ba"]
    rows += [Row("r1", "control", {"who": "me", "action": "weights"}) for _ in range(2)]
    store.save(rows, [Count("pi4", "duplicate_reports", 2, "twice")], ("r1", b'{"round":1}'))
    history = store.history
    assert history.state("r1") == b'{"round":1}'
    assert history.rows("round", "r1") == [{"round": 1, "makespan_seconds": 2.5, "at": NOW}]
    assert [row["board"] for row in history.board_rounds("r1")] == ["a", "b"]
    assert len(history.rows("control", "r1")) == 2
    assert history.counters() == {"pi4": {"duplicate_reports": (2, "twice")}}
    (run,) = history.runs()
    assert run["rounds"] == 1
    assert run["settings"]["task"] == "digits"
    assert history.unfinished_runs() == ["r1"]


def test_a_row_that_comes_twice_is_one_row(store: Store) -> None:
    store.save([round_row(1, accepted=5), round_row(1, accepted=6)])
    assert [row["accepted"] for row in store.history.rows("round", "r1")] == [6]


def test_the_last_rounds_come_oldest_first(store: Store) -> None:
    store.save([round_row(number) for number in range(1, 6)])
    assert [row["round"] for row in store.history.rows("round", "r1", last=2)] == [4, 5]


def test_a_finished_run_is_not_resumed(store: Store) -> None:
    store.add_run("r1", SETTINGS, "h", "t.py")
    store.save(state=("r1", b"{}"))
    store.end_run("r1", "all rounds done", True)
    assert store.history.unfinished_runs() == []
    assert store.history.runs()[0]["complete"] is True


def test_a_name_is_used_once(store: Store) -> None:
    store.add_run("r1", SETTINGS, "h", "t.py")
    with pytest.raises(StoreError, match="another --name"):
        store.add_run("r1", SETTINGS, "h", "t.py")


def test_a_save_that_fails_keeps_nothing_of_it(store: Store) -> None:
    store.add_run("r1", SETTINGS, "h", "t.py")
    store.save([round_row(1)], state=("r1", b'{"round":1}'))
    with pytest.raises(StoreError):
        store.save([round_row(2)], state=("no-such-run", b"{}"))
    assert len(store.history.rows("round", "r1")) == 1
    store.save([round_row(2)], state=("r1", b'{"round":2}'))
    assert len(store.history.rows("round", "r1")) == 2


def test_a_full_disk_is_said_and_loses_nothing(store: Store) -> None:
    """SQLite's own page limit gives the error that a full disk gives."""
    store.add_run("r1", SETTINGS, "h", "t.py")
    store.save([round_row(1)], state=("r1", b'{"round":1}'))
    pages = store._connection.execute("PRAGMA page_count").fetchone()[0]
    store._connection.execute(f"PRAGMA max_page_count = {pages}")
    big = [round_row(2, text="x" * 200_000)]
    with pytest.raises(StoreError, match="disk is full"):
        store.save(big, state=("r1", b'{"round":2}'))
    assert store.history.state("r1") == b'{"round":1}'
    store._connection.execute("PRAGMA max_page_count = 100000")
    store.save(big, state=("r1", b'{"round":2}'))
    assert store.history.state("r1") == b'{"round":2}'


def test_a_damaged_file_is_named_with_the_way_out(tmp_path: Path) -> None:
    (tmp_path / FILE).write_bytes(b"this is no database, whatever its name says" * 100)
    with pytest.raises(StoreError, match=r"damaged.*mv "):
        Store(tmp_path)
    held = [file.readlink() for file in Path("/proc/self/fd").iterdir() if file.is_symlink()]
    assert tmp_path / FILE not in held


def test_a_newer_file_is_left_alone(tmp_path: Path) -> None:
    Store(tmp_path).close()
    connection = sqlite3.connect(tmp_path / FILE)
    connection.execute("PRAGMA user_version = 999")
    connection.close()
    with pytest.raises(StoreError, match="newer edged"):
        Store(tmp_path)


def test_two_coordinators_do_not_share_a_store(store: Store) -> None:
    with pytest.raises(StoreError, match=f"process {os.getpid()}"):
        Store(store.folder)


def test_a_folder_that_is_a_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "store").write_text("")
    with pytest.raises(StoreError, match="give a folder"):
        Store(tmp_path / "store")


def test_every_table_of_rows_is_made(store: Store) -> None:
    assert version(store._connection) == len(MIGRATIONS)
    for name in TABLES:
        values = {"round": 1, "board": "b", "order": "r1.1.b.1"}
        store.save([Row("r1", name, values)])
        assert store.history.rows(name, "r1") == [{**values, "at": NOW}]


def test_another_process_reads_while_it_is_written_and_after(store: Store) -> None:
    store.save([round_row(1)])
    reader = History.open(store.folder)
    store.save([round_row(2)])
    assert len(reader.rows("round", "r1")) == 2
    with pytest.raises(sqlite3.OperationalError):
        reader._connection.execute("DELETE FROM rounds")
    reader.close()
    store.close()
    reader = History.open(store.folder)
    assert len(reader.rows("round", "r1")) == 2
    reader.close()


def test_no_store_is_said(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError, match="no store"):
        History.open(tmp_path)


WRITER = """
import sys
from pathlib import Path
from coordinator.store import Row, Store
from edged.controls import RunSettings
store = Store(Path(sys.argv[1]))
if not store.history.runs():
    store.add_run("r1", RunSettings(task="t", pool="p", budget=1, rounds=1), "h", "t.py")
for n in range(int(sys.argv[2]), 100_000):
    store.save([Row("r1", "round", {"round": n})], state=("r1", b'{"round":%d}' % n))
    print(n, flush=True)
"""


def test_a_kill_at_any_instant_leaves_rows_and_state_in_step(tmp_path: Path) -> None:
    saved = 0
    for kill in range(4):
        child = subprocess.Popen(
            [sys.executable, "-c", WRITER, str(tmp_path), str(saved + 1)], stdout=subprocess.PIPE, text=True
        )
        assert child.stdout is not None
        for _ in range(5 + 7 * kill):
            told = int(child.stdout.readline())
        os.kill(child.pid, signal.SIGKILL)
        rest = child.stdout.read().split()
        child.stdout.close()
        child.wait()
        told = int(rest[-1]) if rest else told
        store = Store(tmp_path)
        numbers = [row["round"] for row in store.history.rows("round", "r1")]
        saved = numbers[-1]
        assert numbers == list(range(1, saved + 1))
        assert store.history.state("r1") == b'{"round":%d}' % saved
        assert saved >= told
        store.close()
