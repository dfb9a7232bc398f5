"""Batch sizes changed within a round: the global batch stays, the sizes follow the speeds."""

from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.groups import Stepwise
from edged.stepwise import Adjuster, batches

SPEEDS = st.lists(st.floats(1e-3, 1e4), min_size=1, max_size=8)


@settings(max_examples=200, deadline=None)
@given(speeds=SPEEDS, extra=st.integers(0, 200))
def test_a_step_keeps_its_global_batch_and_every_rank_a_sample(speeds: list[float], extra: int) -> None:
    batch = len(speeds) + extra
    sizes = batches(speeds, batch)
    assert sum(sizes) == batch
    assert min(sizes) >= 1
    free = [i for i, size in enumerate(sizes) if size > 1]
    order = sorted(free, key=lambda i: speeds[i])
    assert all(sizes[a] <= sizes[b] + 1 for a, b in pairwise(order))


def test_sizes_are_in_proportion_to_the_speeds() -> None:
    assert batches([1000.0, 500.0, 1.0], 30) == [19, 10, 1]
    assert batches([3.0, 2.0, 1.0], 64) == [32, 21, 11]
    with pytest.raises(ValueError, match="2 samples does not reach over 3 ranks"):
        batches([1.0, 1.0, 1.0], 2)


def heard(adjuster: Adjuster, sizes: list[int], taus: list[float]) -> bool:
    return adjuster.hear([n * tau for n, tau in zip(sizes, taus, strict=True)], sizes)


def test_ema_batch_follows_every_window_and_forgets_slowly() -> None:
    adjuster = Adjuster(Stepwise("ema-batch", 20, 0.3), [32, 32])
    assert heard(adjuster, [320, 320], [0.001, 0.003])
    assert adjuster.speeds == pytest.approx([1000, 1000 / 3])
    assert heard(adjuster, [480, 160], [0.002, 0.003])
    assert adjuster.speeds == pytest.approx([0.3 * 500 + 0.7 * 1000, 1000 / 3])
    assert adjuster.changes == 2


def test_omnilearn_settles_in_one_change_and_then_holds_still() -> None:
    taus, adjuster = [0.001, 0.002, 0.004], Adjuster(Stepwise("omnilearn", 20, 0.5, 0.05), [100, 100, 100])
    assert heard(adjuster, [100, 100, 100], taus)
    assert adjuster.speeds is not None
    sizes = batches(adjuster.speeds, 300)
    assert sizes == [171, 86, 43]
    for _ in range(5):
        assert not heard(adjuster, sizes, taus)
    assert adjuster.changes == 1


def test_omnilearn_starts_its_smoothing_anew_at_each_change() -> None:
    adjuster = Adjuster(Stepwise("omnilearn", 20, 0.5, 0.05), [100, 100])
    assert heard(adjuster, [100, 100], [0.001, 0.002])
    assert heard(adjuster, [133, 67], [0.002, 0.001])
    # Averaged with the times before the change the two would be equal: no size would be off.
    assert adjuster.speeds == pytest.approx([500.0, 1000.0])


def test_a_window_without_a_time_changes_nothing() -> None:
    adjuster = Adjuster(Stepwise("ema-batch", 20, 0.3), [10, 10])
    assert not adjuster.hear([0.0, 1.0], [10, 10])
    assert adjuster.speeds is None
    with pytest.raises(ValueError, match="no step-level rule 'magic'; there are: ema-batch, omnilearn"):
        Adjuster(Stepwise("magic", 1, 0.5), [1])
