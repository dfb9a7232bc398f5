"""`compare` on recorded runs: table, JSON, CSV, picture, and the refusal of unequal work."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.commands import exits
from coordinator.comparison import Recorded
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

Record = Callable[..., Recorded]


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    (tmp_path / "hall").mkdir()
    return Desk(Hall(tmp_path / "hall"))


@pytest.fixture
def folder(record: Record, store: Callable[..., Path]) -> Path:
    return store(record("eq", policy="equal"), record("ad"), record("other", seed=2))


def test_two_runs_side_by_side_with_what_became_of_the_first(desk: Desk, folder: Path) -> None:
    output = desk.run("compare", "eq", "ad", "--store", folder).output
    rows = {line[: line.index("  ")]: line.split() for line in output.splitlines() if "  " in line.strip()}
    assert rows["makespan, median round"][-2:] == [
        "-60.0",
        "%",
    ]  # 4 s by the slow board, 200 samples at 125 a second
    assert rows["joules, compute"].count("simulated") == 2
    assert rows["reallocations"] == ["reallocations", "0", "1"]
    assert rows["samples accepted"][-2:] == ["800", "800"]


def test_json_and_csv_have_plain_numbers(desk: Desk, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "figures.csv"
    found = desk.run("compare", "eq", "ad", "--store", folder, "--json", "--csv", path).json
    assert [run["policy"] for run in found["runs"]] == ["equal", "adaptive"]
    rows = list(csv.DictReader(path.read_text().splitlines()))
    assert [row["run"] for row in rows] == ["eq", "ad"]
    assert float(rows[0]["compute_joules"]) == pytest.approx(found["runs"][0]["joules"]["compute"])
    assert rows[0]["joules_basis"] == "simulated"


def test_asynchronous_runs_show_counts_and_ages_of_updates_beside_synchronous_ones(
    desk: Desk, record: Record, store: Callable[..., Path], tmp_path: Path
) -> None:
    asynchronous = record("asp", regime="asp", policy="equal", budget=100, rounds=8)
    folder = store(asynchronous, record("ddp", regime="ddp", policy="equal", batch=20))
    path = tmp_path / "figures.csv"
    output = desk.run("compare", "asp", "ddp", "--store", folder, "--csv", path).output
    rows = {
        line[: line.index("  ")]: line.split()[2:] for line in output.splitlines() if "  " in line.strip()
    }
    assert rows["updates by board"][1:4] == ["64", "16", "-"]
    assert rows["staleness, deviation"][1] == "-"
    first, second = csv.DictReader(path.read_text().splitlines())
    assert (first["regime"], first["updates"], second["updates"]) == ("asp", "80", "")


def test_a_picture_is_drawn_where_it_was_asked_for(desk: Desk, folder: Path, tmp_path: Path) -> None:
    path = tmp_path / "shares.png"
    done = desk.run("compare", "eq", "ad", "--store", folder, "--png", path)
    assert path.read_bytes().startswith(b"\x89PNG")
    assert str(path) in done.complaint


def test_unequal_work_is_refused_unless_it_is_asked_for(desk: Desk, folder: Path) -> None:
    done = desk.run("compare", "eq", "other", "--store", folder)
    assert done.status == exits.FAILED
    assert "seed is 1 in eq, 2 in other" in done.complaint
    assert "--unmatched" in done.complaint
    done = desk.run("compare", "eq", "other", "--store", folder, "--unmatched")
    assert done.status == exits.OK
    assert "not the same work: seed" in done.output


@pytest.mark.parametrize(
    ("runs", "status", "words"),
    [
        (("eq",), exits.USAGE, "two runs"),
        (("eq", "none"), exits.FAILED, "no run none in this store; there are: "),
    ],
)
def test_runs_that_are_not_there_are_named(
    desk: Desk, folder: Path, runs: tuple[str, ...], status: int, words: str
) -> None:
    done = desk.run("compare", *runs, "--store", folder)
    assert done.status == status
    assert words in done.complaint


def test_a_file_that_cannot_be_written_is_named(desk: Desk, folder: Path, tmp_path: Path) -> None:
    done = desk.run("compare", "eq", "ad", "--store", folder, "--csv", tmp_path / "no" / "x.csv")
    assert done.status == exits.FAILED
    assert "x.csv" in done.complaint
