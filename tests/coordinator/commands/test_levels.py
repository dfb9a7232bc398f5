"""`compare hl1 hl2 hl4 hl8`: OmniLearn's levels from the command line."""

import csv
from pathlib import Path

import pytest

from coordinator.commands import _level_tables, exits
from coordinator.simulator import synchronous
from coordinator.simulator.profiles import PROFILES
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
    assert done.output.startswith("level hl8 in asp; policies on it as a fleet: compare hl8\n")
    cells = [line.split() for line in done.output.splitlines() if line.startswith("hl")]
    assert cells[0][1:5] == ["4", "4", "4", "28"]
    runs = [[row[0], *row[5:7]] for row in cells]
    kinds = ["asp uniform", "asp static", "asp dynamic", "ddp uniform", "ddp dynamic"]
    assert runs[:5] == [["hl8", *kind.split()] for kind in kinds]
    assert "8 more cores are the server's" in done.output
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
    ("arguments", "first"),
    [
        (("hl8", "--regime", "ddp"), "level hl8 in ddp; policies on it as a fleet: compare hl8"),
        (("HL8", "hl8", "--regime", "ddp"), "level hl8 in ddp; policies on it as a fleet: compare hl8"),
        (("hl8", "Hl4", "--regime", "ddp"), "levels hl4 hl8 in ddp; policies on one of them as a fleet"),
        (("hl8",), "hl8 as a fleet; as a level: compare hl8 --regime ddp (or asp)"),
        (("HL8", "--regime", "ddp", "--policies", "equal"), "hl8 as a fleet; as a level: compare hl8"),
    ],
)
def test_a_level_with_a_regime_is_played_as_one_and_without_it_is_a_fleet(
    desk: Desk, arguments: tuple[str, ...], first: str
) -> None:
    done = desk.run("compare", *arguments, "--rounds", "3")
    assert done.status == 0, done.complaint
    assert done.output.splitlines()[0].startswith(first)
    heads = [line.split()[0] for line in done.output.splitlines()[1:4]]
    assert ("policy" in heads) == ("as a fleet; " in first)


def test_every_note_of_the_levels_fits_a_line() -> None:
    notes = (*_level_tables.SYNCHRONOUS_NOTES, *_level_tables.ASYNCHRONOUS_NOTES)
    assert [note for note in notes if len(note) > _level_tables.WIDTH] == []


def test_each_column_that_is_no_plain_word_is_told_and_why_levels_can_be_equal(desk: Desk) -> None:
    said = desk.run("compare", "hl8", "--regime", "ddp", "--rounds", "3").output.splitlines()
    for column in ("cut: ", "ideal: ", "in all: ", "adjustments: ", "waiting: "):
        assert [line for line in said if line.startswith(column)], column
    hl4, hl8 = (synchronous.fixed(level, PROFILES["resnet18"], "ASP", 1)[0] for level in ("hl4", "hl8"))
    assert hl4.seconds == pytest.approx(hl8.seconds)
    assert any(note.startswith("ddp rows can be equal: ") for note in _level_tables.ASYNCHRONOUS_NOTES)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (
            ("hl8", "pma1", "--regime", "ddp"),
            "hl8 is a level and pma1 is none: compare levels with each other",
        ),
        (("hl1", "hl8", "paper-eleven"), "hl1 is a level and paper-eleven is none"),
        (("paper-eleven", "--model", "vgg11"), "--model is for levels (hl1, hl2, hl4, hl8): leave it out"),
        (
            ("hl8", "--regime", "pma"),
            "not pma: give --regime, or compare one fleet at a time: edged-coordinator",
        ),
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
