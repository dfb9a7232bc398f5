"""An operator's client over the in-memory link: answers, silence, refusal, and who is to blame for it."""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import pytest

from coordinator.client import Client, NobodyAnswersError, NoBrokerError, NotDoneError, client_id
from edged.controls import GetStatus, Pause, Reply, Request
from edged.link import LinkConfig, Message
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.messages import FleetState, decode, encode
from edged.topics import Topics

TOPICS = Topics("lab")
CONFIG = LinkConfig("broker.test", 1883, client_id("lab", "cli-1"))


def client(broker: MemoryBroker) -> Client:
    return Client(MemoryLink(broker, CONFIG), CONFIG, "lab", "cli-1")


@contextmanager
def coordinator(broker: MemoryBroker, answer: Callable[[Request], list[bytes]]) -> Iterator[None]:
    """Answers each request with these payloads."""
    link = MemoryLink(broker, LinkConfig("broker.test", 1883, client_id("lab", "coordinator")))
    link.subscribe(TOPICS.of("request"))
    link.start()

    def work() -> None:
        while (event := link.events.get()) is not None:
            if isinstance(event, Message):
                request = decode(Request, event.payload)
                for payload in answer(request):
                    link.publish(TOPICS.of("reply", client=request.client), payload)

    thread = threading.Thread(target=work)
    thread.start()
    try:
        yield
    finally:
        link.events.put(None)
        thread.join()


def test_the_answer_to_this_question_is_taken_and_no_other() -> None:
    broker = MemoryBroker()

    def answer(request: Request) -> list[bytes]:
        return [encode(Reply("q-other", True, "not yours")), encode(Reply(request.id, True, "paused"))]

    with coordinator(broker, answer), client(broker) as mine:
        assert mine.ask(Pause()).text == "paused"


def test_the_request_says_what_and_who() -> None:
    broker, heard = MemoryBroker(), list[Request]()

    def answer(request: Request) -> list[bytes]:
        heard.append(request)
        return [encode(Reply(request.id, True))]

    with coordinator(broker, answer), client(broker) as mine:
        mine.ask(Pause())
    assert heard[0].do == Pause()
    assert "@" in heard[0].who


def test_a_refusal_is_an_error_in_the_coordinators_words() -> None:
    broker = MemoryBroker()
    refusal = lambda request: [encode(Reply(request.id, False, "no run goes on"))]  # noqa: E731
    with coordinator(broker, refusal), client(broker) as mine, pytest.raises(NotDoneError, match="no run"):
        mine.demand(Pause())


@pytest.mark.parametrize(
    ("state", "words"),
    [
        (None, "none was ever seen"),
        (
            FleetState("b", 1, "up", host="pi"),
            "the one on pi is connected, but does not answer; it may still do",
        ),
        (FleetState("b", 1, "lost", host="pi"), r"the one on pi is gone \(lost\)"),
    ],
)
def test_silence_is_told_with_what_is_known_of_the_coordinator(state: FleetState | None, words: str) -> None:
    broker = MemoryBroker()
    if state is not None:
        broker.publish(TOPICS.of("fleet"), encode(state), retain=True)
    with client(broker) as mine, pytest.raises(NobodyAnswersError, match=words) as caught:
        mine.ask(GetStatus(), seconds=0.05)
    assert "broker.test:1883" in str(caught.value)


def test_a_broker_that_is_not_there_is_named_with_the_stage() -> None:
    broker = MemoryBroker()
    broker.stop()
    with pytest.raises(NoBrokerError, match=r"broker\.test:1883 TCP: the broker is stopped"), client(broker):
        pass


def test_a_subscription_that_is_refused_is_named() -> None:
    broker = MemoryBroker()
    broker.refused_filters.add(TOPICS.of("reply", client="cli-1"))
    with pytest.raises(NoBrokerError, match=r"SUBACK: .*control/reply/cli-1"), client(broker):
        pass


def test_a_request_that_the_broker_refuses_is_an_acl_fault() -> None:
    broker = MemoryBroker()
    broker.refused_topics.add(TOPICS.of("request"))
    with client(broker) as mine, pytest.raises(NoBrokerError, match="check the ACL for edged/v1/lab/control"):
        mine.ask(Pause())


def test_an_answer_that_cannot_be_read_is_told_as_such() -> None:
    broker = MemoryBroker()
    with (
        coordinator(broker, lambda _: [b'{"id": 3}']),
        client(broker) as mine,
        pytest.raises(NobodyAnswersError, match="cannot be read"),
    ):
        mine.ask(Pause())


def test_a_fleet_state_that_is_none_changes_nothing() -> None:
    broker = MemoryBroker()
    broker.publish(TOPICS.of("fleet"), b"\x00nonsense", retain=True)
    with client(broker) as mine:
        assert not mine.wait(0.01)
        assert mine.fleet is None
        broker.publish(TOPICS.of("fleet"), encode(FleetState("b", 1, "up", round=3)), retain=True)
        assert mine.wait(1.0)
        assert mine.fleet is not None
        assert mine.fleet.round == 3


def test_a_lost_connection_is_seen_and_an_answer_still_awaited_is_not_promised() -> None:
    broker = MemoryBroker()
    link = MemoryLink(broker, CONFIG)
    with Client(link, CONFIG, "lab", "cli-1") as mine:
        link.lose("the cable is out")
        with pytest.raises(NoBrokerError):
            mine.ask(Pause(), seconds=0.05)
        assert not mine.connected
