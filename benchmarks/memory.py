"""The coordinator's memory with few and with many boards, and how often the model is published.

Boards are a crowd in one process over mosquitto on loopback that trains nothing and sends the model back:
`python -m benchmarks.memory [--boards 4 64] [--width 3136] [--rounds 1]` (width 3136: 40 MB of weights).
"""

import argparse
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from queue import SimpleQueue
from typing import Any, cast

from coordinator.broker import start_broker
from coordinator.config import Broker, Config, StoreOptions
from coordinator.service import follow_run, opened
from edged import tasks
from edged.controls import RunSettings
from edged.link import Announcement, Delivered, Events, LinkConfig, LinkState, Message, Up
from edged.messages import (
    Birth,
    Grant,
    Order,
    Part,
    Parts,
    PoolOffer,
    Report,
    StandBy,
    State,
    Train,
    decode,
    encode,
)
from edged.paho_link import PahoLink
from edged.topics import Topics
from edged.transfers import Incoming, Outgoing, Sender

POOL = Path("builtin/synthetic")
TOPICS = Topics("main")


class Tagged:
    """A queue that says whose event it is, so that one loop can hear many links."""

    def __init__(self, common: "SimpleQueue[tuple[str, object]]", name: str) -> None:
        self._common, self._name = common, name

    def put(self, item: object) -> None:
        self._common.put((self._name, item))

    def qsize(self) -> int:
        return self._common.qsize()


class Member:
    """One board of the crowd. Only the first keeps the model; all send that file back."""

    def __init__(self, name: str, port: int, folder: Path, events: Tagged, birth: dict[str, Any]) -> None:
        self.name, self.folder, self._birth = name, folder, birth
        self.order: Train | None = None
        self.held: set[int] = set()
        self.incoming: Incoming | None = None
        self.sender: Sender | None = None
        self.ready = False
        announcement = Announcement(TOPICS.of("birth", board=name), self._announce)
        config = LinkConfig("127.0.0.1", port, f"edged-main-{name}", outbox_bytes=32 << 20)
        self.link = PahoLink(config, announcement, cast(Events, events))
        self.link.subscribe(TOPICS.of("order", board=name))
        self.link.subscribe(TOPICS.filter("model"))
        self.link.subscribe(TOPICS.filter("board_model", board=name))
        self.link.start()

    def _announce(self, connection: int, link: LinkState) -> bytes:
        return encode(Birth(self.name, "boot", connection, link, **self._birth))

    def say(self, phase: str) -> None:
        order, model = (self.order.order, self.order.model) if self.order else (None, None)
        held = None if phase == "fetching" else model
        state = State(self.name, "boot", 1, phase, order, chunks_held=len(self.held), model=held)
        self.link.publish(TOPICS.of("state", board=self.name), encode(state))

    def hear(self, event: object, spool: Path) -> bool:
        """False once the run is over."""
        if isinstance(event, Up):
            self.say("idle")
        elif isinstance(event, Delivered) and self.sender is not None:
            self.sender.settled(event.token)
        elif isinstance(event, Message):
            address = TOPICS.parse(event.topic)
            if address is not None and address.version:
                self._chunk(address.chunk, event.payload)
            elif address is not None:
                message: Order = decode(Order, event.payload)
                if isinstance(message, StandBy) and "over" in message.reason:
                    return False
                self._obey(message, spool)
        return True

    def _obey(self, message: Order, spool: Path) -> None:
        if isinstance(message, Train) and (self.order is None or self.order.order != message.order):
            self.order, self.held, self.sender = message, set(), None
            if self.name == "b0":
                self.incoming = Incoming(spool, message.manifest)
            self.say("fetching")
        elif isinstance(message, Grant) and self.order is not None:
            if self.sender is None:
                # The model is the update, so its manifest is the update's.
                self.sender = Sender(Outgoing(spool, self.order.manifest), self._send)
            self.sender.grant(message.ranges)

    def _send(self, number: int, payload: bytes) -> int:
        assert self.order is not None
        topic = TOPICS.of("update", board=self.name, order=self.order.order, chunk=number)
        return self.link.publish(topic, payload, priority="chunk")

    def _chunk(self, number: int, payload: bytes) -> None:
        if self.order is None or number in self.held:
            return
        self.held.add(number)
        if self.incoming is not None:
            self.incoming.write(number, payload)
        if len(self.held) == self.order.manifest.chunks:
            if self.incoming is not None:
                self.incoming.finish()
                self.incoming = None
            self.ready = True
        elif len(self.held) % 16 == 0:
            self.say("fetching")

    def report(self) -> None:
        """Say that it is trained."""
        assert self.order is not None
        self.ready = False
        self.say("uploading")
        parts, samples = Parts(Part(0.5)), self.order.samples
        manifest = self.order.manifest
        report = Report(
            self.name,
            "boot",
            self.order.order,
            "trained",
            self.order.term,
            samples,
            1,
            parts,
            manifest=manifest,
        )
        self.link.publish(TOPICS.of("report", board=self.name), encode(report))


def crowd(count: int, port: int, folder: Path) -> None:
    """Be so many boards until the run is over."""
    task = tasks.find("synthetic")
    info = task.inspect(POOL)
    offer = PoolOffer(info.fingerprint, info.samples, ("synthetic",))
    birth = {"tasks": {"synthetic": tasks.task_hash("synthetic")}, "pools": {"synthetic": offer}}
    common: SimpleQueue[tuple[str, object]] = SimpleQueue()
    names = [f"b{i}" for i in range(count)]
    members = {name: Member(name, port, folder, Tagged(common, name), birth) for name in names}
    going = set(names)
    while going:
        name, event = common.get(timeout=600)
        if not members[name].hear(event, folder / "model"):
            going.discard(name)
        # All send the file that the first one keeps.
        if members["b0"].incoming is None:
            for member in members.values():
                if member.ready:
                    member.report()
    for member in members.values():
        member.link.close()


def coordinate(count: int, port: int, folder: Path, width: int, rounds: int) -> None:
    """Be the coordinator, and print what it cost."""
    config = Config(broker=Broker("127.0.0.1", port), store=StoreOptions(str(folder / "store")))
    settings = RunSettings(
        "synthetic",
        "synthetic",
        64 * count,
        rounds,
        options={"width": width},
        boards=tuple(f"b{i}" for i in range(count)),
        policy="equal",
        evaluate=False,
    )
    with opened(config) as server:
        follow_run(server, settings, "benchmark", lambda run: None)
        assert server.rounds is not None
        length = server.rounds.state.manifest.length_bytes
        copies = sum(server.distribution.published_bytes.values()) / length / rounds
        accepted = server.rounds.state.accepted
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
    print(f"{count} {length} {copies:.2f} {accepted} {peak}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, nargs="+", default=[4, 64])
    parser.add_argument("--width", type=int, default=3136)
    parser.add_argument("--rounds", type=int, default=1)
    parser.add_argument("--part", nargs=4, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.part:
        what, count, port, folder = arguments.part
        if what == "crowd":
            crowd(int(count), int(port), Path(folder))
        else:
            coordinate(int(count), int(port), Path(folder), arguments.width, arguments.rounds)
        return
    peaks = [measure(count, arguments.width, arguments.rounds) for count in arguments.boards]
    print(f"memory, {arguments.boards[-1]} boards to {arguments.boards[0]}: ratio {peaks[-1] / peaks[0]:.2f}")


def measure(count: int, width: int, rounds: int) -> int:
    """Peak bytes of a coordinator with so many boards."""
    with tempfile.TemporaryDirectory() as name:
        broker = start_broker(Path(name) / "broker")
        base = [sys.executable, "-m", "benchmarks.memory", f"--width={width}", f"--rounds={rounds}", "--part"]
        rest = [str(count), str(broker.port), name]
        boards = subprocess.Popen([*base, "crowd", *rest])
        try:
            told = subprocess.run(
                [*base, "coordinator", *rest], capture_output=True, text=True, check=True
            ).stdout
            boards.wait(60)
        finally:
            boards.kill()
            boards.wait()
            broker.stop()
    _, length, copies, accepted, peak = told.split()
    print(
        f"{count} boards, a model of {int(length) / 1e6:.0f} MB, {accepted} samples accepted: coordinator "
        f"{int(peak) / 1e6:.0f} MB at most, {copies} copies of the model published a round"
    )
    return int(peak)


if __name__ == "__main__":
    main()
