"""Advice from readings: what it tells, what it refuses to tell, and that the truth lies in its intervals."""

from collections.abc import Callable

import pytest

from benchmarks.advice import covered
from coordinator.advice import SURE, Advice, advise, quantiles
from coordinator.alternatives import Setting, alternatives
from coordinator.comparison import Recorded
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.fleetfile import read
from coordinator.situation import situation

Record = Callable[..., Recorded]
FEW = (
    Setting("present", "equal"),
    Setting("time-only", "adaptive"),
    Setting("w_e = 1", "adaptive", w_e=1.0),
    Setting("any", "min-energy", {"slack": None}),
)


def advised(record: Record, **given: object) -> Advice:
    boards = given.pop("boards", read("invented-eleven").board)
    run = record("a", boards=boards, budget=6000, rounds=5, **{"policy": "equal", **given})
    return advise(situation(run), draws=12, settings=FEW)


def test_exact_readings_of_unlike_boards_tell_what_each_setting_costs(record: Record) -> None:
    found = advised(record)
    equal, time_only, _, cheapest = found.predictions
    assert equal.makespan_seconds.middle == pytest.approx(12.987, rel=0.01)
    assert time_only.makespan_seconds.middle == pytest.approx(3.027, rel=0.07)
    assert time_only.joules_change is not None
    assert cheapest.joules_change is not None
    assert time_only.joules_change.high < -0.3
    assert cheapest.joules_change.middle < time_only.joules_change.middle
    assert found.best is not None
    assert found.time_only_is_cheapest == 0.0


def test_boards_that_cost_more_than_they_give_are_those_above_the_threshold(record: Record) -> None:
    worth = {b.board: b.works for b in advised(record).boards}
    assert {board for board, works in worth.items() if works > 0.5} == {
        "x86-n-class",
        "arm-8core-a",
        "arm-8core-b",
        "arm-a76x4",
        "arm-a73x4-2",
        "arm-a72x4",
    }
    assert worth["riscv-c910x4"] <= 1 - SURE


def test_shares_far_from_those_seen_are_marked(record: Record) -> None:
    equal, time_only, *_ = advised(record).predictions
    assert equal.extrapolated == ()
    assert "x86-desktop" in time_only.extrapolated
    assert "arm-a72x4" not in time_only.extrapolated


def test_like_boards_are_told_to_stay_as_they_are(record: Record) -> None:
    boards = tuple(VirtualBoard(f"b{i}", 100, 5, 3, noise=0.02) for i in range(4))
    found = advised(record, boards=boards, policy="adaptive")
    assert found.best is None
    assert found.time_only_is_cheapest == 1.0


def test_without_energy_readings_seconds_are_told_and_joules_are_not(record: Record) -> None:
    boards = tuple(VirtualBoard(f"b{i}", 50.0 * (i + 1), 5, 3, metered=False) for i in range(3))
    found = advised(record, boards=boards)
    assert "no board has energy readings" in found.lacks
    assert all(p.joules is None for p in found.predictions)
    assert found.best == 1
    assert found.front == ()
    assert found.boards == ()


def test_one_seed_gives_one_answer(record: Record) -> None:
    assert advised(record) == advised(record)


def test_the_present_setting_comes_first_and_only_once(record: Record) -> None:
    for policy, label in (("low-energy", "w_e = 0.25"), ("min-energy", "min-energy"), ("equal", "equal")):
        found = alternatives(situation(record("a", policy=policy)))
        assert found[0].label == label
        assert [s.label for s in found].count(label) == 1


def test_synchronous_gradients_are_advised_on_by_their_steps(record: Record) -> None:
    boards = (VirtualBoard("a", 100, 5, 3), VirtualBoard("b", 25, 3, 2))
    found = advised(record, boards=boards, regime="ddp", deadline_floor_seconds=1e6)
    equal, time_only, *_ = found.predictions
    assert equal.makespan_seconds.middle == pytest.approx(120, rel=0.02)
    assert time_only.makespan_seconds.middle == pytest.approx(48, rel=0.05)


def test_an_interval_holds_so_many_of_what_it_was_made_of() -> None:
    found = quantiles([float(n) for n in range(1, 101)])
    assert found.middle == pytest.approx(50.5)
    assert [found.low, found.high] == pytest.approx([5.05, 95.95])


@pytest.mark.slow
def test_the_truth_lies_in_the_intervals_of_random_fleets() -> None:
    """A small sample of benchmarks/advice.py: 85 % with three standard deviations off it."""
    hits, trials = covered(10, 20, seed=5)
    told = hits["makespan"] + hits["joules"]
    assert trials["makespan"] + trials["joules"] == 100
    assert told >= 85 - 3 * (0.85 * 0.15 * 100) ** 0.5
