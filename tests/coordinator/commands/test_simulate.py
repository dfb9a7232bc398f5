"""`simulate`, `fleet` and `compare FLEET`: virtual boards from the command line."""

import csv
from pathlib import Path

import pytest

from coordinator.commands import exits
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

TWO = """
name = "two"
budget = 1000
batch = 10
rounds = 5
[[board]]
id = "fast"
samples_per_second = 100
active_watts = 5
waiting_watts = 3
[[board]]
id = "slow"
samples_per_second = 25
active_watts = 3
waiting_watts = 2
"""


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "hall").mkdir()
    return Desk(Hall(tmp_path / "hall"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("simulate", "HL8", "--rounds", "3"), "hl8: "),
        (("fleet", "show", "Paper-Eleven"), "paper-eleven: "),
        (("compare", "Hl1", "--policies", "equal", "--steady-state"), "hl1: "),
    ],
)
def test_a_fleet_that_ships_is_known_however_it_is_written(
    desk: Desk, arguments: tuple[str, ...], word: str
) -> None:
    done = desk.run(*arguments)
    assert (done.status, done.complaint) == (exits.OK, "")
    assert word in done.output


@pytest.fixture
def two(tmp_path: Path) -> Path:
    path = tmp_path / "two.toml"
    path.write_text(TWO)
    return path


def test_a_fleet_file_runs_as_it_says(desk: Desk, two: Path) -> None:
    found = desk.run("simulate", two, "--json").json
    assert found["basis"] == "simulated"
    assert [row["round"] for row in found["rounds"]] == [1, 2, 3, 4, 5]
    assert found["rounds"][-1]["shares"] == {"fast": 800, "slow": 200}
    assert found["settled"]["makespan_seconds"] == pytest.approx(8.0)
    assert found["settled"]["joules"] == pytest.approx(64.0)


def test_options_say_otherwise_than_the_file(desk: Desk, two: Path, tmp_path: Path) -> None:
    path = tmp_path / "rounds.csv"
    done = desk.run("simulate", two, "--policy", "equal", "--rounds", "3", "--noise", "0.05", "--csv", path)
    assert done.status == 0
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == 3
    spans = {float(row["makespan_seconds"]) for row in rows}
    assert len(spans) == 3
    assert all(15 < seconds < 25 for seconds in spans)
    assert "two: equal, 2 boards, 1,000 samples a round (virtual time, simulated joules)" in done.output


def test_synchronous_policies_run_in_their_regime(desk: Desk, two: Path) -> None:
    found = desk.run("simulate", two, "--regime", "ddp", "--policy", "ema-batch", "--json").json
    assert found["settled"]["makespan_seconds"] == pytest.approx(8.0, rel=0.02)
    done = desk.run("simulate", two, "--policy", "ema-batch")
    assert (done.status, "ema-batch is for ddp, not for pma" in done.complaint) == (exits.USAGE, True)


def test_asynchronous_updates_are_counted_by_board_and_age(desk: Desk, two: Path) -> None:
    arguments = ("simulate", two, "--regime", "asp", "--budget", "100")
    found = desk.run(*arguments, "--policy", "equal", "--json").json
    assert found["settings"]["policy"] == "equal"
    assert found["updates"]["counts"] == {"fast": 40, "slow": 10}
    assert found["updates"]["ages"]["slow"]["4"] > 5
    output = desk.run(*arguments).output
    assert "two: omnilearn, 2 boards" in output
    assert "updates by board fast:2" in output
    assert "round" not in output
    assert "makespan" not in output, "a period has none"
    assert output.splitlines()[1].split()[:2] == ["period", "until"]


def test_the_steady_state_is_a_line_against_its_references(desk: Desk, two: Path) -> None:
    (line,) = desk.run("simulate", two, "--steady-state", "--json").json["lines"]
    assert line["against"]["time-only"] == [pytest.approx(0.0, abs=1e-6)] * 2
    assert line["against"]["equal"][0] == pytest.approx(-0.6)


@pytest.mark.parametrize(
    ("arguments", "status", "text"),
    [
        (("simulate",), exits.USAGE, "which fleet?"),
        (("simulate", "nowhere.toml"), exits.FAILED, "give a fleet file or one of hl1"),
        (("simulate", "hl4", "--w-e", "nan"), exits.USAGE, "--w-e"),
        (("simulate", "hl4", "--regime", "dreams"), exits.USAGE, "pma, ddp, hfl-ddp, asp"),
        (("simulate", "hl4", "--regime", "asp", "--policy", "oort"), exits.USAGE, "oort is for pma"),
        (
            ("simulate", "hl4", "--regime", "ddp", "--policy", "equal", "--train", "digits"),
            exits.USAGE,
            "pma and asp",
        ),
        (("simulate", "hl4", "--regime", "asp", "--steady-state"), exits.FAILED, "asp has no steady state"),
        (("simulate", "hl4", "--option", "dreams=1"), exits.USAGE, "no option dreams"),
        (("simulate", "hl4", "--steady-state", "--train", "digits"), exits.USAGE, "needs rounds"),
        (("simulate", "hl4", "--train", "no-such-task"), exits.FAILED, "no-such-task"),
        (("compare", "hl4", "--policies", "dreams"), exits.USAGE, "no policy 'dreams'"),
        (("compare", "hl4", "--w-e", "0,2"), exits.USAGE, "between 0 and 1"),
        (("compare", "hl4", "--w-e", "-0.5"), exits.USAGE, "between 0 and 1"),
        (("compare", "hl4", "--policies", "min-energy:slack=0.5"), exits.USAGE, "slack"),
        (("compare", "hl4", "hl8"), exits.USAGE, "one fleet at a time"),
        (("compare", "hl4", "--policies", "omnilearn"), exits.USAGE, "omnilearn is for ddp"),
        (("compare", "hl4", "--rounds", "3", "--figure", "x.gif"), exits.FAILED, ".png or an .svg"),
        (("fleet", "show", "nothing"), exits.FAILED, "give a fleet file"),
    ],
)
def test_what_cannot_be_done_is_said_in_a_line(
    desk: Desk, arguments: tuple[str, ...], status: int, text: str
) -> None:
    done = desk.run(*arguments)
    assert done.status == status
    assert text in done.complaint
    assert "Traceback" not in done.complaint


def test_a_fleet_whose_floors_do_not_fit_names_board_and_bound(desk: Desk, two: Path) -> None:
    two.write_text(TWO.replace("batch = 10", "batch = 10\nglobal_batch = 1"))
    done = desk.run("simulate", two, "--regime", "ddp")
    assert done.status == exits.FAILED
    assert "the floors add up to 2000 samples, above the budget of 1000" in done.complaint


def test_compare_gives_a_line_a_policy_with_picture_and_figures(
    desk: Desk, two: Path, tmp_path: Path
) -> None:
    picture, figures = tmp_path / "two.svg", tmp_path / "two.csv"
    arguments = ("compare", two, "--policies", "equal,adaptive,min-energy:slack=1.5", "--w-e", "0,1")
    done = desk.run(*arguments, "--figure", picture, "--csv", figures, "--json")
    labels = [line["label"] for line in done.json["lines"]]
    assert labels == ["equal", "time-only (w_e = 0)", "w_e = 1", "min-energy, slack 1.5"]
    assert picture.read_text().startswith("<?xml")
    rows = list(csv.DictReader(figures.read_text().splitlines()))
    assert [row["policy"] for row in rows] == labels
    assert float(rows[1]["makespan_against_equal"]) == pytest.approx(-0.6)
    assert desk.run(*arguments).output.count("\n") == 6


def test_compare_without_policies_takes_all_of_the_regime_and_the_optimum(desk: Desk) -> None:
    found = desk.run("compare", "invented-eleven", "--steady-state", "--json").json
    assert len(found["lines"]) == 11
    assert found["lines"][-1]["joules"] == pytest.approx(3304.84, abs=0.01)
    found = desk.run("compare", "hl4", "--regime", "ddp", "--steady-state", "--w-e", "0", "--json").json
    assert {"ema-batch", "omnilearn"} <= {line["label"] for line in found["lines"]}


def test_fleets_are_listed_and_shown(desk: Desk) -> None:
    assert "paper-eleven" in desk.run("simulate", "--list").output
    assert {row["name"] for row in desk.run("fleet", "list", "--json").json} >= {"hl8", "three-silos"}
    assert "sevenzip_mips" in desk.run("fleet", "show", "paper-eleven").output
    assert len(desk.run("fleet", "show", "hl4", "--json").json["board"]) == 4


@pytest.mark.slow
def test_real_training_under_virtual_time_learns_and_seconds_stay_virtual(desk: Desk, two: Path) -> None:
    found = desk.run("simulate", two, "--train", "digits", "--rounds", "4", "--json").json
    accuracy = [row["held_out"]["accuracy"] for row in found["rounds"]]
    assert accuracy[-1] > 0.5
    assert found["rounds"][-1]["held_out"]["loss"] < found["rounds"][0]["held_out"]["loss"]
    assert found["settled"]["makespan_seconds"] == pytest.approx(8.0)
    again = desk.run("simulate", two, "--train", "digits", "--rounds", "2", "--json").json
    assert [row["held_out"] for row in again["rounds"]] == [row["held_out"] for row in found["rounds"]][:2]
