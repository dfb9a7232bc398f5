"""Joules of orders with the real meter, under a clock that the test holds."""

from dataclasses import replace
from pathlib import Path

import pytest

from edged import messages as m
from edged.books import HELD_UP, LATE, Books
from edged.work import Finished
from probes import load
from probes._energy import Mark, MarkError
from probes._outside import real_context
from probes.emulated import Activity
from probes.meter import Live, Meter, Options


class Clock:
    def __init__(self) -> None:
        self.now = 1000.0

    def monotonic(self) -> float:
        return self.now

    def boottime(self) -> float:
        return self.now


class Desk:
    """A board of 2 W waiting and 6 W training, or one without any sensor."""

    def __init__(self, root: Path, sensor: bool = True) -> None:
        self.clock = Clock()
        self.activity = Activity()
        watts = {"board": "test", "wait_watts": 2.0, "train_watts": 6.0}
        context = real_context(root, {"emulated": watts}, activity=self.activity)
        context = replace(context, clock=self.clock)
        self.meter = Meter(context, [load("emulated")] if sensor else [], Options(history_seconds=60.0))
        self.meter.open()
        self.books = Books(self.meter)

    def at(self, seconds: float) -> float:
        """The clock stands so many seconds after the beginning."""
        self.clock.now = 1000.0 + seconds
        return self.clock.now

    def round(self) -> None:
        """1 s communication, 2 s overhead, 4 s compute, 1 s overhead."""
        self.books.open("o", self.at(0))
        self.books.enter("communication", self.at(0))
        self.books.enter("overhead", self.at(1))
        self.activity.begin(self.at(3))
        self.books.enter("compute", self.at(3))
        self.activity.end(self.at(7))
        self.books.enter("overhead", self.at(7))
        self.at(8)


def finished(steady_samples: int, steady_after: float) -> Finished:
    return Finished("o", 1007.0, 40, 5, 1.0, {}, steady_samples, 1000.0 + steady_after, 0, 0)


def test_joules_go_to_the_part_in_which_they_were_used(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.round()
    parts = desk.books.parts(desk.clock.now)
    assert parts.compute == m.Part(4.0, 24.0)
    assert parts.communication == m.Part(1.0, 2.0)
    assert parts.overhead == m.Part(3.0, 6.0)
    assert parts.wait == m.Part(0.0, 0.0)
    energy = desk.books.energy()
    assert (energy.joules, energy.basis, energy.scope) == (24.0, "emulated", "wall")


def test_a_stamp_that_arrives_later_still_cuts_at_its_instant(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.books.open("o", desk.at(0))
    desk.books.enter("overhead", desk.at(0))
    desk.activity.begin(desk.at(3))
    desk.at(5)
    desk.books.enter("compute", 1003.0)
    parts = desk.books.parts(desk.at(6))
    assert parts.overhead == m.Part(3.0, 6.0)
    assert parts.compute == m.Part(3.0, 18.0)


def test_steady_leaves_out_what_came_before_its_stamp(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.round()
    assert desk.books.steady(finished(30, 4.0)) == m.Steady(30, 3.0, 18.0)
    assert desk.books.steady(finished(40, 3.0)) == m.Steady(40, 4.0, 24.0)
    assert desk.books.steady(finished(0, 7.0)) == m.Steady()
    assert desk.books.steady(finished(8, 9.0)) == m.Steady()


def test_lost_compute_has_no_energy_to_report(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.round()
    desk.books.lose()
    assert desk.books.parts(desk.clock.now).lost == m.Part(4.0, 24.0)
    assert desk.books.energy() == m.Energy(reason="nothing was computed that counts")
    assert desk.books.steady(finished(30, 4.0)) == m.Steady()


def test_without_a_sensor_seconds_are_known_and_joules_are_not(tmp_path: Path) -> None:
    desk = Desk(tmp_path, sensor=False)
    desk.round()
    parts = desk.books.parts(desk.clock.now)
    assert parts.compute == m.Part(4.0, None)
    assert {getattr(parts, name).joules for name in m.PARTS} == {None}
    energy = desk.books.energy()
    assert energy.joules is None
    assert energy.reason
    assert desk.books.order_joules() is None


def test_two_orders_share_the_instant_between_them(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    desk.round()
    first = desk.books.parts(desk.clock.now)
    desk.books.close()
    desk.books.open("p", desk.clock.now)
    desk.books.enter("wait", desk.clock.now)
    second = desk.books.parts(desk.at(10))
    assert sum(getattr(first, name).seconds + getattr(second, name).seconds for name in m.PARTS) == 10.0
    joules = sum(getattr(first, name).joules + getattr(second, name).joules for name in m.PARTS)
    assert joules == pytest.approx(2 * 10 + 4 * 4)


class Forgetful:
    """A meter that knows the last 60 s, as one that interpolates between kept readings does."""

    def __init__(self, desk: Desk) -> None:
        self._clock, self._meter = desk.clock, desk.meter
        self.window, self.live, self.new_run = desk.meter.window, desk.meter.live, desk.meter.new_run
        self.set_idle = desk.meter.set_idle

    def mark(self, at_seconds: float | None = None) -> Mark:
        if at_seconds is not None and at_seconds < self._clock.now - 60:
            raise MarkError("before the kept history")
        return self._meter.mark(at_seconds)


def test_a_stamp_beyond_the_meters_memory_is_flagged_and_seconds_stay_true(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    books = Books(Forgetful(desk))
    books.open("o", desk.at(0))
    books.enter("overhead", desk.at(0))
    desk.at(500)
    books.enter("compute", 1001.0)
    books.enter("overhead", desk.at(501))
    energy = books.energy()
    assert (energy.joules, energy.reason) == (None, HELD_UP)
    assert LATE in energy.flags
    assert books.steady(finished(30, 300.0)) == m.Steady(30, 201.0, None)
    parts = books.parts(desk.at(502))
    assert (parts.compute.seconds, parts.overhead.seconds) == (500.0, 2.0)
    assert parts.compute.joules == 2.0
    # Nothing is lost between the parts, though it lies in the wrong one.
    assert sum(getattr(parts, name).joules for name in m.PARTS) == 2.0 * 502


def test_a_window_that_the_meter_cannot_tell_is_unknown_not_an_end(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    books = Books(Forgetful(desk))
    books.open("o", desk.at(0))
    books.enter("overhead", desk.at(0))
    desk.at(500)
    books.enter("compute", 1001.0)
    books.enter("overhead", 1450.0)
    assert books.energy().joules is None
    assert LATE in books.energy().flags
    assert books.parts(desk.clock.now).compute == m.Part(449.0, None)


class Switching:
    """A meter whose headline becomes another sensor, which has counted since long before."""

    def __init__(self, desk: Desk) -> None:
        self._meter, self.switched = desk.meter, False
        self.window, self.mark, self.new_run = desk.meter.window, desk.meter.mark, desk.meter.new_run
        self.set_idle = desk.meter.set_idle

    def live(self) -> Live:
        live = self._meter.live()
        return replace(live, headline_channel_id="plug", joules=7000.0) if self.switched else live


def test_joules_so_far_are_no_difference_of_two_sensors(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    meter = Switching(desk)
    books = Books(meter)
    books.open("o", desk.at(0))
    desk.at(5)
    desk.meter.sample()
    assert books.order_joules() == pytest.approx(10.0)
    meter.switched = True
    assert books.order_joules() is None


def test_without_an_order_there_is_nothing_to_tell(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    assert desk.books.parts(desk.clock.now) == m.Parts()
    assert desk.books.order_joules() is None
    desk.books.enter("wait", desk.clock.now)
    desk.books.lose()
    assert desk.books.energy().joules is None
