"""`compare hl1 hl2 hl4 hl8`: OmniLearn's levels from the command line."""

import csv
from pathlib import Path

import pytest

from coordinator.commands import exits
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "hall").mkdir()
    return Desk(Hall(tmp_path / "hall"))


def test_the_synchronous_tables_fit_a_narrow_terminal_and_say_what_is_not_known(desk: Desk) -> None:
    done = desk.run("compare", "hl1", "hl8", "--regime", "ddp")
    assert done.status == 0
    assert max(map(len, done.output.splitlines())) <= 80
    rows = [line.split() for line in done.output.splitlines()]
    assert ["hl8", "6", "6", "4", "32", "static"] in [row[:6] for row in rows]
    said = " ".join(done.output.split())
    assert "trained exactly 128 samples" in said
    assert "where the 85 % come from is not known" in said
    assert "cost profiles" in said
    assert "no measurements" in said


def test_json_and_csv_of_the_levels_are_whole(desk: Desk, tmp_path: Path) -> None:
    path = tmp_path / "levels.csv"
    found = desk.run(
        "compare", "hl2", "hl4", "--regime", "ddp", "--rounds", "3", "--json", "--csv", path
    ).json
    assert (found["regime"], found["table"], found["basis"]) == ("ddp", "BSP", "simulated")
    assert len(found["lines"]) == 2 * 3 * 4
    assert {row["level"] for row in found["lines"]} == {"hl2", "hl4"}
    assert len(found["schedules"]) == 3 * 4
    static = [row for row in found["lines"] if row["batches"] == "static" and row["level"] == "hl4"]
    assert all(abs(row["cut"] - row["expected_cut"]) < 0.02 for row in static)
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert len(rows) == len(found["lines"]) + len(found["schedules"])
    assert rows[0]["cores"] == "12 12 8 16"


def test_the_asynchronous_tables_show_distributions_beside_synchronous_runs(desk: Desk) -> None:
    done = desk.run("compare", "hl8", "--regime", "asp")
    assert done.status == 0
    assert max(map(len, done.output.splitlines())) <= 80
    runs = [line.split()[:3] for line in done.output.splitlines() if line.startswith("hl")]
    kinds = ["asp uniform", "asp static", "asp dynamic", "ddp uniform", "ddp dynamic"]
    assert runs[:5] == [["hl8", *kind.split()] for kind in kinds]
    assert "cores of the ASP table" in done.output
    arguments = ("compare", "hl4", "--regime", "asp", "--seed", "2", "--noise", "0.05", "--json")
    found = desk.run(*arguments).json
    assert (found["regime"], found["table"], len(found["lines"])) == ("asp", "ASP", 5)
    assert {row["samples"] for row in found["lines"]} == {25_600}
    uniform, static, dynamic, *synchronous = found["lines"]
    assert sum(uniform["staleness"].values()) == sum(uniform["updates"])
    assert static["staleness_spread"] < dynamic["staleness_spread"] < uniform["staleness_spread"]
    assert (uniform["rule"], uniform["scale"], synchronous[0]["rule"]) == ("none", "batch", None)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (("hl4", "hl8"), "give --regime, or compare one fleet at a time"),
        (("hl4", "hl8", "--regime", "pma"), "regime ddp or asp, not pma"),
        (("hl4", "hl8", "--regime", "hfl-ddp"), "regime ddp or asp, not hfl-ddp"),
        (
            ("hl1", "hl4", "--regime", "ddp", "--model", "gpt-2"),
            "profiles of resnet18, alexnet, vgg11, resnet50",
        ),
        (("hl1", "hl4", "--regime", "ddp", "--policies", "equal"), "--policies is not for levels"),
        (("hl1", "hl4", "--regime", "ddp", "--seed", "3"), "--seed is not for levels in ddp"),
        (("hl1", "hl4", "--regime", "ddp", "--steady-state"), "--steady-state is not for levels"),
        (("hl1", "paper-eleven", "--regime", "ddp"), "one fleet at a time"),
        (("hl1", "hl4", "--regime", "asp", "--policies", "equal"), "--policies is not for levels in asp"),
        (("paper-eleven", "--regime", "asp"), "asp is compared on OmniLearn's levels"),
    ],
)
def test_what_cannot_be_compared_is_said_in_a_line(desk: Desk, arguments: tuple[str, ...], text: str) -> None:
    done = desk.run("compare", *arguments)
    assert done.status == exits.USAGE
    assert text in done.complaint
    assert "Traceback" not in done.complaint
