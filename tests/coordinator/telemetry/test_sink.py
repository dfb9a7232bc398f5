"""From the loop into the spool: thinned where asked, never stamped by an unset clock, never raising."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.telemetry.settings import TelemetryOptions
from coordinator.telemetry.sink import Sink
from tests.coordinator.telemetry.takers import CHANNELS, SETTINGS, Taker, board_row, power, round_row

WALL = 1_790_000_000.0


class Clock:
    """Monotonic and wall seconds, moved by the test."""

    def __init__(self) -> None:
        self.now, self.wall = 100.0, WALL

    def pass_(self, seconds: float) -> None:
        self.now += seconds
        self.wall += seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


def made(folder: Path, clock: Clock, **options: Any) -> Sink:
    wanted = TelemetryOptions(url="http://127.0.0.1:1", **options)
    board = lambda name: ("", CHANNELS)  # noqa: E731
    return Sink("lab", folder, wanted, Taker(), board, clock=lambda: clock.now, wall=lambda: clock.wall)


@pytest.fixture
def sink(tmp_path: Path, clock: Clock) -> Iterator[Sink]:
    found = made(tmp_path, clock)
    yield found
    found.spool.close()


def lines(sink: Sink) -> list[str]:
    """What is on the disk once the loop's turn is over; it is taken away."""
    sink.see("turn", None)
    return kept(sink)


def kept(sink: Sink) -> list[str]:
    found: list[str] = []
    while (segment := sink.spool.oldest()) is not None:
        found += segment.lines()
        sink.spool.remove(segment)
    return found


def test_all_points_have_the_coordinators_time(sink: Sink) -> None:
    sink.see("power", power())
    found = lines(sink)
    assert len(found) == len(CHANNELS)
    assert all(line.endswith(f" {int(WALL)}000000000") for line in found)


def test_watts_are_written_together_at_the_end_of_the_turn_and_rounds_at_once(
    sink: Sink, clock: Clock
) -> None:
    sink.see("power", power("pi4"))
    clock.pass_(0.5)
    sink.see("power", power("pi5"))
    sink.see("round", round_row())
    assert [line.split(",")[0] for line in kept(sink)] == ["round"]
    stamps = {line.rsplit(" ", 1)[1] for line in lines(sink)}
    assert stamps == {f"{int(WALL)}000000000", f"{int(WALL)}500000000"}, "by when they were heard"


def test_what_was_heard_in_the_last_turn_is_there_after_the_end(tmp_path: Path, clock: Clock) -> None:
    sink = made(tmp_path, clock)
    sink.see("power", power("pi4"))
    sink.close()
    assert len(kept(made(tmp_path, clock))) == len(CHANNELS)


def test_a_clock_that_is_not_set_yet_writes_nothing_until_it_is(sink: Sink, clock: Clock) -> None:
    clock.wall = 40.0  # 1970
    sink.see("begun", {"run": "r1", "settings": SETTINGS})
    sink.see("power", power())
    clock.pass_(20.0)
    sink.see("round", round_row())
    assert lines(sink) == []
    clock.pass_(30.0)
    clock.wall = WALL
    sink.see("power", power())
    found = lines(sink)
    late = [line for line in found if "stamped_late=true" in line]
    begun, told = (next(line for line in late if line.startswith(start)) for start in ("event", "round"))
    assert begun.endswith(f" {int(WALL) - 50}000000000")
    assert told.endswith(f" {int(WALL) - 30}000000000")
    assert len(found) - len(late) == len(CHANNELS), "what is told now is not late"


def test_watts_are_thinned_by_board_where_asked(tmp_path: Path, clock: Clock) -> None:
    sink = made(tmp_path, clock, power_seconds=5.0)
    for _ in range(20):
        sink.see("power", power("pi4"))
        sink.see("power", power("pi5"))
        clock.pass_(1.0)
    headline = [line for line in lines(sink) if "channel=pmic" in line]
    assert len(headline) == 2 * 4
    sink.spool.close()


def test_a_second_of_a_thousand_boards_loses_nothing(sink: Sink) -> None:
    names = [f"b{number:04d}" for number in range(1000)]
    for name in names:
        sink.see("power", power(name))
    found = [line.partition("board=")[2].partition(",")[0] for line in lines(sink)]
    assert sorted(found) == sorted(names * len(CHANNELS))
    assert sink.spool.dropped == {"rounds": 0, "power": 0}


def test_a_row_that_no_point_can_be_made_of_costs_nothing_else(sink: Sink) -> None:
    sink.see("round", {"round": 1})
    assert sink.faults == 1
    sink.see("board_round", board_row())
    assert len(lines(sink)) == 1


def test_unknown_events_are_none_of_its_business(sink: Sink) -> None:
    sink.see("something new", object())
    assert (lines(sink), sink.faults) == ([], 0)
