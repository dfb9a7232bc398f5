"""Points of a recorded run are those that the live coordinator would have written of it."""

from pathlib import Path
from typing import Any

from coordinator.history import History
from coordinator.store import Row, Store
from coordinator.telemetry import recorded
from coordinator.telemetry.schema import Point
from edged.controls import RunSettings
from tests.coordinator.telemetry.takers import board_row, round_row

SILOS = {
    "north": {"boards": ["pi5"], "left_out": {"old": "no gloo"}},
    "south": {"boards": ["nano"], "left_out": {}},
}


def written(
    folder: Path, settings: RunSettings, rows: list[tuple[str, dict[str, Any]]], **store_options: Any
) -> list[Point]:
    store = Store(folder, **store_options)
    store.raise_term("boot", "host")
    store.add_run("r1", settings, "hash")
    for table, row in rows:
        store.save([Row("r1", table, row)])
    store.end_run("r1", "over", True)
    store.close()
    history = History.open(folder)
    try:
        run = next(run for run in history.runs() if run["run"] == "r1")
        return list(recorded.points(history, "lab", run))
    finally:
        history.close()


def power_row(board: str) -> dict[str, Any]:
    return {
        "run": "r1",
        "round": 1,
        "board": board,
        "watts": {"pmic": 5.0},
        "joules": {"pmic": 10.0},
        "headline": "pmic",
        "basis": "calibrated",
        "temperature_celsius": 50.0,
        "throttled": [],
        "sampler_cpu_seconds": 0.5,
    }


def test_boards_stand_in_the_silos_that_they_were_ranks_of(tmp_path: Path) -> None:
    settings = RunSettings("digits", "digits", 200, 1, regime="hfl-ddp", batch=10, learning_rate=0.1)
    boards = ("pi5", "nano", "old")
    rows = [
        *(("power", power_row(board)) for board in boards),
        *(("board_round", board_row(board, 1)) for board in boards),
        ("round", round_row(1, silos=SILOS)),
    ]
    points = written(tmp_path, settings, rows)
    for measurement in ("power", "board_round"):
        found = {p.tags["board"]: p.tags["silo"] for p in points if p.measurement == measurement}
        assert found == {"pi5": "north", "nano": "south", "old": "north"}


def test_rows_of_a_time_when_the_clock_was_not_set_are_left_out_and_counted(tmp_path: Path) -> None:
    settings = RunSettings("digits", "digits", 200, 2, batch=10, learning_rate=0.1)
    clock = iter([*[40.0] * 3, *[1_790_000_000.0] * 2])
    rows = [("round", round_row(1)), ("round", round_row(2))]
    points = written(tmp_path, settings, rows, clock=lambda: next(clock))
    assert [(p.fields["round"], p.nanoseconds) for p in points] == [(2, 1_790_000_000 * 10**9)]
    history = History.open(tmp_path)
    assert recorded.unset(history, "r1") == 1
    history.close()


def test_what_sensors_cost_is_written_with_the_headline(tmp_path: Path) -> None:
    settings = RunSettings("digits", "digits", 200, 1, batch=10, learning_rate=0.1)
    old = {name: value for name, value in power_row("nano").items() if name != "sampler_cpu_seconds"}
    points = written(tmp_path, settings, [("power", power_row("pi5")), ("power", old)])
    costs = {p.tags["board"]: p.fields.get("sampler_cpu_seconds") for p in points if p.measurement == "power"}
    assert costs == {"pi5": 0.5, "nano": None}, "rows of an earlier version do not know it"
