"""The window of synchronous steps divided into parts, by what the board draws while it waits."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import asdict, replace

from edged.books import Books
from edged.division import FLAG, NO_WATTS, divide
from edged.messages import Part
from edged.stamps import Stamps
from edged.waiting import Waiting
from edged.work import Finished, Split
from tests.edged.test_books import Desk

SECONDS = st.floats(0, 50)
SPLIT = Split(compute_seconds=4.0, communication_seconds=1.0, wait_seconds=2.0, steady_seconds=3.0)


def test_waiting_and_communication_are_charged_at_the_watts_of_waiting_and_the_rest_is_computing() -> None:
    found = divide(Part(8.0, 30.0), SPLIT, 2.0)
    assert found.communication == Part(1.0, 2.0)
    assert found.wait == Part(2.0, 4.0)
    assert (found.compute.seconds, found.overhead.seconds) == (4.0, 1.0)
    assert found.compute.joules == pytest.approx(24.0 * 4 / 5)
    assert found.overhead.joules == pytest.approx(24.0 / 5)


def test_computing_never_gets_less_than_nothing() -> None:
    found = divide(Part(8.0, 5.0), SPLIT, 2.0)
    assert (found.compute.joules, found.overhead.joules) == (0.0, 0.0)
    assert found.wait.joules == pytest.approx(5.0 * 2 / 3)


@settings(max_examples=150, deadline=None)
@given(parts=st.tuples(SECONDS, SECONDS, SECONDS, SECONDS), joules=st.floats(0, 1e4), watts=st.floats(0, 50))
def test_the_parts_add_up_to_the_window(
    parts: tuple[float, float, float, float], joules: float, watts: float
) -> None:
    compute, communication, wait, _ = parts
    window = Part(sum(parts), joules)
    found = divide(window, Split(compute, communication, wait, compute), watts)
    every = [found.compute, found.communication, found.wait, found.overhead]
    assert sum(part.seconds for part in every) == pytest.approx(window.seconds)
    assert sum(part.joules or 0.0 for part in every) == pytest.approx(joules)
    assert min(part.joules or 0.0 for part in every) >= 0


def test_uncertainties_of_window_and_watts_add_in_squares() -> None:
    found = divide(Part(7.0, 30.0), SPLIT, 2.0, 0.4, 0.1)
    assert found.uncertainty_joules == pytest.approx((0.4**2 + (3 * 0.1) ** 2) ** 0.5)
    assert divide(Part(7.0, 30.0), SPLIT, 2.0, None, 0.1).uncertainty_joules is None


def test_without_the_watts_of_waiting_no_joule_is_made_up() -> None:
    found = divide(Part(8.0, 30.0), SPLIT, None)
    assert [part.joules for part in (found.compute, found.wait, found.overhead)] == [None, None, None]
    assert found.compute.seconds == 4.0


def linger(desk: Desk, waiting: Waiting, start: int, stop: int) -> None:
    for second in range(start, stop + 1):
        desk.at(second)
        desk.meter.sample()
        waiting.look(desk.clock.now, waiting=True)


def stepping(desk: Desk, start: float) -> Finished:
    """An order with 8 s of steps: 4 s computing at 6 W, the rest at 2 W."""
    desk.books.open("o", desk.at(start))
    desk.books.enter("compute", desk.at(start))
    for second in range(4):
        desk.activity.begin(desk.at(start + 2 * second))
        desk.activity.end(desk.at(start + 2 * second + 1))
    desk.books.enter("overhead", desk.at(start + 8))
    split = Split(4.0, 1.0, 3.0, 3.0)
    return Finished("o", desk.clock.now, 40, 4, 1.0, {}, 30, 1000.0 + start + 2, 0, 0, split)


def test_a_board_that_has_waited_for_ten_seconds_can_tell_the_joules_of_its_steps(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    waiting = Waiting(desk.meter)
    desk.books = Books(desk.meter, waiting)
    linger(desk, waiting, 0, 11)
    assert waiting.known
    assert waiting.watts is not None
    assert waiting.watts.watts == pytest.approx(2.0)
    waiting.look(desk.clock.now, waiting=False)
    done = stepping(desk, 20)
    energy = desk.books.energy(done.split)
    assert energy.joules == pytest.approx(24.0)
    assert FLAG in energy.flags
    parts = desk.books.parts(desk.clock.now, done.split)
    assert (parts.wait.seconds, parts.communication.seconds) == (3.0, 1.0)
    assert parts.wait.joules == pytest.approx(6.0)
    assert parts.communication.joules == pytest.approx(2.0)
    steady = desk.books.steady(done)
    assert (steady.samples, steady.seconds) == (30, 3.0)
    assert steady.joules == pytest.approx(18.0)
    total = sum(part.joules or 0.0 for part in (getattr(parts, name) for name in asdict(parts)))
    assert total == pytest.approx(4 * 6.0 + 4 * 2.0)


def test_a_board_that_never_waited_says_why_it_knows_no_joules(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    waiting = Waiting(desk.meter)
    desk.books = Books(desk.meter, waiting)
    linger(desk, waiting, 0, 6)
    assert not waiting.known
    done = stepping(desk, 20)
    energy = desk.books.energy(done.split)
    assert energy.joules is None
    assert energy.reason == NO_WATTS
    assert desk.books.steady(done).joules is None


def test_the_watts_of_waiting_count_for_their_own_scope_alone(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    waiting = Waiting(desk.meter)
    desk.books = Books(desk.meter, waiting)
    linger(desk, waiting, 0, 11)
    assert waiting.watts is not None
    assert waiting.watts.scope == "wall"
    waiting.watts = replace(waiting.watts, scope="package")
    done = stepping(desk, 20)
    energy = desk.books.energy(done.split)
    assert (energy.joules, energy.reason) == (None, NO_WATTS)
    assert desk.books.parts(desk.clock.now, done.split).compute.joules is None


def test_work_in_between_ends_a_stretch_and_no_sensor_is_no_reason_to_wait(tmp_path: Path) -> None:
    desk = Desk(tmp_path)
    waiting = Waiting(desk.meter)
    linger(desk, waiting, 0, 6)
    waiting.look(desk.at(7), waiting=False)
    linger(desk, waiting, 8, 14)
    assert not waiting.known
    blind = Desk(tmp_path, sensor=False)
    waiting = Waiting(blind.meter)
    linger(blind, waiting, 0, 11)
    assert waiting.known
    assert waiting.watts is None


class Clock:
    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def test_stamps_part_a_step_into_forward_compute_and_what_follows_the_hand_over() -> None:
    clock = Clock()
    told: list[tuple[float, float]] = []
    stamps = Stamps(lambda begin, end: told.append((begin, end)), clock)
    for forward, backward, exchange in ((1.0, 2.0, 0.5), (1.5, 2.5, 3.0)):
        stamps.begin()
        clock.now += forward
        stamps.forward()
        clock.now += backward
        stamps.handed()
        clock.now += exchange
        stamps.exchanged()
    assert stamps.forward_seconds == 2.5
    assert stamps.compute == [3.0, 4.0]
    assert told == [(0.0, 3.0), (3.5, 7.5)]
    # The other rank needed 0.5 s each time: that is the exchange, the rest was waiting for it.
    split = stamps.split([stamps.tails, [0.5, 0.5]], 1)
    assert split == Split(7.0, 1.0, 2.5, 4.0)
