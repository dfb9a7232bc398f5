"""A board that has had nothing to do for half a minute knows what doing nothing draws."""

from pathlib import Path

import pytest

from edged.idle import Idle
from tests.edged.test_books import Desk


def linger(desk: Desk, idle: Idle, start: int, stop: int) -> None:
    for second in range(start, stop + 1):
        desk.at(second)
        desk.meter.sample()
        idle.look(desk.clock.now, idle=True)


def work(desk: Desk, start: int) -> None:
    """10 s of compute at 6 W."""
    desk.books.open("o", desk.at(start))
    desk.activity.begin(desk.at(start))
    desk.books.enter("compute", desk.at(start))
    desk.activity.end(desk.at(start + 10))
    desk.books.enter("overhead", desk.at(start + 10))


def test_half_a_minute_without_an_order_gives_the_joules_above_idle(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    idle = Idle(desk.meter)
    linger(desk, idle, 0, 31)
    idle.look(desk.clock.now, idle=False)
    work(desk, 40)
    energy = desk.books.energy()
    assert energy.joules == pytest.approx(60.0)
    assert energy.above_idle_joules == pytest.approx(40.0)


def test_work_in_between_ends_a_stretch(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    idle = Idle(desk.meter)
    linger(desk, idle, 0, 20)
    idle.look(desk.at(21), idle=False)
    linger(desk, idle, 22, 45)
    work(desk, 50)
    assert desk.books.energy().above_idle_joules is None


def test_without_a_sensor_there_is_no_baseline_and_no_fault(tmp_path: Path) -> None:
    desk = Desk(tmp_path, sensor=False)
    idle = Idle(desk.meter)
    linger(desk, idle, 0, 40)
    work(desk, 50)
    energy = desk.books.energy()
    assert (energy.joules, energy.above_idle_joules) == (None, None)
