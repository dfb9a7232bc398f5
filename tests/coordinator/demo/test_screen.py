"""What the demo shows of a run as it goes on: a line a round, once, and a table with what each board does."""

from collections.abc import Callable
from pathlib import Path

import msgspec
import pytest

from coordinator.comparison import Recorded
from coordinator.demo.plan import Plan, PlanError, folder
from coordinator.demo.scale import Scale
from coordinator.demo.screen import Lines, cells, progress_words, scale_words
from edged.messages import FleetState, Waiting

Record = Callable[..., Recorded]
BOARDS = {"fast": "n100", "slow": "rpi4"}
PLAN = Plan(
    "digits", "", "digits", "builtin", 1437, BOARDS, {"fast": 5.0, "slow": 1.0}, 4, 200, 16, 0.25, 1, Path()
)


def test_a_round_is_told_once_and_says_what_its_joules_are(record: Record) -> None:
    said: list[str] = []
    lines, run = Lines(PLAN, said.append), record("equal", policy="equal")
    lines.sees(msgspec.structs.replace(run, rounds=run.rounds[:2]), None)
    lines.sees(run, None)
    assert [line.split(":")[0] for line in said] == [f"equal {number}/4" for number in range(1, 5)]
    assert said[0] == "equal 1/4: makespan 4.0 s (slow), compute 17.0 J simulated, shares fast:100 slow:100"


def test_the_table_has_shares_of_now_and_figures_of_the_last_round(record: Record) -> None:
    waiting = (Waiting("slow", "training, 10 of 45 samples", 1.0, 2.0),)
    state = FleetState("b", 1, "up", run="equal", shares={"fast": 155, "slow": 45}, waiting=waiting)
    rows = list(cells(PLAN, record("equal", policy="equal"), state))
    assert rows == [
        ["fast", "155", "1.0 s", "5.00", "3.0 s", "waits for the others"],
        ["slow", "45", "4.0 s", "12.0", "0.0 s", "training, 10 of 45 samples"],
    ]


def test_before_the_first_round_there_are_no_figures(record: Record) -> None:
    empty = Recorded(record("equal").run)
    assert list(cells(PLAN, empty, None)) == [[board, "", "", "", "", ""] for board in BOARDS]
    assert progress_words(empty, 4).endswith("0/4")


def test_the_bar_is_full_at_the_end(record: Record) -> None:
    words = progress_words(record("equal", policy="equal"), 4)
    assert "─" not in words
    assert words.endswith("4/4  makespan 4.0 s (median)")


def test_a_slow_machine_is_told_beforehand() -> None:
    assert not any("slow or busy" in line for line in scale_words(PLAN, Scale(0.01, 200, 0.002, 0.3)))
    assert any("slow or busy" in line for line in scale_words(PLAN, Scale(1.0, 200, 0.2, 0.4)))


def test_each_demo_has_a_folder_of_its_own(tmp_path: Path) -> None:
    first, second = folder(tmp_path / "out"), folder(tmp_path / "out")
    assert first != second
    assert first.parent == second.parent == tmp_path / "out"


def test_a_folder_that_cannot_be_is_named(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlanError, match="--out"):
        folder(tmp_path / "file")
