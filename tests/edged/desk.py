"""A board and a stand-in coordinator on one broker in memory, moved by the test: for the agent's tests."""

import sys
from pathlib import Path
from queue import Empty

from edged import messages as m
from edged.agent import Agent
from edged.cargo import Cargo
from edged.child import Child
from edged.coach import Plan
from edged.events import Inventory
from edged.hands import Hands
from edged.identity import Identity
from edged.link import LinkConfig
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

    def __init__(self, folder: Path, notify: Notify | None = None) -> None:
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
        self.agent = Agent(PLAN, boot="boot1", link=self.link, hands=hands, notify=notify or Notify({}))
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
