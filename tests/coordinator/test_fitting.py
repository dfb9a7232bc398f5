"""A fleet file out of a run: it is read back as it was fitted, and it is the fleet that ran."""

from collections.abc import Callable

import pytest

from coordinator.comparison import Recorded
from coordinator.fitting import fitted, toml
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.fleetfile import parse
from coordinator.situation import situation

Record = Callable[..., Recorded]
THREE = (
    VirtualBoard("a", 100, 5, 3, upload_seconds=0.5),
    VirtualBoard("b", 25, 3, 2, fixed_seconds=0.3),
    VirtualBoard("c", 60, 4, 1, communication_watts=2.0, download_seconds=0.25),
)


def test_exact_readings_give_back_the_fleet(record: Record) -> None:
    fleet = fitted(situation(record("a", boards=THREE, rounds=6, budget=600)))
    for board, true in zip(fleet.board, THREE, strict=True):
        assert board.samples_per_second == pytest.approx(true.samples_per_second)
        assert board.active_watts == pytest.approx(true.active_watts)
        assert board.fixed_seconds == pytest.approx(true.fixed_seconds, abs=1e-6)
        link = board.download_seconds + board.upload_seconds
        assert link == pytest.approx(true.download_seconds + true.upload_seconds)
    assert fleet.board[0].waiting_watts == pytest.approx(3)
    assert fleet.board[2].link_watts == pytest.approx(2)


@pytest.mark.parametrize("noise", [0.0, 0.05])
def test_the_file_is_read_as_what_was_fitted_and_tells_its_uncertainty(record: Record, noise: float) -> None:
    boards = (
        *(VirtualBoard(f"n{i}", 40 * (i + 1), 5, 2, noise=noise) for i in range(3)),
        VirtualBoard("bare", 70, 5, 2, metered=False),
    )
    options = {"policy": "min-energy", "policy_options": {"slack": 1.2}}
    where = situation(record("noisy", boards=boards, rounds=8, budget=800, **options))
    text, fleet = toml(where), fitted(where)
    read = parse(text.encode(), "noisy.toml")
    for name in ("samples_per_second", "active_watts", "waiting_watts"):
        found = [getattr(b, name) for b in read.board if b.metered]
        assert found == pytest.approx([getattr(b, name) for b in fleet.board if b.metered], rel=1e-5)
    assert (read.policy, read.policy_options, read.budget, read.batch) == (
        "min-energy",
        {"slack": 1.2},
        800,
        10,
    )
    assert text.count("+-") >= 2 * len(boards)
    assert "no meter" in text
