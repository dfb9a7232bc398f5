"""`advise`, `replay` and `fleet from-run`: on recorded runs and on one that goes on."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.commands import exits
from coordinator.comparison import Recorded
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.fleetfile import read
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

Record = Callable[..., Recorded]
BARE = tuple(VirtualBoard(f"b{i}", 50.0 * (i + 1), 5, 3, metered=False) for i in range(3))


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "hall").mkdir()
    return Desk(Hall(tmp_path / "hall"))


@pytest.fixture
def folder(record: Record, store: Callable[..., Path]) -> Path:
    return store(
        record("eq", policy="equal"),
        record("bare", boards=BARE, policy="equal"),
        record("eleven", boards=read("invented-eleven").board, policy="equal", budget=6000),
    )


def test_the_first_line_is_what_to_do(desk: Desk, folder: Path, tmp_path: Path) -> None:
    picture = tmp_path / "front.svg"
    done = desk.run("advise", "eleven", "--store", folder, "--draws", "10", "--figure", picture)
    assert done.status == 0
    first = done.output.splitlines()[0]
    assert first.startswith("Change to ")
    assert "edged-coordinator policy" in first
    assert "costs more than it gives" in done.output
    assert picture.read_text().startswith("<?xml")


def test_json_has_intervals_and_what_is_extrapolated(desk: Desk, folder: Path) -> None:
    found = desk.run("advise", "eq", "--store", folder, "--draws", "10", "--json").json
    assert found["sentence"].startswith("Change to ")
    present, time_only = found["predictions"][:2]
    assert present["setting"]["label"] == "equal"
    assert time_only["makespan_seconds"]["low"] <= 1.7
    assert time_only["extrapolated"] == ["slow"]


def test_without_energy_readings_seconds_are_told_and_the_status_says_so(desk: Desk, folder: Path) -> None:
    done = desk.run("advise", "bare", "--store", folder, "--draws", "10")
    assert done.status == exits.FAILED
    assert "run bare: no board has energy readings: only seconds can be told" in done.complaint
    assert done.output.startswith("Change to time-only (w_e = 0): ")
    assert "set it with: edged-coordinator policy time-only" in done.output
    assert "min-energy" not in done.output


def test_a_run_that_is_not_there_is_named_with_those_that_are(desk: Desk, folder: Path) -> None:
    for command in (("advise", "no"), ("replay", "no"), ("fleet", "from-run", "no")):
        done = desk.run(*command, "--store", folder)
        assert done.status == exits.FAILED
        assert "no run no in this store" in done.complaint


def test_of_an_asynchronous_run_the_refusal_names_what_can_be_done(
    desk: Desk, record: Record, store: Callable[..., Path]
) -> None:
    folder = store(record("asp1", regime="asp", policy="equal", budget=100, rounds=2))
    done = desk.run("advise", "asp1", "--store", folder)
    assert done.status == exits.FAILED
    assert "advice is for pma, ddp and hfl-ddp; compare it with another run instead" in done.complaint
    assert "edged-coordinator compare asp1 OTHER_RUN" in done.complaint


def test_a_run_that_goes_on_is_advised_over_the_broker(desk: Desk) -> None:
    desk.hall.add("a", "b", "c")
    desk.hall.start(rounds=6)
    desk.hall.until(lambda: len(desk.hall.rows("round")) == 3)
    found = desk.run("advise", "--draws", "10", "--json").json
    assert found["run"] == "r1"
    assert [p["setting"]["label"] for p in found["predictions"]][1:]
    assert found["basis"] == "emulated"


def test_a_replay_tells_each_round_as_it_was_and_would_have_been(
    desk: Desk, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "replay.csv"
    done = desk.run("replay", "eq", "--policy", "time-only", "--store", folder, "--csv", path)
    assert done.output.startswith("time-only instead of equal: makespans -")
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [float(row["makespan_seconds"]) for row in rows] == pytest.approx([4.0, 1.6, 1.6, 1.6])
    assert rows[1]["extrapolated"] == "slow"
    found = desk.run("replay", "eq", "--policy", "equal", "--store", folder, "--json").json
    assert found["joules"] == pytest.approx(found["recorded_joules"])


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("--policy", "dreams"), "no policy 'dreams'"),
        (("--w-e", "1.5"), "between 0 and 1"),
        (("--policy", "min-energy", "--option", "slack=0"), "slack"),
        (("--policy", "ema-batch"), "ema-batch is for ddp"),
    ],
)
def test_a_replay_under_what_is_no_policy_is_refused(
    desk: Desk, folder: Path, arguments: tuple[str, ...], text: str
) -> None:
    done = desk.run("replay", "eq", *arguments, "--store", folder)
    assert done.status == exits.USAGE
    assert text in done.complaint


def test_a_fitted_fleet_runs_in_the_simulator_and_in_compare(
    desk: Desk, folder: Path, tmp_path: Path
) -> None:
    path = tmp_path / "eq.toml"
    assert desk.run("fleet", "from-run", "eq", "--store", folder, "--out", path).status == 0
    found = desk.run("simulate", path, "--policy", "time-only", "--rounds", "4", "--json").json
    assert found["settled"]["makespan_seconds"] == pytest.approx(1.6, rel=0.02)
    done = desk.run("compare", "eq", "--policies", "equal,time-only", "--store", folder, "--json").json
    assert done["lines"][0]["makespan_seconds"] == pytest.approx(4.0, rel=0.02)
    assert "as fitted from the readings of eq" in done["notes"][0]
