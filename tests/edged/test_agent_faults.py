"""The board's agent when something is lost, lies, dies or comes from nowhere."""

from contextlib import suppress

import pytest
from msgspec.structs import replace

from edged import messages as m
from edged.coach import Shelves
from edged.events import Phase
from edged.link import Down, LinkConfig, OutboxFullError, Up
from edged.memory_link import MemoryLink
from edged.stock import Info, Listing, Pool, stock_of
from tests.edged.desk import Desk
from tests.edged.stand_in import StandIn


def test_a_lost_chunk_is_asked_for_and_the_order_goes_on(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.order()
    coordinator.send(order)
    coordinator.offer(desk.model, order.manifest, order.model, [0, 1, 2, 5, 6, 9])
    coordinator.until(lambda: coordinator.wants, "a want")
    assert coordinator.wants[0].ranges == ((3, 5), (7, 9))
    coordinator.offer(desk.model, order.manifest, order.model, [3, 4, 7, 8])
    coordinator.until_report("trained", order.order)


def test_chunks_of_a_version_that_nobody_ordered_are_ignored(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.order()
    coordinator.offer(desk.model, order.manifest, "r.7")
    desk.turn()
    assert desk.agent.board.phase is Phase.IDLE
    assert not list((desk.folder / "models").iterdir())


def test_a_model_with_another_hash_is_discarded_and_the_order_abandoned(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.order()
    lying = replace(order, manifest=replace(order.manifest, sha256="00" * 32))
    coordinator.send(lying)
    coordinator.offer(desk.model, order.manifest, order.model)
    coordinator.until_phase("waiting", order.order)
    assert coordinator.states[-1].abandoned == order.order
    assert "SHA-256" in coordinator.states[-1].reason
    assert not list((desk.folder / "models").iterdir())
    again = desk.ordered(2)
    coordinator.until_report("trained", again.order)


@pytest.mark.parametrize(
    ("do", "words"),
    [("exit", "exit code 3"), ("signal", "SIGILL"), ("fail", "the loss is nan at step 3 of 5")],
)
def test_a_failed_training_is_abandoned_by_name_and_the_next_order_trains(
    desk: Desk, do: str, words: str
) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, do)
    coordinator.until_phase("waiting", order.order)
    assert coordinator.states[-1].abandoned == order.order
    assert words in coordinator.states[-1].reason
    again = desk.ordered(2)
    closed = coordinator.until_report("closed", order.order)
    assert closed.parts.compute == m.Part(0.0, 0.0)
    assert (closed.parts.lost.seconds > 0) is (do != "fail")
    coordinator.until_report("trained", again.order)


def test_a_training_that_hangs_is_ended_at_the_orders_deadline(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "hang", deadline_seconds=0.5)
    coordinator.until_phase("waiting", order.order)
    assert "gave no sign" in coordinator.states[-1].reason
    assert desk.child.pid is None
    again = desk.ordered(2)
    coordinator.until_report("trained", again.order)


def test_a_lost_link_does_not_disturb_the_training_and_the_report_follows(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    desk.link.lose("the cable was pulled")
    coordinator.until(lambda: coordinator.births[-1].link == "lost", "the will")
    again = desk.order(2)
    coordinator.until(lambda: coordinator.births[-1].link == "up", "the birth again")
    assert coordinator.births[-1].conn == 2
    coordinator.until_phase("training", order.order)
    assert coordinator.states[-1].conn == 2
    coordinator.send(again)
    assert coordinator.until_report("closed", order.order).parts.lost.seconds > 0


def test_a_board_that_started_before_its_network_tells_its_address_once_it_has_one(desk: Desk) -> None:
    """And another one when it gets another lease."""
    coordinator = desk.stocked().coordinator
    assert coordinator.births[-1].address == ""
    for connection, address in ((2, "10.0.0.4"), (3, "10.0.0.9")):
        desk.link.events.put(Down("the network is gone"))
        desk.link.events.put(Up(connection, address))
        coordinator.until(lambda address=address: coordinator.births[-1].address == address, address)  # type: ignore[misc]


def test_a_pool_that_was_taken_away_fails_its_order_by_name(desk: Desk) -> None:
    """The order was on its way when the settings were read again."""
    coordinator = desk.stocked().coordinator
    desk.link.events.put(Shelves({"other": "builtin"}, ()))
    order = desk.ordered()
    coordinator.until_phase("waiting", order.order)
    assert coordinator.states[-1].abandoned == order.order
    assert coordinator.states[-1].reason == "pool digits is not in this board's settings any more"


def test_a_second_board_with_this_id_is_named_and_no_order_taken(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    rival = m.Birth(board="pi4", boot="boot2", conn=1, link="up", host="cellar", address="192.0.2.9")
    coordinator.link.publish(coordinator.topics.of("birth", board="pi4"), m.encode(rival), retain=True)
    coordinator.until(lambda: coordinator.births[-1].link == "duplicate", "duplicate")
    assert coordinator.births[-1].rival == "cellar at 192.0.2.9"
    assert coordinator.births[-1].boot == "boot1"
    order = desk.order()
    coordinator.send(order)
    coordinator.until(lambda: "duplicate id" in coordinator.states[-1].reason, "the reason")
    assert coordinator.states[-1].phase == "idle"


GARBAGE = [
    b"",
    b"{",
    b"[]",
    b"null",
    b"\xff\xfe",
    b'{"kind":"train"}',
    b'{"kind":"dance"}',
    b'{"order":1}',
    b"9" * 99,
]


def test_malformed_messages_are_counted_and_nothing_else(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    topics = coordinator.topics
    for payload in GARBAGE:
        for name, fields in (
            ("order", {"board": "pi4"}),
            ("birth", {"board": "pi4"}),
            ("board_model", {"board": "pi4", "version": "r.0", "chunk": 0}),
            ("model", {"version": "r.0", "chunk": 999_999_999}),
        ):
            coordinator.link.publish(topics.of(name, **fields), payload)
    order = desk.ordered()
    coordinator.until_report("trained", order.order)
    # An order and a birth each; an empty birth only clears the topic.
    assert desk.agent.counters["malformed_messages"] == 2 * len(GARBAGE) - 1


@pytest.mark.parametrize("payload", [b"", b"{", b"a will"])
def test_a_birth_that_was_overwritten_is_published_again(desk: Desk, payload: bytes) -> None:
    coordinator = desk.stocked().coordinator
    if payload == b"a will":
        payload = m.encode(m.Birth(board="pi4", boot="boot0", conn=9, link="lost"))
    births = len(coordinator.births)
    coordinator.link.publish(coordinator.topics.of("birth", board="pi4"), payload, retain=True)
    coordinator.until(lambda: coordinator.births[births:] and coordinator.births[-1].link == "up", "a birth")
    late = MemoryLink(desk.broker, LinkConfig("memory", 1, "late"))
    observer = StandIn(late, turn=desk.turn)
    observer.until(lambda: observer.births, "the retained birth")
    assert observer.births[0].tasks == {"digits": "hash"}


def test_a_retained_order_is_not_followed(desk: Desk) -> None:
    """Orders are never retained; one that is would come back at each connect."""
    coordinator = desk.coordinator
    order = desk.order()
    desk.stocked()
    desk.link.lose()
    topic = coordinator.topics.of("order", board="pi4")
    coordinator.link.publish(topic, m.encode(order), retain=True)
    coordinator.until(lambda: desk.agent.counters["retained_orders"], "counted")
    assert desk.agent.board.phase is Phase.IDLE


def test_hostile_chunks_do_not_spoil_the_model(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.order()
    coordinator.send(order)
    coordinator.until_phase("fetching", order.order)
    for number, payload in ((0, b"short"), (3, b"x" * 300), (10, b"x" * 256), (999_999_999, b"x")):
        topic = coordinator.topics.of("model", version="r.0", chunk=number)
        coordinator.link.publish(topic, payload)
    coordinator.offer(desk.model, order.manifest, order.model)
    coordinator.until_report("trained", order.order)


def test_a_full_outbox_is_counted_not_fatal(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    desk.link.lose("away")
    topic = coordinator.topics.of("report", board="pi4")
    with suppress(OutboxFullError):
        while True:
            desk.link.publish(topic, b"x" * 100_000)
    desk.agent.feed(replace(m.Abort(order=order.order, boot="coord", term=1), reason="enough"))
    desk.agent.feed(m.StandBy(boot="coord", term=1))
    assert desk.agent.board.phase is Phase.IDLE


def test_what_cannot_be_used_is_logged_once_a_change(desk: Desk, caplog: pytest.LogCaptureFixture) -> None:
    def told(pools: dict[str, Pool]) -> list[str]:
        caplog.clear()
        with caplog.at_level("WARNING", "edged"):
            desk.link.events.put(stock_of(Listing(pools=pools)))
            desk.turn()
        return [record.getMessage() for record in caplog.records]

    gone, half = Pool(error="/data/mnist: no such folder"), Pool(error="/data/mnist: 3 bytes are missing")
    assert told({"mnist": gone}) == ["pool mnist cannot be used: /data/mnist: no such folder"]
    assert told({"mnist": gone}) == []
    assert told({"mnist": half}) == ["pool mnist cannot be used: /data/mnist: 3 bytes are missing"]
    assert told({"mnist": Pool(Info(9, "print"), ("mnist",))}) == []
    assert told({"mnist": gone}) == ["pool mnist cannot be used: /data/mnist: no such folder"]
