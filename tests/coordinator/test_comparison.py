"""Recorded runs side by side, on runs of the simulator, whose figures can be told by hand."""

from collections.abc import Callable

import msgspec
import pytest

from coordinator.comparison import Recorded, UnmatchedError, compare, figures
from coordinator.simulator.boards import Dropout, VirtualBoard
from edged.controls import AsynchronousSettings

Record = Callable[..., Recorded]


def test_the_figures_of_equal_shares_are_those_of_the_slow_board(record: Record) -> None:
    found = figures(record("a", policy="equal"))
    # 100 samples each: 1 s at 5 W and 4 s at 3 W; the fast one waits 3 s at 3 W.
    assert found.makespan_median_seconds == pytest.approx(4.0)
    assert found.makespan_total_seconds == pytest.approx(16.0)
    assert found.joules["compute"] == pytest.approx(4 * (5 + 12))
    assert found.joules["wait"] == pytest.approx(4 * 9, rel=0.1)
    assert found.wait_share == pytest.approx(3 / 8, rel=0.1)
    assert found.joules_total == pytest.approx(sum(j for j in found.joules.values() if j is not None))
    assert (found.basis, found.reallocations, found.samples) == ("simulated", 0, 800)
    assert found.accuracy == pytest.approx(0.9)
    assert found.notes == ()


def test_adaptive_shares_are_told_from_equal_ones(record: Record) -> None:
    result = compare([record("a", policy="equal"), record("b", policy="adaptive")])
    equal, adaptive = result.runs
    assert equal.makespan_total_seconds is not None
    assert adaptive.makespan_total_seconds is not None
    assert adaptive.makespan_total_seconds < equal.makespan_total_seconds
    assert adaptive.reallocations == 1
    assert result.differences == ()


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"seed": 2}, "seed is 1 in a, 2 in b"),
        ({"budget": 100}, "budget is 200 in a, 100 in b"),
        ({"batch": 20}, "batch is 10 in a, 20 in b"),
        ({"rounds": 3}, "accepted samples is 800 in a, 600 in b"),
        ({"learning_rate": 0.2}, "learning_rate"),
        ({"task": "mnist"}, "task is digits in a, mnist in b"),
    ],
)
def test_runs_of_unlike_work_are_refused_by_name(
    record: Record, changed: dict[str, object], words: str
) -> None:
    runs = [record("a"), record("b", **changed)]
    with pytest.raises(UnmatchedError, match=words):
        compare(runs)
    assert any(words in difference for difference in compare(runs, unmatched=True).differences)


def test_runs_of_unlike_regimes_are_matched_on_samples_and_asynchronous_ones_tell_the_age_of_updates(
    record: Record,
) -> None:
    asynchronous = record("asp", regime="asp", policy="equal", budget=100, rounds=8)
    synchronous = record("ddp", regime="ddp", policy="equal", batch=20)
    result = compare([asynchronous, synchronous])
    assert result.differences == ()
    one, other = result.runs
    assert (one.regime, one.samples, other.regime, other.samples) == ("asp", 800, "ddp", 800)
    assert one.wall_seconds < other.wall_seconds
    assert other.updates is None
    assert one.updates is not None
    assert one.updates.counts == {"fast": 64, "slow": 16}
    assert one.updates.count_spread == pytest.approx(48 / 40)
    assert sum(one.updates.all_ages.values()) == 80
    assert max(one.updates.ages["slow"], key=one.updates.ages["slow"].__getitem__) == 4
    with pytest.raises(UnmatchedError, match="accepted samples"):
        compare([record("asp", regime="asp", policy="equal", budget=100), synchronous])


def test_gradients_have_the_coordinators_momentum_when_they_are_compared(record: Record) -> None:
    synchronous = record("ddp", regime="ddp", policy="equal", batch=20, momentum=0.9)

    def against(momentum: float) -> tuple[str, ...]:
        own = AsynchronousSettings(momentum=momentum)
        changes = {"policy": "equal", "budget": 100, "rounds": 8, "momentum": 0.0, "asynchronous": own}
        other = record("asp", regime="asp", **changes)
        return compare([other, synchronous], unmatched=True).differences

    assert against(0.9) == ()
    (told,) = against(0.0)
    assert told.startswith("momentum")


def test_another_source_of_the_task_is_other_work(record: Record) -> None:
    other = record("b")
    other = msgspec.structs.replace(other, run={**other.run, "task_hash": "another"})
    with pytest.raises(UnmatchedError, match="source of the task"):
        compare([record("a"), other])


def test_one_run_is_no_comparison(record: Record) -> None:
    with pytest.raises(UnmatchedError, match="two runs"):
        compare([record("a")])


def test_joules_that_one_board_does_not_know_are_unknown_not_less(record: Record) -> None:
    boards = (VirtualBoard("metered", 50, 5, 3), VirtualBoard("blind", 50, 5, 3, metered=False))
    found = figures(record("a", boards=boards))
    assert found.joules_total is None
    assert set(found.joules.values()) == {None}
    assert any("blind" in note and "metered" not in note for note in found.notes)
    assert found.makespan_median_seconds is not None


def test_joules_of_unlike_bases_are_not_added(record: Record) -> None:
    run = record("a")
    closed = tuple(
        {**row, "basis": "measured"} if row["board"] == "fast" else dict(row) for row in run.closed
    )
    found = figures(msgspec.structs.replace(run, closed=closed))
    assert found.joules_total is None
    assert found.basis == "measured and simulated"
    assert any("not added" in note for note in found.notes)


def test_a_run_without_records_has_no_figures_and_says_so(record: Record) -> None:
    run = record("a")
    found = figures(Recorded({**run.run, "complete": None, "reason": ""}))
    assert (found.makespan_median_seconds, found.joules_total, found.wait_share, found.accuracy) == (
        None,
        None,
        None,
        None,
    )
    assert any("not complete" in note for note in found.notes)


def _emulated(run: Recorded, behind_steps: int) -> Recorded:
    boards = tuple(
        {**row, "basis": "emulated", "steps": 100, "behind_pace_steps": behind_steps} for row in run.boards
    )
    return msgspec.structs.replace(run, boards=boards)


def test_more_than_one_step_in_a_hundred_behind_its_pace_makes_the_timing_invalid(record: Record) -> None:
    assert figures(_emulated(record("a"), 1)).timing_valid
    late = figures(_emulated(record("a"), 2))
    assert not late.timing_valid
    assert late.behind_pace_share == pytest.approx(0.02)
    assert figures(record("a")).behind_pace_share is None


def test_samples_that_were_ordered_again_are_told(record: Record) -> None:
    boards = (VirtualBoard("stays", 50, 5, 3), VirtualBoard("falls", 50, 5, 3, dropouts=(Dropout(3.0, 5.0),)))
    found = figures(record("a", boards=boards))
    assert found.samples == 800
    assert any("ordered again" in note for note in found.notes)
