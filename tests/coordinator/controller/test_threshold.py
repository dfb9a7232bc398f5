"""Who works and who rests, in one line; and when time-only is already the cheapest."""

import numpy as np
import pytest

from coordinator.controller.frontier import Fleet, Frontier
from coordinator.controller.threshold import threshold, time_only_is_cheapest


def fleet(speed: list[float], active: list[float], waiting: list[float], budget: float = 1000) -> Fleet:
    s, zero = np.array(speed, float), np.zeros(len(speed))
    return Fleet(
        budget,
        1 / s,
        np.array(active) / s,
        np.array(waiting, float),
        zero,
        np.full(len(s), budget),
        zero,
        zero,
    )


def headroom(some: Fleet) -> tuple[float, float]:
    """What the cheapest split saves over time-only, and by how much it is longer."""
    best, fastest = Frontier(some).cheapest(), Frontier(some).fastest
    return 1 - best.joules / fastest.joules, best.seconds / fastest.seconds


def test_three_boards() -> None:
    found = threshold(fleet([1000, 500, 250], [10, 4, 5], [2, 1, 1.5]))
    assert found.joules_per_sample == pytest.approx(0.0103333, abs=5e-7)
    assert found.working.tolist() == [True, True, False]


def test_the_rule_finds_what_the_frontier_finds() -> None:
    random = np.random.default_rng(3)
    for _ in range(300):
        m = int(random.integers(1, 12))
        active = random.uniform(2, 35, m)
        waiting = active * random.uniform(0.1, 0.95, m)
        some = fleet(random.lognormal(5, 1, m).tolist(), active.tolist(), waiting.tolist())
        found, best = threshold(some), Frontier(some).cheapest()
        assert found.joules_per_sample * some.budget == pytest.approx(best.joules, rel=1e-9)
        assert (best.n > 1e-6).tolist() == found.working.tolist()
        assert time_only_is_cheapest(some) == (headroom(some)[1] <= 1 + 1e-12)


def test_waiting_almost_as_dear_as_working_leaves_no_headroom() -> None:
    busy = fleet([1000, 500, 250], [10, 4, 5], [9.9, 3.9, 4.9])
    assert time_only_is_cheapest(busy)
    assert headroom(busy) == (0, 1)


def test_boards_that_can_sleep_leave_the_work_to_the_most_efficient() -> None:
    asleep = fleet([1000, 500, 250], [10, 4, 5], [0, 0, 0])
    assert threshold(asleep).working.tolist() == [False, True, False]
    assert headroom(asleep) == pytest.approx((1 - 8 / (19 / 1750 * 1000), (1000 / 500) / (1000 / 1750)))


def test_the_invented_fleet_has_headroom_within_floors() -> None:
    speed = [480, 300, 240, 230, 210, 150, 110, 95, 80, 45, 42]
    active = [34.0, 16.0, 10.5, 9.8, 8.6, 5.6, 6.2, 7.5, 9.0, 4.9, 5.4]
    waiting = [5.0, 3.5, 1.9, 1.7, 2.4, 1.3, 2.0, 1.2, 2.4, 1.6, 1.4]
    some = fleet([float(s) for s in speed], active, waiting, 60_000)
    found = threshold(some)
    assert found.joules_per_sample == pytest.approx(0.055081, abs=5e-7)
    assert found.working.tolist() == [False, True, True, True, True, True, True] + [False] * 4
    assert not time_only_is_cheapest(some)
    assert headroom(some)[0] == pytest.approx(0.071, abs=5e-4)
