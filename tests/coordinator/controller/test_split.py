"""Whole samples: the budget to the last sample, bounds kept, ties to the lowest index."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import InfeasibleError
from coordinator.controller.split import check, clamped, equal, whole


@st.composite
def bounded_splits(draw: st.DrawFn) -> tuple[list[float], int, list[int], list[int]]:
    m = draw(st.integers(1, 12))
    weights = draw(st.lists(st.floats(1e-3, 1e3), min_size=m, max_size=m))
    floors = draw(st.lists(st.integers(0, 200), min_size=m, max_size=m))
    caps = [floor + draw(st.integers(0, 2000)) for floor in floors]
    low, high = max(1, sum(floors)), sum(caps)
    if high < low:
        caps[0] += 1
        high = low
    return weights, draw(st.integers(low, high)), floors, caps


@given(bounded_splits())
@settings(deadline=None, max_examples=50)
def test_every_sample_is_given_and_every_bound_is_kept(
    case: tuple[list[float], int, list[int], list[int]],
) -> None:
    weights, budget, floors, caps = case
    check([str(i) for i in range(len(weights))], budget, floors, caps)
    n = whole(clamped(weights, budget, floors, caps), budget, caps)
    assert sum(n) == budget
    assert all(floor <= samples <= cap for floor, samples, cap in zip(floors, n, caps, strict=True))


@given(bounded_splits())
@settings(deadline=None, max_examples=50)
def test_unclamped_boards_share_one_level(case: tuple[list[float], int, list[int], list[int]]) -> None:
    """x_i = clamp(level * w_i) for one level, so a free board is beaten by floors alone."""
    weights, budget, floors, caps = case
    x = clamped(weights, budget, floors, caps)
    assert sum(x) == pytest.approx(budget)
    levels = [value / w for value, w in zip(x, weights, strict=True)]
    for level, value, floor, cap in zip(levels, x, floors, caps, strict=True):
        if floor < value < cap:
            for other, x_other, lo, hi in zip(levels, x, floors, caps, strict=True):
                assert other >= level * (1 - 1e-9) or x_other == pytest.approx(hi)
                assert other <= level * (1 + 1e-9) or x_other == pytest.approx(lo)


def test_clamping_low_may_free_a_board_that_looked_too_high() -> None:
    """Fixing both sides in one pass would leave the second board at its cap and the budget unspent."""
    x = clamped([10.0, 9.0, 1.0], 100, [0, 0, 60], [45, 40, 100])
    assert x == [pytest.approx(40 * 10 / 19), pytest.approx(40 * 9 / 19), 60]


def test_offsets_shift_the_shares_that_one_level_gives() -> None:
    """Equal weights, the first board has 10 samples' worth of fixed cost: it gets 10 samples less."""
    assert clamped([1.0, 1.0], 100, [0, 0], [100, 100], [10.0, 0.0]) == [45.0, 55.0]


def test_ties_go_to_the_lowest_index() -> None:
    assert equal(10, [0, 0, 0, 0], [10] * 4) == [3, 3, 2, 2]
    assert whole([2.5, 2.5, 2.5, 2.5], 10, [10] * 4) == [3, 3, 2, 2]


def test_a_board_at_its_cap_is_not_rounded_up() -> None:
    assert whole([3.0, 3.5, 3.5], 10, [3, 9, 9]) == [3, 4, 3]


@pytest.mark.parametrize(
    ("boards", "budget", "floors", "caps", "said"),
    [
        ([], 5, [], [], "no board is left"),
        (["a"], 0, [0], [1], "budget must be at least 1"),
        (["a", "b"], 10, [1, 7], [9, 6], "board b: floor 7 and cap 6"),
        (["a", "b"], 10, [4, 7], [9, 9], "the highest is board b's floor of 7"),
        (["a", "b"], 10, [1, 1], [6, 3], "the lowest is board b's cap of 3"),
    ],
)
def test_bounds_that_cannot_be_met_are_named(
    boards: list[str], budget: int, floors: list[int], caps: list[int], said: str
) -> None:
    with pytest.raises(InfeasibleError, match=said):
        check(boards, budget, floors, caps)
