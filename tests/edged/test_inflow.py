"""What can wait comes together, what cannot comes at once, and nothing is read for an owner who is behind."""

from queue import SimpleQueue

from hypothesis import given
from hypothesis import strategies as st

from edged.inflow import MOST_AT_ONCE, MOST_UNREAD_BYTES, MOST_UNREAD_EVENTS, Inflow
from edged.link import Message

WATTS = Message("edged/v1/lab/board/pi4/power", b"w")
REPORT = Message("edged/v1/lab/board/pi4/report", b"r")


def taken(events: "SimpleQueue[object]") -> list[object]:
    return [events.get_nowait() for _ in range(events.qsize())]


def test_telemetry_is_handed_over_at_the_end_of_its_burst() -> None:
    events: SimpleQueue[object] = SimpleQueue()
    inflow = Inflow(events)
    inflow.begin()
    inflow.put(WATTS, 0)
    inflow.put(WATTS, 0)
    assert events.empty()
    inflow.end()
    assert taken(events) == [WATTS, WATTS]
    assert inflow.patient


def test_a_report_takes_the_telemetry_before_it_along() -> None:
    events: SimpleQueue[object] = SimpleQueue()
    inflow = Inflow(events)
    inflow.begin()
    inflow.put(WATTS, 0)
    inflow.put(REPORT, 1)
    assert taken(events) == [WATTS, REPORT]
    assert not inflow.patient


def test_nobody_waits_after_a_burst_of_nothing() -> None:
    inflow = Inflow(SimpleQueue())
    inflow.begin()
    inflow.put(WATTS, 0)
    inflow.end()
    inflow.begin()
    assert not inflow.patient


def test_reading_goes_on_only_while_something_comes() -> None:
    inflow = Inflow(SimpleQueue())
    inflow.begin()
    assert not inflow.more()
    inflow.put(WATTS, 0)
    assert inflow.more()
    assert not inflow.more()


def test_a_burst_ends_so_that_what_is_to_be_sent_has_its_turn() -> None:
    inflow = Inflow(SimpleQueue())
    inflow.begin()
    for number in range(MOST_AT_ONCE):
        assert inflow.more() is (number > 0)
        inflow.put(WATTS, 0)
    assert not inflow.more()


@given(sizes=st.lists(st.integers(0, MOST_UNREAD_BYTES), max_size=20), taking=st.integers(0, 20))
def test_an_owner_is_behind_by_what_it_has_not_taken(sizes: list[int], taking: int) -> None:
    events: SimpleQueue[object] = SimpleQueue()
    inflow = Inflow(events)
    payload = bytes(MOST_UNREAD_BYTES)
    for size in sizes:
        inflow.put(Message("t", payload[:size]), 1)
    for _ in range(min(taking, len(sizes))):
        events.get_nowait()
    assert inflow.owner_is_behind() is (sum(sizes[min(taking, len(sizes)) :]) >= MOST_UNREAD_BYTES)


def test_an_owner_is_behind_with_many_small_ones_too() -> None:
    inflow = Inflow(SimpleQueue())
    for number in range(MOST_UNREAD_EVENTS):
        assert not inflow.owner_is_behind(), number
        inflow.put(REPORT, 1)
    assert inflow.owner_is_behind()
