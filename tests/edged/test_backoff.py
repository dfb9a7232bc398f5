"""The wait between attempts to connect."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.backoff import Backoff


@pytest.mark.parametrize(("failures", "ceiling"), [(0, 2.0), (1, 4.0), (2, 8.0), (5, 60.0), (10_000, 60.0)])
def test_the_ceiling_doubles_up_to_a_minute(failures: int, ceiling: float) -> None:
    assert Backoff(failures=failures).ceiling_seconds == ceiling


@settings(deadline=None, max_examples=50)
@given(st.integers(0, 1000), st.floats(0, 1, exclude_max=True))
def test_a_wait_is_anything_below_the_ceiling(failures: int, draw: float) -> None:
    backoff = Backoff(failures=failures)
    assert 0 <= backoff.wait_seconds(draw) < backoff.ceiling_seconds <= 60


def test_a_connection_that_held_for_a_minute_starts_anew() -> None:
    assert Backoff(failures=7).after_loss(60.0).failures == 0


def test_two_clients_with_one_id_soon_wait_long() -> None:
    """Each connects at once and is thrown out a moment later: success alone must not reset the wait."""
    backoff = Backoff()
    for _ in range(5):
        backoff = backoff.after_loss(0.3)
    assert backoff.ceiling_seconds == 60.0


def test_200_boards_do_not_come_back_at_once() -> None:
    """All lose the broker, which stays away for 30 s. No tenth of a second sees a tenth of the fleet."""
    arrivals = []
    for board in range(200):
        source = random.Random(board)
        backoff, now = Backoff().after_loss(3600.0), 0.0
        while True:
            now += backoff.wait_seconds(source.random())
            if now >= 30.0:
                break
            backoff = backoff.after_failure()
        arrivals.append(now)
    busiest = max(sum(start <= arrival < start + 0.1 for arrival in arrivals) for start in arrivals)
    assert busiest <= 20
    assert max(arrivals) < 30.0 + 60.0
