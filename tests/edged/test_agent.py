"""The board's agent over a broker in memory: real loop, real child process (without torch), emulated
joules.
"""

import sys
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from queue import Empty

import pytest
from msgspec.structs import replace

from edged import messages as m
from edged.agent import Agent
from edged.cargo import Cargo
from edged.child import Child
from edged.events import Inventory, Phase
from edged.hands import Hands, Plan
from edged.identity import Identity
from edged.link import LinkConfig, OutboxFullError
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.notify import Notify
from edged.stock import Stock
from edged.topics import Topics
from edged.voice import Voice
from probes import load
from probes._outside import real_context
from probes.emulated import Activity
from probes.meter import Meter
from tests.edged.stand_in import StandIn, train_order

TRAINER = Path(__file__).with_name("scripted_trainer.py")
PLAN = Plan("pi4", "main", {"digits": "builtin"}, ())
STOCK = Stock(
    Inventory({"digits": "hash"}, {"digits": "print"}, ("pma",)),
    {"tasks": {"digits": "hash"}, "versions": {}},
)
WATTS = {"board": "test", "wait_watts": 2.0, "train_watts": 6.0, "source": "this test"}


class Desk:
    """A board and a stand-in coordinator on one broker, moved by the test's thread."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.broker = MemoryBroker()
        activity = Activity()
        context = real_context(options={"emulated": WATTS}, activity=activity)
        self.meter = Meter(context, [load("emulated")])
        self.meter.start()
        me = Identity("boot1", "attic", "riscv64", "", 4, 1 << 30)
        voice = Voice(Topics("main"), "pi4", me, folder)
        config = LinkConfig("memory", 1, "edged-main-pi4", first_backoff_seconds=0.1)
        self.link = MemoryLink(self.broker, config, voice.announcement)
        voice.attach(self.link)
        self.child = Child(self.link.events, (sys.executable, str(TRAINER)))
        hands = Hands(
            PLAN,
            voice=voice,
            meter=self.meter,
            cargo=Cargo(folder, voice.chunk),
            child=self.child,
            activity=activity,
            queue=self.link.events,
            max_packet_bytes=lambda: self.link.max_packet_bytes,
        )
        self.agent = Agent(PLAN, boot="boot1", link=self.link, hands=hands, notify=Notify({}))
        other = MemoryLink(self.broker, LinkConfig("memory", 1, "edged-main-coordinator"))
        self.coordinator = StandIn(other, turn=self.turn)
        self.model = folder / "model"
        self.model.write_bytes(bytes(range(256)) * 10)

    def turn(self) -> None:
        """All that waits on the board's queue, and what is due."""
        self.broker.pump()
        while True:
            try:
                event = self.link.events.get(block=False)
            except Empty:
                break
            self.agent.turn(event)
        self.agent.turn(None)

    def stocked(self) -> "Desk":
        self.link.events.put(STOCK)
        self.coordinator.until_ready()
        return self

    def order(self, number: int = 1, do: str = "", **changes: object) -> m.Train:
        """An order whose model has 10 chunks; `do` is what the scripted trainer does."""
        return train_order(self.model, number, chunk_bytes=256, options={"do": do}, **changes)

    def ordered(self, number: int = 1, do: str = "", **changes: object) -> m.Train:
        """Send it and the model."""
        order = self.order(number, do, **changes)
        self.coordinator.send(order)
        self.coordinator.offer(self.model, order.manifest, order.model)
        return order


@pytest.fixture
def desk(tmp_path: Path) -> Iterator[Desk]:
    made = Desk(tmp_path)
    made.agent.begin()
    yield made
    made.agent.end("the test is over")
    made.meter.close()


def total_seconds(parts: m.Parts) -> float:
    return float(sum(getattr(parts, name).seconds for name in m.PARTS))


def total_joules(parts: m.Parts) -> float:
    return float(sum(getattr(parts, name).joules for name in m.PARTS))


def test_an_order_is_trained_reported_uploaded_accepted_and_closed(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered()
    trained = coordinator.until_report("trained", order.order)
    assert (trained.samples, trained.steps, trained.loss_sum) == (40, 5, 12.5)
    assert trained.manifest is not None
    assert trained.energy.basis == "emulated"
    coordinator.until_phase("waiting", order.order)
    assert coordinator.update(order.order).startswith(b"update of r.1.pi4.1")
    assert not list((desk.folder / "updates").iterdir())
    coordinator.stand_by()
    closed = coordinator.until_report("closed", order.order)
    assert closed.parts.compute == trained.parts.compute
    assert closed.parts.lost == m.Part(0.0, 0.0)
    coordinator.until_phase("idle")


def test_parts_of_all_orders_add_up_to_the_meters_difference(desk: Desk) -> None:
    """A round lasts from its order's arrival to the next one's, so between two orders no joule is left
    out.
    """
    coordinator = desk.stocked().coordinator
    orders = [desk.ordered(number).order for number in (1,)]
    start = desk.meter.mark()
    coordinator.until_phase("waiting", orders[0])
    orders.append(desk.ordered(2, "fail").order)
    coordinator.until_phase("waiting", orders[1])
    orders.append(desk.ordered(3).order)
    coordinator.until_phase("waiting", orders[2])
    coordinator.stand_by()
    closed = [coordinator.until_report("closed", order) for order in orders]
    end = desk.meter.mark()
    whole = desk.meter.window(start, end)
    assert whole.joules is not None
    # The marks around the run lie a few turns outside of it.
    slack_seconds = whole.seconds - sum(total_seconds(report.parts) for report in closed)
    assert -0.25 < slack_seconds < 0.25
    joules = sum(total_joules(report.parts) for report in closed)
    assert joules == pytest.approx(whole.joules - 2.0 * slack_seconds, abs=1e-6)
    emulated = sum(
        6 * one.parts.compute.seconds + 2 * (total_seconds(one.parts) - one.parts.compute.seconds)
        for one in closed
    )
    assert joules == pytest.approx(emulated, abs=1e-6)


def test_the_same_order_again_is_answered_and_the_report_repeated(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    coordinator.grants = False
    order = desk.ordered()
    coordinator.until_report("trained", order.order)
    coordinator.until_phase("uploading", order.order)
    states = len(coordinator.states)
    coordinator.send(order)
    coordinator.until(lambda: len(coordinator.reports) == 2, "the report again")
    coordinator.until(lambda: len(coordinator.states) > states, "the state again")
    assert coordinator.reports[0].parts.compute == coordinator.reports[1].parts.compute
    assert desk.child.starts == 1


def test_only_granted_chunks_are_sent(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    coordinator.grants = coordinator.accepts = False
    order = desk.ordered()
    report = coordinator.until_report("trained", order.order)
    assert report.manifest is not None
    desk.turn()
    assert coordinator.chunks == {}
    coordinator.grant(order.order, [(0, 1)])
    coordinator.until(lambda: len(coordinator.chunks[order.order]) == 1, "a chunk")


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


def test_a_new_order_supersedes_the_running_one_whose_compute_is_lost(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    again = desk.ordered(2)
    closed = coordinator.until_report("closed", order.order)
    assert closed.parts.compute.seconds == 0
    assert closed.parts.lost.seconds > 0
    assert closed.samples == 0
    coordinator.until_report("trained", again.order)
    assert desk.child.starts == 1


def test_an_abort_stops_the_training(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    coordinator.send(m.Abort(order=order.order, boot="coord", term=1, reason="deadline passed"))
    coordinator.until_phase("waiting", order.order)
    assert coordinator.states[-1].reason == "deadline passed"
    assert coordinator.states[-1].abandoned is None


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


def test_no_order_before_the_stock_is_known(desk: Desk) -> None:
    coordinator = desk.coordinator
    coordinator.until(lambda: coordinator.births, "a birth")
    order = desk.order()
    coordinator.send(order)
    coordinator.until(lambda: coordinator.states and coordinator.states[-1].reason, "a refusal")
    assert "taking stock" in coordinator.states[-1].reason
    assert coordinator.states[-1].phase == "idle"


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


def test_power_is_said_every_second_with_the_orders_joules(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: [one for one in coordinator.powers if (one.order_joules or 0) > 0], "joules")
    power = coordinator.powers[-1]
    assert power.headline == "emulated/test"
    assert power.basis == "emulated"
    assert power.joules["emulated/test"] >= (power.order_joules or 0)
    assert power.order == order.order


def test_a_clean_stop_abandons_the_order_and_says_farewell(desk: Desk) -> None:
    coordinator = desk.stocked().coordinator
    order = desk.ordered(1, "wait")
    coordinator.until(lambda: desk.agent.board.computing, "computing")
    pid = desk.child.pid
    began = time.monotonic()
    desk.agent.end("SIGTERM")
    assert time.monotonic() - began < 5
    coordinator.until(lambda: coordinator.births[-1].link == "closed", "farewell")
    assert coordinator.until_report("closed", order.order).parts.lost.seconds > 0
    assert coordinator.states[-1].abandoned == order.order
    assert desk.child.pid is None
    assert pid is not None
    assert not Path(f"/proc/{pid}").exists()
    assert not list((desk.folder / "models").iterdir())


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
