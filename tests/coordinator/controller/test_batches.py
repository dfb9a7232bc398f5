"""Per-step batches: every rank makes every step, every sample is used once, no step is padded."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import InfeasibleError
from coordinator.controller.batches import schedule, steps_for


def test_remainders_wrap_around_the_steps() -> None:
    rows = schedule([571, 286, 143], 10)
    assert rows[0] == [58] + [57] * 9
    assert rows[1] == [28] + [29] * 6 + [28] * 3
    assert rows[2] == [14] * 7 + [15] * 3
    assert [sum(column) for column in zip(*rows, strict=True)] == [100] * 10


@given(st.integers(1, 60), st.data())
@settings(deadline=None, max_examples=50)
def test_rows_are_the_shares_and_columns_differ_by_at_most_one(steps: int, data: st.DataObject) -> None:
    shares = data.draw(st.lists(st.integers(steps, 40 * steps), min_size=1, max_size=11))
    rows = schedule(shares, steps)
    assert [sum(row) for row in rows] == shares
    assert all(b in (n // steps, n // steps + 1) for n, row in zip(shares, rows, strict=True) for b in row)
    columns = [sum(column) for column in zip(*rows, strict=True)]
    assert min(columns) == sum(shares) // steps
    assert max(columns) == -(-sum(shares) // steps)


def test_a_share_that_does_not_reach_over_the_steps_is_refused() -> None:
    with pytest.raises(InfeasibleError, match="rank 1: 9 samples do not reach over 10 steps"):
        schedule([91, 9], 10)
    with pytest.raises(InfeasibleError, match="at least one step"):
        schedule([5], 0)


def test_the_steps_follow_from_the_wanted_global_batch() -> None:
    assert steps_for(1000, 100) == 10
    assert steps_for(1001, 100) == 11
    with pytest.raises(ValueError, match="global batch"):
        steps_for(1000, 0)
