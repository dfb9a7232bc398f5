"""What is believed of a board after so many readings, and that drawn boards scatter as the readings do."""

import math
from statistics import fmean, stdev

import numpy as np
import pytest

from coordinator.beliefs import RATIO_SPREAD, UNKNOWN_RATIO, Belief, beliefs, draw, expected
from coordinator.situation import Evidence


def evidence(noise: float, count: int = 8, samples: tuple[int, ...] = (100,), fixed: float = 0.0) -> Evidence:
    random = np.random.default_rng(3)
    readings = []
    for number in range(count):
        n = samples[number % len(samples)]
        seconds = (fixed + 0.02 * n) * (1 + noise * random.standard_normal())
        readings.append((n, seconds, 5.0 * seconds * (1 + noise * random.standard_normal())))
    return Evidence("a", tuple(readings), "simulated")


def one(found: Evidence) -> Belief:
    return beliefs([found])[0]


def test_exact_readings_give_the_board_itself() -> None:
    board = expected(one(evidence(0.0)))
    assert board.samples_per_second == pytest.approx(50)
    assert board.active_watts == pytest.approx(5)
    assert board.noise < 1e-5


def test_more_readings_are_believed_more() -> None:
    random = np.random.default_rng(1)
    few, many = one(evidence(0.05, 3)), one(evidence(0.05, 16))
    spread = [stdev(draw(b, random).samples_per_second for _ in range(300)) for b in (few, many)]
    assert spread[0] > 1.5 * spread[1]


def test_a_fixed_cost_is_found_once_the_share_has_varied() -> None:
    board = expected(one(evidence(0.01, 12, (50, 100, 200), fixed=1.0)))
    assert board.fixed_seconds == pytest.approx(1.0, rel=0.1)
    assert board.samples_per_second == pytest.approx(50, rel=0.05)


def test_a_fixed_cost_that_no_reading_tells_is_possible_and_not_expected() -> None:
    belief, random = one(evidence(0.01)), np.random.default_rng(1)
    assert expected(belief).fixed_seconds == 0
    boards = [draw(belief, random) for _ in range(200)]
    assert 60 < sum(board.fixed_seconds > 0 for board in boards) < 140
    seconds = [board.fixed_seconds + 100 / board.samples_per_second for board in boards]
    assert fmean(seconds) == pytest.approx(2.0, rel=0.01)


def test_waiting_watts_that_were_never_seen_are_taken_by_ratio_and_said() -> None:
    alone = one(evidence(0.01))
    assert not alone.waiting_told
    assert alone.waiting_watts == pytest.approx(5 * UNKNOWN_RATIO, rel=0.01)
    seen = Evidence("b", ((100, 2.0, 20.0),), "simulated", waits=((4.0, 8.0), (5.0, 10.0)))
    by_ratio, told = beliefs([evidence(0.01), seen])
    assert told.waiting_told
    assert told.waiting_watts == pytest.approx(2.0)
    assert by_ratio.waiting_watts == pytest.approx(5 * 0.2, rel=0.01)
    assert by_ratio.waiting_spread == pytest.approx(RATIO_SPREAD * math.sqrt(2))


def test_no_drawn_board_waits_at_more_watts_than_it_works() -> None:
    belief, random = one(evidence(0.05)), np.random.default_rng(1)
    boards = [draw(belief, random) for _ in range(300)]
    assert all(board.waiting_watts <= board.active_watts * 1.0000001 for board in boards)


def test_a_board_without_a_meter_is_one_in_every_draw() -> None:
    belief = one(Evidence("a", ((100, 2.0, None), (100, 2.1, None))))
    assert belief.active_watts is None
    assert not draw(belief, np.random.default_rng(1)).metered
    assert not expected(belief).metered


def test_a_meters_uncertainty_moves_all_watts_together() -> None:
    readings = tuple((100, 2.0, 10.0) for _ in range(9))
    belief = one(Evidence("a", readings, "calibrated", 0.1, waits=((10.0, 20.0),) * 9))
    random = np.random.default_rng(1)
    boards = [draw(belief, random) for _ in range(300)]
    assert stdev(b.active_watts for b in boards) == pytest.approx(0.5, rel=0.2)
    assert stdev(b.waiting_watts / b.active_watts for b in boards) < 0.02
