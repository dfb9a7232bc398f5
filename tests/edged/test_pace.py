"""Pacing under a clock that the test holds."""

import pytest

from edged.pace import NATIVE_SHARE, Pace, measured


class Clock:
    """Sleeping moves it, and so does work."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    def work(self, seconds: float) -> None:
        self.now += seconds


def paced(seconds_per_sample: float | None) -> tuple[Clock, Pace]:
    clock = Clock()
    pace = Pace(seconds_per_sample, clock, clock.work)
    pace.begin()
    return clock, pace


def test_steps_take_the_emulated_boards_time() -> None:
    clock, pace = paced(0.1)
    for _ in range(5):
        clock.work(0.3)
        pace.step(8)
    assert clock.now == pytest.approx(50.0 + 5 * 0.8)
    assert pace.behind_steps == 0


def test_a_late_wake_up_is_made_up_for_by_the_next_step() -> None:
    clock, pace = paced(0.1)
    pace.step(10)
    clock.work(0.2)  # the machine was away
    clock.work(0.3)
    pace.step(10)
    assert clock.now == pytest.approx(52.0)


def test_a_step_that_overruns_is_behind_and_is_not_made_up_for() -> None:
    clock, pace = paced(0.1)
    clock.work(1.5)
    pace.step(10)
    assert pace.behind_steps == 1
    clock.work(0.2)
    pace.step(10)
    assert clock.now == pytest.approx(52.5)
    assert pace.behind_steps == 1


def test_without_a_pace_nothing_is_padded() -> None:
    clock, pace = paced(None)
    clock.work(0.3)
    pace.step(10)
    assert clock.now == pytest.approx(50.3)
    assert pace.behind_steps == 0


def test_a_measured_pace_leaves_native_work_its_share_of_the_slowest_step() -> None:
    seconds = measured([0.02, 0.04, 0.03], 8)
    assert 0.04 / (seconds * 8) == pytest.approx(NATIVE_SHARE)
