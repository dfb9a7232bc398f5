"""Joules against makespan: the specification's numbers, and scipy's HiGHS as the oracle on random fleets."""

import itertools

import numpy as np
import pytest
from scipy.optimize import linprog

from coordinator.controller.frontier import Fleet, Frontier
from coordinator.controller.split import whole
from coordinator.controller.steady import Truth


def fleet_of(truths: tuple[Truth, ...], budget: int, floor: float = 0, waiting_scale: float = 1) -> Fleet:
    m = len(truths)
    speed = np.array([t.samples_per_second for t in truths], float)
    active = np.array([t.active_watts for t in truths], float)
    waiting = waiting_scale * np.array([t.waiting_watts for t in truths], float)
    fixed = np.array([t.fixed_seconds for t in truths], float)
    return Fleet(
        budget=budget,
        seconds=1 / speed,
        joules=active / speed,
        waiting_watts=waiting,
        floors=np.full(m, float(floor)),
        caps=np.full(m, float(budget)),
        fixed_seconds=fixed,
        fixed_joules=fixed * active,
    )


def random_fleet(random: np.random.Generator, kind: int) -> Fleet:
    """Every second with floors, every third with caps, every fourth with fixed costs, some Pw above Pa."""
    m = int(random.integers(1, 12))
    speed, active = random.lognormal(5, 1, m), random.uniform(2, 35, m)
    waiting = active * random.uniform(0.05, 1.1 if kind % 5 == 0 else 0.9, m)
    budget = float(random.integers(1000, 60_000))
    floors = random.integers(0, 64, m).astype(float) if kind % 2 else np.zeros(m)
    caps = np.full(m, budget)
    if kind % 3 == 0:
        caps = np.maximum(floors + 1, np.floor(random.uniform(0.05, 1.5, m) * budget))
        caps[0] += budget
    fixed = random.uniform(0, 10, m) if kind % 4 == 0 else np.zeros(m)
    return Fleet(budget, 1 / speed, active / speed, waiting, floors, caps, fixed, fixed * active)


def oracle(fleet: Fleet) -> float:
    """The same LP, solved by HiGHS."""
    m = len(fleet.seconds)
    solved = linprog(
        np.append(fleet.dynamic, fleet.waiting_watts.sum()),
        A_ub=np.hstack([np.diag(fleet.seconds), -np.ones((m, 1))]),
        b_ub=-fleet.fixed_seconds,
        A_eq=[[1.0] * m + [0.0]],
        b_eq=[fleet.budget],
        bounds=[*zip(fleet.floors, fleet.caps, strict=True), (0, None)],
        method="highs",
    )
    return float(solved.fun) + fleet.energy(np.zeros(m), 0.0)


def agrees_with_the_oracle(count: int, seed: int) -> float:
    random, worst = np.random.default_rng(seed), 0.0
    for kind in range(count):
        fleet = random_fleet(random, kind)
        best = Frontier(fleet).cheapest()
        assert best.n.sum() == pytest.approx(fleet.budget)
        assert (best.n >= fleet.floors - 1e-9).all()
        assert (best.n <= fleet.caps + 1e-6).all()
        assert (fleet.times(best.n) <= best.seconds * (1 + 1e-9)).all()
        assert fleet.energy(best.n, best.seconds) == pytest.approx(best.joules, rel=1e-9)
        expected = oracle(fleet)
        worst = max(worst, abs(best.joules - expected) / abs(expected))
    return worst


def test_closed_form_and_highs_agree_on_random_fleets() -> None:
    assert agrees_with_the_oracle(300, seed=1) < 1e-9


@pytest.mark.slow
def test_closed_form_and_highs_agree_on_two_thousand_random_fleets() -> None:
    assert agrees_with_the_oracle(2000, seed=2) < 1e-9


def test_three_boards_of_which_the_dear_one_rests(three: tuple[Truth, ...]) -> None:
    best = Frontier(fleet_of(three, 1000)).cheapest()
    assert best.joules == pytest.approx(10.3333, abs=5e-5)
    assert best.seconds == pytest.approx(2 / 3)
    assert best.n == pytest.approx([2000 / 3, 1000 / 3, 0])


@pytest.mark.parametrize(("floor", "seconds", "joules"), [(0, 48.39, 3304.8387), (64, 48.13, 3311.39)])
def test_the_optimum_of_the_invented_fleet(
    eleven: tuple[Truth, ...], floor: int, seconds: float, joules: float
) -> None:
    best = Frontier(fleet_of(eleven, 60_000, floor)).cheapest()
    assert best.seconds == pytest.approx(seconds, abs=0.005)
    assert best.joules == pytest.approx(joules, abs=0.005)


def test_more_than_half_of_the_gain_costs_a_tenth_of_the_makespan(eleven: tuple[Truth, ...]) -> None:
    frontier = Frontier(fleet_of(eleven, 60_000, 64))
    fastest = frontier.fastest
    found = {
        stretch: round(100 * (frontier.within(stretch * fastest.seconds).joules / fastest.joules - 1), 1)
        for stretch in (1.02, 1.05, 1.10, 1.20, 1.5, 2.0, 3.0)
    }
    assert found == {1.02: -1.2, 1.05: -2.4, 1.10: -3.7, 1.20: -4.7, 1.5: -6.4, 2.0: -1.1, 3.0: 16.6}


@pytest.mark.parametrize(
    ("scale", "slack", "free", "stretch"),
    [
        (0.33, {1.05: -4.2, 1.10: -7.2, 1.20: -9.6}, -18.0, 2.37),
        (0.50, {1.05: -3.7, 1.10: -6.3, 1.20: -8.4}, -14.6, 1.59),
        (0.80, {1.05: -2.9, 1.10: -4.8, 1.20: -6.2}, -10.0, 1.59),
        (1.00, {1.05: -2.4, 1.10: -3.7, 1.20: -4.7}, -6.9, 1.59),
        (1.50, {1.05: -1.1, 1.10: -1.4, 1.20: -1.4}, -1.4, 1.12),
    ],
)
def test_less_waiting_power_leaves_more_to_save(
    eleven: tuple[Truth, ...], scale: float, slack: dict[float, float], free: float, stretch: float
) -> None:
    frontier = Frontier(fleet_of(eleven, 60_000, 64, scale))
    fastest, best = frontier.fastest, frontier.cheapest()
    for limit, expected in slack.items():
        assert round(100 * (frontier.cheapest(limit).joules / fastest.joules - 1), 1) == expected
    assert round(100 * (best.joules / fastest.joules - 1), 1) == free
    assert round(best.seconds / fastest.seconds, 2) == stretch


def test_the_front_falls_and_is_convex_with_the_optimum_at_its_end() -> None:
    random = np.random.default_rng(5)
    for kind in range(200):
        frontier = Frontier(random_fleet(random, kind))
        points = frontier.front()
        assert points[0][0] == frontier.fastest.seconds
        assert points[0][1] == pytest.approx(frontier.fastest.joules)
        assert points[-1][1] == pytest.approx(frontier.cheapest().joules)
        for (t1, e1), (t2, e2) in itertools.pairwise(points):
            assert e2 <= e1 * (1 + 1e-12)
            assert frontier.within((t1 + t2) / 2).joules == pytest.approx((e1 + e2) / 2, rel=1e-9)


def test_the_soonest_round_within_a_cap_lies_on_the_front() -> None:
    random = np.random.default_rng(6)
    for kind in range(200):
        frontier = Frontier(random_fleet(random, kind))
        fastest, best = frontier.fastest, frontier.cheapest()
        if best.joules > fastest.joules * (1 - 1e-6):
            continue
        cap = 0.4 * fastest.joules + 0.6 * best.joules
        found = frontier.soonest(cap)
        assert found is not None
        assert found.joules == pytest.approx(cap, rel=1e-9)
        assert fastest.seconds < found.seconds < best.seconds
        assert frontier.soonest(best.joules * (1 - 1e-6)) is None
        at_once = frontier.soonest(2 * fastest.joules)
        assert at_once is not None
        assert at_once.seconds == fastest.seconds


def test_whole_shares_stay_within_one_sample_of_the_real_ones() -> None:
    random = np.random.default_rng(7)
    for kind in range(200):
        fleet = random_fleet(random, kind)
        best = Frontier(fleet).cheapest()
        n = whole(best.n.tolist(), int(fleet.budget), [int(cap) for cap in fleet.caps])
        assert sum(n) == fleet.budget
        assert np.abs(np.array(n) - best.n).max() < 1 + 1e-6


def test_no_share_by_brute_force_is_cheaper() -> None:
    """Every whole split of 12 samples over three boards, against the real-valued optimum."""
    random = np.random.default_rng(8)
    for _ in range(20):
        speed, active = random.uniform(1, 4, 3), random.uniform(2, 20, 3)
        waiting = active * random.uniform(0.1, 0.9, 3)
        zero = np.zeros(3)
        fleet = Fleet(12, 1 / speed, active / speed, waiting, zero, np.full(3, 12.0), zero, zero)
        splits = [np.array([a, b, 12 - a - b], float) for a in range(13) for b in range(13 - a)]
        least = min(fleet.energy(n, float(fleet.times(n).max())) for n in splits)
        found = Frontier(fleet).cheapest().joules
        assert found <= least + 1e-9
        assert least - found <= fleet.dynamic.max() * 3 + fleet.waiting_watts.sum() * fleet.seconds.max()
