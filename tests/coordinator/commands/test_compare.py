"""`compare` on recorded runs: table, JSON, CSV, picture, and the refusal of unequal work."""

import csv
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.commands import exits
from coordinator.comparison import Recorded, figures
from coordinator.simulator.boards import VirtualBoard
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
    assert (rows["updates by fast"], rows["updates by slow"]) == (["fast", "64", "-"], ["slow", "16", "-"])
    names = ("least", "quarter", "median", "three quarters", "most")
    ages = [rows[f"staleness, {name}"][-2] for name in names]
    updates = figures(asynchronous).updates
    assert updates is not None
    assert ages == [str(age) for age in updates.quantiles()]
    assert len(set(ages)) > 2
    assert rows["staleness, deviation"][1] == "-"
    assert "staleness: versions of the model that came between" in output
    first, second = csv.DictReader(path.read_text().splitlines())
    assert (first["regime"], first["updates"], second["updates"]) == ("asp", "80", "")


def test_asynchronous_runs_have_no_makespan_and_say_why(
    desk: Desk, record: Record, store: Callable[..., Path]
) -> None:
    asynchronous = [record(name, regime="asp", policy="equal", budget=100, rounds=8) for name in ("a1", "a2")]
    folder = store(*asynchronous, record("ddp", regime="ddp", policy="equal", batch=20))
    mixed = desk.run("compare", "a1", "ddp", "--store", folder).output.splitlines()
    row = next(line for line in mixed if line.startswith("makespan, median round"))
    assert row.split()[3] == "-"
    assert row.split()[4:] == ["4.0", "s"]
    assert "a1: no makespan: in asp nothing waits for the longest board, periods end by samples" in mixed
    assert not [line for line in mixed if line.startswith("ddp: no makespan")]
    alike = desk.run("compare", "a1", "a2", "--store", folder).output
    assert not [line for line in alike.splitlines() if line.startswith("makespan")]
    found = desk.run("compare", "a1", "ddp", "--store", folder, "--json").json["runs"]
    assert found[0]["makespan_total_seconds"] is None
    assert found[1]["makespan_total_seconds"] == pytest.approx(16.0)


def test_of_a_large_fleet_the_rest_of_the_updates_is_one_row(
    desk: Desk, record: Record, store: Callable[..., Path]
) -> None:
    boards = tuple(VirtualBoard(f"b{i:02}", 50, 5, 3) for i in range(11))
    folder = store(
        *(record(name, boards, regime="asp", policy="equal", budget=330, rounds=2) for name in ("a1", "a2"))
    )
    found = desk.run("compare", "a1", "a2", "--store", folder)
    rows = [line.split() for line in found.output.splitlines() if line.startswith("updates by ")]
    assert [row[2] for row in rows] == [*(f"b{i:02}" for i in range(8)), "3"]
    assert sum(int(row[-2]) for row in rows) == 66


def test_a_run_that_is_nowhere_is_told_with_the_store_the_levels_and_the_fleets(
    desk: Desk, folder: Path, tmp_path: Path
) -> None:
    for store, text in ((folder, f"(in {folder})"), (tmp_path / "no", f"{tmp_path / 'no'}: no runs")):
        done = desk.run("compare", "hl3", "--store", store)
        assert done.status == exits.FAILED
        assert text in done.complaint
        assert "levels are hl1, hl2, hl4, hl8; other fleets are invented-eleven, paper" in done.complaint


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
