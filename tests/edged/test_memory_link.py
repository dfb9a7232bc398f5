"""The broker in memory: its faults on request, and virtual time."""

import pytest

from edged.link import (
    Announcement,
    Delivered,
    Down,
    LinkConfig,
    LinkState,
    Message,
    Refused,
    Stage,
    Up,
)
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink


class Clock:
    """Virtual time, moved to whatever the broker has due next."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def __call__(self) -> float:
        return self.seconds


def say(connection: int, state: LinkState) -> bytes:
    return f"{connection} {state}".encode()


def link(broker: MemoryBroker, name: str, *filters: str, announced: bool = False) -> MemoryLink:
    announcement = Announcement(f"{name}/birth", say) if announced else None
    made = MemoryLink(broker, LinkConfig("memory", 1, name), announcement)
    for filter in filters:
        made.subscribe(filter)
    made.start()
    return made


def heard(made: MemoryLink) -> list[object]:
    events = []
    while not made.events.empty():
        events.append(made.events.get())
    return events


def test_a_duplicate_on_request_arrives_twice_and_is_counted() -> None:
    broker = MemoryBroker()
    listener, speaker = link(broker, "listener", "#"), link(broker, "speaker")
    broker.duplicate("order")
    speaker.publish("order", b"train")
    speaker.publish("order", b"again")
    assert [event.payload for event in heard(listener) if isinstance(event, Message)] == [
        b"train",
        b"train",
        b"again",
    ]
    assert listener.status().counters.duplicates == 1


def test_a_dropped_message_is_acknowledged_and_reaches_nobody() -> None:
    broker = MemoryBroker()
    listener, speaker = link(broker, "listener", "#"), link(broker, "speaker")
    broker.drop("order")
    token = speaker.publish("order", b"train")
    assert Delivered(token) in heard(speaker)
    assert heard(listener) == [Up(1)]


def test_nothing_moves_under_virtual_time_until_the_pump() -> None:
    clock = Clock()
    broker = MemoryBroker(clock=clock, automatic=False, delay_seconds=0.05)
    listener, speaker = link(broker, "listener", "#"), link(broker, "speaker")
    assert heard(listener) == []
    broker.pump()
    broker.delay("first", 10.0)
    speaker.publish("first", b"1")
    speaker.publish("second", b"2")
    arrivals = []
    heard(listener)
    while (due := broker.next_due()) is not None:
        clock.seconds = due
        broker.pump()
        arrivals += [(clock.seconds, event.topic) for event in heard(listener) if isinstance(event, Message)]
    assert arrivals == [(0.05, "second"), (pytest.approx(10.05), "first")]


def test_a_message_whose_acknowledgement_is_lost_with_the_connection_comes_again() -> None:
    clock = Clock()
    broker = MemoryBroker(clock=clock, automatic=False, delay_seconds=0.1)
    listener, speaker = link(broker, "listener", "#"), link(broker, "speaker")
    broker.pump()
    token = speaker.publish("report", b"done")
    speaker.lose()
    while (due := broker.next_due()) is not None:
        clock.seconds = due
        broker.pump()
    assert [event.topic for event in heard(listener) if isinstance(event, Message)] == ["report", "report"]
    assert [event for event in heard(speaker) if not isinstance(event, Stage)] == [
        Up(1),
        Down("connection lost"),
        Up(2),
        Delivered(token),
    ]


def test_the_will_speaks_for_the_killed_and_for_the_lost_and_a_clean_stop_for_itself() -> None:
    broker = MemoryBroker()
    killed, lost, stopped = (link(broker, name, announced=True) for name in ("killed", "lost", "stopped"))
    killed.kill()
    lost.lose()
    stopped.close()
    assert broker.retained("killed/birth") == b"1 lost"
    assert broker.retained("lost/birth") == b"1 lost"
    assert broker.retained("stopped/birth") == b"1 closed"


def test_a_late_will_of_an_older_connection_is_contradicted() -> None:
    """A broker may notice a dead connection after the next one is up: what stays must be the birth."""
    broker = MemoryBroker()
    board = link(broker, "board", announced=True)
    broker.publish("board/birth", say(1, "lost"), retain=True)
    assert broker.retained("board/birth") == b"1 up"
    assert heard(board) == [Up(1)]


def test_two_boards_with_one_id_hear_of_each_other_and_slow_down() -> None:
    clock = Clock()
    broker = MemoryBroker(clock=clock, automatic=False)
    boards = [link(broker, "same", announced=True) for _ in range(2)]
    while (due := broker.next_due()) is not None and due < 3600:
        clock.seconds = due
        broker.pump()
    reasons = {event.reason for event in heard(boards[0]) if isinstance(event, Down)}
    assert reasons == {"session taken over by another client with this id"}
    assert boards[0].status().counters.connects < 3600 / 25


def test_a_broker_that_delivers_nothing_is_named_with_the_topic() -> None:
    clock = Clock()
    broker = MemoryBroker(clock=clock, automatic=False)
    broker.silent = True
    board = link(broker, "board", announced=True)
    broker.pump()
    assert heard(board) == []
    clock.seconds = 10.0
    broker.pump()
    assert heard(board) == [
        Stage(
            "echo",
            "memory:1 echo: the broker accepts us but delivers nothing: check the ACL for board/birth",
        )
    ]
    broker.silent = False
    clock.seconds = 30.0
    broker.pump()
    assert heard(board) == [Up(2)]


def test_refusals_are_named() -> None:
    broker = MemoryBroker()
    broker.refused_topics.add("secret")
    broker.refused_filters.add("private/#")
    board = link(broker, "board")
    token = board.publish("secret", b"x")
    assert heard(board) == [Up(1), Refused("secret", "Not authorized", token)]
    nosy = link(broker, "nosy", "private/#")
    assert heard(nosy) == [
        Stage(
            "SUBACK",
            "memory:1 SUBACK: the broker refuses the subscription to private/#: Not authorized",
        )
    ]
