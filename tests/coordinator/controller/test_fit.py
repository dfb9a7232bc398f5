"""Fixed cost a in t = a + tau n: found when n varied, kept when it did not, refused when no line fits."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import Memory, Settings
from coordinator.controller.fit import fixed_cost
from coordinator.controller.memories import observe
from coordinator.controller.steady import Truth, reading

FIT = Settings(fixed_cost="fit")


@given(
    st.floats(0, 10),
    st.floats(1e-3, 1),
    st.lists(st.integers(100, 1000), min_size=2, max_size=16, unique=True),
)
@settings(deadline=None, max_examples=50)
def test_points_on_a_line_give_its_intercept(a: float, tau: float, ns: list[int]) -> None:
    points = [(n, a + tau * n) for n in ns]
    if max(ns) <= 1.5 * min(ns):
        assert fixed_cost(points, None) is None
        assert fixed_cost(points, 7.0) == 7.0
    else:
        assert fixed_cost(points, None) == pytest.approx(a, rel=1e-6, abs=1e-6)


def test_a_falling_line_or_a_changed_speed_keeps_the_earlier_value() -> None:
    assert fixed_cost([(100, 5.0), (200, 4.0)], 0.3) == 0.3
    throttled = [(100, 1.0), (200, 2.0), (100, 3.0), (200, 6.0)]
    assert fixed_cost(throttled, 0.3) == 0.3
    assert fixed_cost([(100, 1.0)], None) is None


def test_an_intercept_below_zero_is_zero() -> None:
    assert fixed_cost([(100, 0.9), (200, 2.0)], None) == 0.0


def test_a_memory_tells_fixed_cost_from_speed_once_shares_have_varied() -> None:
    truth = Truth("a", 100, 5, 1, fixed_seconds=2.0)
    memory: Memory | None = None
    for round, n in enumerate((1000, 1100), 1):
        memory = observe(memory, reading(truth, round, n), FIT)
    assert memory is not None
    assert memory.fixed_seconds is None
    assert memory.seconds_per_sample == pytest.approx((0.5 * 12 / 1000) + 0.5 * 13 / 1100)
    memory = observe(memory, reading(truth, 3, 400), FIT)
    assert memory.fixed_seconds == pytest.approx(2.0)
    assert memory.fixed_joules == pytest.approx(10.0)
    assert memory.seconds_per_sample == pytest.approx(0.01)
    assert memory.joules_per_sample == pytest.approx(0.05)


def test_the_fixed_cost_outlives_rounds_in_which_shares_stand_still() -> None:
    truth = Truth("a", 100, 5, 1, fixed_seconds=2.0)
    memory = observe(observe(None, reading(truth, 1, 1000), FIT), reading(truth, 2, 400), FIT)
    for round in range(3, 40):
        memory = observe(memory, reading(truth, round, 500), FIT)
    assert memory.fixed_seconds == pytest.approx(2.0)
    assert len(memory.history) == FIT.history
