"""The combined cost: the specification's vector, and what must not change it."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import NAMED_WEIGHTS, Weights
from coordinator.controller.costs import combined, inverse, median
from coordinator.controller.split import clamped, whole

SECONDS = [0.001, 0.002, 0.004]
JOULES = [0.010, 0.008, 0.020]


@pytest.mark.parametrize(
    ("w_t", "w_e", "costs", "x", "n"),
    [
        (1, 0, [0.5, 1, 2], [571.429, 285.714, 142.857], [571, 286, 143]),
        (0.75, 0.25, [0.625, 0.95, 2], [507.513, 333.890, 158.598], [507, 334, 159]),
        (0.5, 0.5, [0.75, 0.9, 2], [452.830, 377.358, 169.811], [453, 377, 170]),
        (0, 1, [1, 0.8, 2], [363.636, 454.545, 181.818], [364, 454, 182]),
    ],
)
def test_a_thousand_samples_over_three_boards(
    w_t: float, w_e: float, costs: list[float], x: list[float], n: list[int]
) -> None:
    found = combined(SECONDS, JOULES, Weights(w_t, w_e))
    assert found == pytest.approx(costs)
    shares = clamped(inverse(found), 1000, [0] * 3, [1000] * 3)
    assert shares == pytest.approx(x, abs=5e-4)
    assert whole(shares, 1000, [1000] * 3) == n


positive = st.floats(1e-6, 1e3)
boards = st.lists(st.tuples(positive, positive), min_size=2, max_size=11)


@given(boards, st.floats(0, 1), st.floats(1e-3, 1), st.floats(1e-3, 1e3), st.floats(1e-3, 1e3))
@settings(deadline=None, max_examples=40)
def test_only_the_ratio_of_weights_matters_and_no_unit_does(
    costs: list[tuple[float, float]], w_e: float, scale: float, seconds_unit: float, joules_unit: float
) -> None:
    tau, eps = [c[0] for c in costs], [c[1] for c in costs]
    weights = Weights(1 - w_e, w_e)
    m = len(costs)
    want = clamped(inverse(combined(tau, eps, weights)), 10_000, [0] * m, [10_000] * m)
    scaled = combined(
        [t * seconds_unit for t in tau],
        [e * joules_unit for e in eps],
        Weights(weights.w_t * scale, weights.w_e * scale),
    )
    assert clamped(inverse(scaled), 10_000, [0] * m, [10_000] * m) == pytest.approx(want)


@given(boards, st.floats(0, 1), st.data())
@settings(deadline=None, max_examples=40)
def test_the_order_of_the_boards_changes_nothing_but_ties(
    costs: list[tuple[float, float]], w_e: float, data: st.DataObject
) -> None:
    order = data.draw(st.permutations(range(len(costs))))
    m, weights = len(costs), Weights(1 - w_e, w_e)

    def split(rows: list[tuple[float, float]]) -> list[float]:
        return clamped(
            inverse(combined([r[0] for r in rows], [r[1] for r in rows], weights)), 997, [1] * m, [997] * m
        )

    straight, turned = split(costs), split([costs[i] for i in order])
    assert turned == pytest.approx([straight[i] for i in order])
    whole_straight, whole_turned = whole(straight, 997, [997] * m), whole(turned, 997, [997] * m)
    for place, i in enumerate(order):
        assert abs(whole_turned[place] - whole_straight[i]) <= 1


@given(boards, st.floats(0, 1), st.data())
@settings(deadline=None, max_examples=40)
def test_a_board_that_gets_slower_never_gets_more_by_time(
    costs: list[tuple[float, float]], factor: float, data: st.DataObject
) -> None:
    which = data.draw(st.integers(0, len(costs) - 1))
    tau = [c[0] for c in costs]
    slower = [t * (1 + factor) if i == which else t for i, t in enumerate(tau)]
    nothing: list[float | None] = [None] * len(tau)
    m, time_only = len(tau), NAMED_WEIGHTS["time-only"]
    before = clamped(inverse(combined(tau, nothing, time_only)), 1000, [0] * m, [1000] * m)
    after = clamped(inverse(combined(slower, nothing, time_only)), 1000, [0] * m, [1000] * m)
    assert after[which] <= before[which] * (1 + 1e-9)


def test_time_only_makes_all_boards_finish_together() -> None:
    n = clamped(inverse(combined(SECONDS, JOULES, NAMED_WEIGHTS["time-only"])), 1000, [0] * 3, [1000] * 3)
    assert [x * tau for x, tau in zip(n, SECONDS, strict=True)] == pytest.approx([1000 / 1750] * 3)


def test_a_board_without_joules_is_charged_at_the_median_watts() -> None:
    costs = combined(SECONDS, [0.010, None, 0.020], Weights(0, 1))
    assert costs == pytest.approx([0.010 / 0.015, 1.0, 0.020 / 0.015])


@given(
    st.lists(st.tuples(positive, st.booleans()), min_size=1, max_size=11),
    st.floats(0, 1),
    st.floats(0.1, 100),
)
@settings(deadline=None, max_examples=40)
def test_of_equal_watts_it_does_not_matter_which_boards_have_a_meter(
    rows: list[tuple[float, bool]], w_e: float, watts: float
) -> None:
    tau = [seconds for seconds, _ in rows]
    seen = [seconds * watts if metered else None for seconds, metered in rows]
    assert combined(tau, seen, Weights.of(w_e)) == pytest.approx(combined(tau, seen, Weights(1, 0)))


def test_without_any_joules_the_energy_weight_means_time() -> None:
    nothing: list[float | None] = [None] * 3
    assert combined(SECONDS, nothing, Weights(0, 1)) == pytest.approx([0.5, 1, 2])


def test_a_newcomer_gets_an_equal_share_and_the_others_theirs_by_cost() -> None:
    costs = combined([0.001, None, 0.003], [None] * 3, NAMED_WEIGHTS["time-only"])
    assert costs[1] is None
    assert clamped(inverse(costs), 900, [0] * 3, [900] * 3) == pytest.approx([450, 300, 150])


def test_the_median_of_an_even_number_is_the_mean_of_the_middle_two() -> None:
    assert median([4.0, 1.0, 3.0, 2.0]) == 2.5
    assert median([3.0, 1.0, 2.0]) == 2.0


@pytest.mark.parametrize(
    ("w_e", "w_t", "said"),
    [
        (-0.1, None, "w_e = -0.1: each weight must be between 0 and 1"),
        (float("nan"), 0.5, "w_e = nan: each weight must be between 0 and 1"),
        (float("inf"), 0.5, "w_e = inf"),
        (25, 0.5, "w_e = 25: each weight must be between 0 and 1"),
        (0, 0, "both 0: weights are between 0 and 1, at least one above 0"),
    ],
)
def test_weights_out_of_range_are_refused_with_the_range(w_e: float, w_t: float | None, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        Weights.of(w_e, w_t)


def test_the_weight_left_out_is_the_rest_to_one() -> None:
    assert Weights.of(0.25) == NAMED_WEIGHTS["low-energy"]
    assert Weights.of(w_t=0.75) == NAMED_WEIGHTS["low-energy"]
    assert Weights.of() == NAMED_WEIGHTS["time-only"]
    assert Weights.of(1, 1) == Weights(1, 1)
