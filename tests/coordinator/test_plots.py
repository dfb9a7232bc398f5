"""The picture of runs: a PNG without a display, also where figures lack."""

from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.comparison import Recorded
from coordinator.plots import PlotError, draw, joules_by_round
from coordinator.simulator.boards import VirtualBoard
from edged.messages import PARTS

Record = Callable[..., Recorded]


def _png_size(path: Path) -> tuple[int, int]:
    head = path.read_bytes()[:24]
    assert head.startswith(b"\x89PNG")
    return int.from_bytes(head[16:20], "big"), int.from_bytes(head[20:24], "big")


def test_two_runs_become_one_picture(record: Record, tmp_path: Path) -> None:
    path = tmp_path / "new" / "shares.png"
    draw([record("a", policy="equal"), record("b")], path, "equal against adaptive")
    width, height = _png_size(path)
    assert width > height > 800


def test_a_run_without_joules_is_still_drawn(record: Record, tmp_path: Path) -> None:
    blind = record("a", boards=(VirtualBoard("blind", 50, 5, 3, metered=False),))
    draw([blind, Recorded(blind.run)], tmp_path / "a.png")
    assert _png_size(tmp_path / "a.png")


def test_joules_are_summed_by_round_and_part(record: Record) -> None:
    found = joules_by_round(record("a", policy="equal"))
    assert sorted(found) == [1, 2, 3, 4]
    assert all(set(parts) == set(PARTS) for parts in found.values())
    assert found[1]["compute"] == pytest.approx(17.0)


def test_a_place_that_cannot_be_written_is_named(record: Record, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(PlotError, match="file"):
        draw([record("a")], tmp_path / "file" / "a.png")
