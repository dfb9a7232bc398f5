"""The contract of `edged/link.py`, held by the link in memory and by the one over MQTT with real brokers."""

import itertools
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TypeVar

import pytest

from coordinator.broker import Broker, BrokerKind
from edged.link import (
    Announcement,
    Delivered,
    Down,
    Link,
    LinkState,
    Message,
    PacketTooLargeError,
    Refused,
    Up,
)
from edged.transfers import Incoming, Outgoing, Sender, describe
from tests.servers.grounds import Ground, MemoryGround, MqttGround

E = TypeVar("E")
LONG = 15.0
"""Patience with a loaded machine; nothing waits for it to pass."""


@pytest.fixture(
    params=["memory", pytest.param("mosquitto", marks=pytest.mark.server), "amqtt"],
)
def ground(
    request: pytest.FixtureRequest, shared_brokers: Callable[[BrokerKind], Broker]
) -> Iterator[MemoryGround | MqttGround]:
    place = MemoryGround() if request.param == "memory" else MqttGround(shared_brokers(request.param))
    yield place
    for link in place.links:
        link.close(0.5)


counter = itertools.count()


@pytest.fixture
def root() -> str:
    """Topics of this test alone, since brokers keep what was retained."""
    return f"test{next(counter)}"


def wait(ground: Ground, link: Link, kind: type[E], accept: Callable[[E], bool] = lambda _: True) -> E:
    """The first event of this kind; others before it are passed over."""
    deadline = time.monotonic() + LONG
    while time.monotonic() < deadline:
        ground.pump()
        while not link.events.empty():
            event = link.events.get()
            if isinstance(event, kind) and accept(event):
                return event
        time.sleep(0.005)
    raise AssertionError(f"no {kind.__name__} within {LONG:g} s; {link.status()}")


def started(ground: Ground, link: Link, *filters: str) -> Link:
    for filter in filters:
        link.subscribe(filter)
    link.start()
    wait(ground, link, Up)
    return link


def words(name: str, topic: str) -> Announcement:
    def payload(connection: int, state: LinkState) -> bytes:
        return f"{name} {connection} {state}".encode()

    return Announcement(topic, payload)


def payload_of(ground: Ground, link: Link, topic: str, ending: str) -> Message:
    return wait(ground, link, Message, lambda m: m.topic == topic and m.payload.endswith(ending.encode()))


def test_a_message_arrives_and_its_sender_hears_that_the_broker_has_it(ground: Ground, root: str) -> None:
    listener = started(ground, ground.link("listener"), f"{root}/+/state")
    speaker = started(ground, ground.link("speaker"))
    token = speaker.publish(f"{root}/b1/state", b'{"phase": "idle"}')
    assert wait(ground, speaker, Delivered) == Delivered(token)
    assert wait(ground, listener, Message) == Message(f"{root}/b1/state", b'{"phase": "idle"}')


def test_what_is_said_before_the_start_is_sent_after_it(ground: Ground, root: str) -> None:
    listener = started(ground, ground.link("listener"), f"{root}/#")
    speaker = ground.link("speaker")
    for number in range(5):
        speaker.publish(f"{root}/report", b"%d" % number)
    assert speaker.status().queued_messages == 5
    speaker.start()
    assert [wait(ground, listener, Message).payload for _ in range(5)] == [b"0", b"1", b"2", b"3", b"4"]


def test_a_burst_of_telemetry_comes_whole_and_in_order_and_reports_amid_it(ground: Ground, root: str) -> None:
    listener = started(ground, ground.link("listener"), f"{root}/#")
    speaker = started(ground, ground.link("speaker"))
    for number in range(300):
        speaker.publish(f"{root}/power", b"%d" % number, qos=0, priority="telemetry")
        if number % 100 == 50:
            speaker.publish(f"{root}/report", b"%d" % number)
    found = [wait(ground, listener, Message) for _ in range(303)]
    watts, reports = (
        [int(message.payload) for message in found if message.topic.endswith(ending)]
        for ending in ("power", "report")
    )
    assert (watts, reports) == (list(range(300)), [50, 150, 250])


def test_a_late_subscriber_sees_who_is_there_who_left_and_who_died(ground: Ground, root: str) -> None:
    stayed = started(ground, ground.link("stayed", words("stayed", f"{root}/stayed/birth")))
    left = started(ground, ground.link("left", words("left", f"{root}/left/birth")))
    left.close()
    ground.kill_a_board(f"{root}/killed/birth")
    late = started(ground, ground.link("late"), f"{root}/+/birth")
    assert payload_of(ground, late, f"{root}/stayed/birth", " up").retain
    payload_of(
        ground, started(ground, ground.link("late2"), f"{root}/left/birth"), f"{root}/left/birth", " closed"
    )
    late3 = started(ground, ground.link("late3"), f"{root}/killed/birth")
    payload_of(ground, late3, f"{root}/killed/birth", " lost")
    again = started(ground, ground.link("left", words("left", f"{root}/left/birth")))
    payload_of(ground, late, f"{root}/left/birth", " up")
    assert again.status().stage == stayed.status().stage == "up"


def test_the_own_birth_is_not_handed_over_but_a_strangers_is(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board", words("mine", f"{root}/birth")))
    stranger = started(ground, ground.link("stranger"))
    stranger.publish(f"{root}/birth", b"somebody else up")
    assert wait(ground, board, Message).payload == b"somebody else up"


def test_a_broker_restart_loses_nothing_that_was_said_meanwhile(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board", words("board", f"{root}/birth")))
    first = board.status().connection
    ground.stop_broker()
    wait(ground, board, Down)
    for number in range(3):
        board.publish(f"{root}/report", b"%d" % number)
        board.publish(f"{root}/state", b"%d" % number, latest=True)
    assert board.status().queued_messages == 4
    assert board.status().reason
    ground.start_broker()
    assert wait(ground, board, Up).connection > first
    assert board.status().counters.reconnects == 1
    assert [wait(ground, board, Delivered) is not None for _ in range(4)]


def test_subscriptions_hold_after_a_reconnect(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board", words("board", f"{root}/birth")), f"{root}/order")
    ground.stop_broker()
    wait(ground, board, Down)
    ground.start_broker()
    wait(ground, board, Up)
    coordinator = started(ground, ground.link("coordinator"), f"{root}/birth")
    coordinator.publish(f"{root}/order", b"train")
    assert wait(ground, board, Message).payload == b"train"
    assert payload_of(ground, coordinator, f"{root}/birth", " up").payload.split()[1] != b"1"


def test_a_filter_may_be_added_while_up(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board"))
    speaker = started(ground, ground.link("speaker"))
    speaker.publish(f"{root}/model", b"weights", retain=True)
    wait(ground, speaker, Delivered)
    board.subscribe(f"{root}/model")
    assert wait(ground, board, Message) == Message(f"{root}/model", b"weights", retain=True)


def test_a_message_too_large_is_refused_with_its_size_and_the_link_goes_on(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board"))
    with pytest.raises(PacketTooLargeError, match=r"2,000,0\d\d bytes, the broker takes 2,000,000"):
        board.publish(f"{root}/update", b"x" * 2_000_000)
    assert wait(ground, board, Refused).topic == f"{root}/update"
    token = board.publish(f"{root}/update", b"x" * 1_999_000)
    assert wait(ground, board, Delivered).token == token
    assert board.status().counters.reconnects == 0


def test_while_down_telemetry_is_dropped_and_counted_and_reports_are_kept(ground: Ground, root: str) -> None:
    board = ground.link("board", None, outbox_bytes=20_000)
    for number in range(50):
        board.publish(f"{root}/power", b"x" * 1000, qos=0, priority="telemetry")
        if number % 5 == 0:
            board.publish(f"{root}/report", b"%d" % number * 500)
    assert board.status().counters.dropped_telemetry >= 35
    assert board.status().queued_bytes <= 20_000
    board.start()
    for _ in range(10):
        wait(ground, board, Delivered)


def test_a_file_passes_in_chunks_within_the_window(ground: Ground, root: str, tmp_path: Path) -> None:
    (tmp_path / "model").write_bytes(bytes(range(256)) * 12_000)
    manifest = describe(tmp_path / "model", 64 * 1024)
    board = started(ground, ground.link("board"), f"{root}/model/+")
    coordinator = started(ground, ground.link("coordinator"))

    def publish(number: int, payload: bytes) -> int:
        return coordinator.publish(f"{root}/model/{number}", payload, priority="chunk")

    sender = Sender(Outgoing(tmp_path / "model", manifest), publish)
    arriving = Incoming(tmp_path / "copy", manifest)
    sender.grant([(0, manifest.chunks)])
    while not sender.idle:
        assert coordinator.status().in_flight <= 8
        assert sender.settled(wait(ground, coordinator, Delivered).token)
    while not arriving.complete:
        message = wait(ground, board, Message)
        arriving.write(int(message.topic.rsplit("/", 1)[1]), message.payload)
    assert arriving.finish().read_bytes() == (tmp_path / "model").read_bytes()


def test_closing_is_quick_and_may_be_repeated_with_or_without_a_broker(ground: Ground, root: str) -> None:
    board = started(ground, ground.link("board", words("board", f"{root}/birth")))
    other = started(ground, ground.link("other", words("other", f"{root}/other")))
    board.publish(f"{root}/report", b"the last word")
    begun = time.monotonic()
    board.close()
    board.close()
    ground.stop_broker()
    other.close()
    assert time.monotonic() - begun < 5.0
    assert board.status().stage == other.status().stage == "closed"
    assert board.status().counters.published == 1


@pytest.mark.parametrize("topic", ["", "a/+/b", "a/#", "a\0"])
def test_a_topic_that_no_broker_takes_is_refused_at_once(ground: Ground, topic: str) -> None:
    with pytest.raises(ValueError, match="is no topic to publish on"):
        ground.link("board").publish(topic, b"")
