"""A whole coordinator over an in-memory broker under virtual time, with scripted boards that obey it."""

import tempfile
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import msgspec
import numpy as np

from coordinator.config import Config, StoreOptions
from coordinator.evaluate import Answer, Foundation, Measure, Prepare, Question
from coordinator.server import Server
from coordinator.store import Store
from coordinator.tools import Tools
from coordinator.workers import Callback, Done, Job
from edged import controls
from edged.link import Announcement, Link, LinkConfig, Message, Up
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.messages import (
    Accepted,
    Attend,
    Birth,
    Energy,
    Grant,
    Order,
    Part,
    Parts,
    PoolOffer,
    Refused,
    Report,
    StandBy,
    State,
    Train,
    Want,
    decode,
    encode,
)
from edged.tasks import Defaults
from edged.topics import Topics
from edged.transfers import Incoming, Outgoing, TransferError, describe
from edged.weights import arrays, save

TASK_HASH = "h"
POOL_SAMPLES = 5000


class Crew:
    """Does each job at once, in place."""

    def __init__(self, put: Callable[[Done], None]) -> None:
        self._put = put

    def __call__(self, job: Job, callback: Callback) -> None:
        result: object
        try:
            result = job()
        except Exception as error:
            result = error
        self._put(Done(callback, result))

    def close(self) -> None: ...


class Examiner:
    """Prepares a model of `size` numbers without torch, and finds every version 0.5 good."""

    size = 3000

    def __init__(self, put: Callable[[Answer], None]) -> None:
        self._put = put

    def ask(self, question: Question) -> None:
        if isinstance(question, Measure):
            self._put(Answer(question.id, figures={"accuracy": 0.5, "loss": 1.0}, seconds=0.1))
            return
        if question.options.get("broken"):
            self._put(Answer(question.id, error="task digits has no option broken"))
            return
        self._put(Answer(question.id, foundation=self._prepared(question)))

    def _prepared(self, question: Prepare) -> Foundation:
        target = Path(question.target)
        target.parent.mkdir(parents=True, exist_ok=True)
        save(target, {"w": np.linspace(-1, 1, self.size, dtype="f4"), "n": np.array(0)})
        manifest = describe(target, question.chunk_bytes)
        defaults = Defaults(batch=10, learning_rate=0.1)
        return Foundation("digits", "digits.py", TASK_HASH, defaults, manifest, "f", POOL_SAMPLES)

    def close(self) -> None: ...


class Board:
    """Fetches, "trains" (adds `step` to every number), reports and uploads, unless told otherwise."""

    def __init__(self, hall: "Hall", name: str, seconds_per_sample: float, boot: str) -> None:
        self.hall, self.name, self.seconds_per_sample = hall, name, seconds_per_sample
        self.boot, self.step_size = f"{name}-{boot}", 0.001 * (1 + ord(name[-1]) % 7)
        self.orders: list[Order] = []
        self.order: Train | None = None
        self.phase = "idle"
        self.model: str | None = None
        self.incoming: Incoming | None = None
        self.outgoing: Outgoing | None = None
        self.to_upload: deque[int] = deque()
        self.done_seconds: float | None = None
        self.report: Report | None = None
        self.lossy = self.mute = False
        self.lost: set[tuple[str, int]] = set()
        self.said_seconds = self.fetched_seconds = 0.0
        self.folder = Path(tempfile.mkdtemp(dir=hall.folder))
        config = LinkConfig("memory", 1883, f"edged-main-{name}")
        announcement = Announcement(hall.topics.of("birth", board=name), self._birth)
        self.link = MemoryLink(hall.broker, config, announcement)
        self.link.subscribe(hall.topics.of("order", board=name))
        self.link.subscribe(hall.topics.filter("model"))
        self.link.subscribe(hall.topics.filter("board_model", board=name))
        self.link.start()

    def _birth(self, connection: int, link: str) -> bytes:
        pools = {"digits": PoolOffer("f", POOL_SAMPLES, ("digits",))}
        return encode(
            Birth(
                self.name,
                self.boot,
                connection,
                link,
                host=self.name,
                tasks={"digits": TASK_HASH},
                pools=pools,
            )
        )

    def say(self, **changes: Any) -> None:
        order = self.order.order if self.order else None
        held = self.incoming.received_chunks if self.incoming else 0
        state = State(self.name, self.boot, 1, self.phase, order, 0, held, self.model)
        self.publish("state", encode(msgspec.structs.replace(state, **changes)))
        self.said_seconds = self.hall.now

    def publish(self, route: str, payload: bytes, **fields: str | int) -> None:
        self.link.publish(self.hall.topics.of(route, board=self.name, **fields), payload)

    def step(self) -> None:
        with suppress(Empty):
            while True:
                event = self.link.events.get_nowait()
                if isinstance(event, Up):
                    self.say()
                elif isinstance(event, Message):
                    self._hear(event)
        if self.mute:
            return
        if (
            self.incoming is not None
            and not self.incoming.complete
            and self.hall.now - self.fetched_seconds > 1
        ):
            self.fetched_seconds = self.hall.now
            assert self.order is not None
            want = Want(self.name, self.boot, self.order.model, tuple(self.incoming.missing()))
            self.publish("want", encode(want))
        if self.done_seconds is not None and self.hall.now >= self.done_seconds:
            self._finish()
        for _ in range(min(8, len(self.to_upload))):
            assert self.outgoing is not None
            assert self.order is not None
            number = self.to_upload.popleft()
            self.publish("update", self.outgoing.chunk(number), order=self.order.order, chunk=number)
        if self.hall.now - self.said_seconds >= 10:
            self.say()

    def _hear(self, message: Message) -> None:
        address = self.hall.topics.parse(message.topic)
        assert address is not None
        if address.route.name == "order":
            order: Order = decode(Order, message.payload)
            self.orders.append(order)
            if not self.mute:
                self._obey(order)
        elif self.incoming is not None and self.order is not None and address.version == self.order.model:
            lost = (address.version, address.chunk)
            if self.lossy and address.chunk % 3 == 1 and lost not in self.lost:
                self.lost.add(lost)
                return
            self.fetched_seconds = self.hall.now
            if (
                self.incoming.write(address.chunk, message.payload)
                and self.incoming.received_chunks % 16 == 0
            ):
                self.say()
            self._begin_if_ready()

    def _obey(self, order: Order) -> None:
        if isinstance(order, Train):
            if self.order is None or order.order != self.order.order:
                self.order, self.report, self.fetched_seconds = order, None, self.hall.now
                self.incoming = None
                if self.model != order.model:
                    self.phase = "fetching"
                    self.incoming = Incoming(self.folder / order.model, order.manifest)
            self.say()
            self._begin_if_ready()
            if self.report is not None:
                self.publish("report", encode(msgspec.structs.replace(self.report, term=order.term)))
        elif isinstance(order, Grant) and self.outgoing is not None:
            self.to_upload.extend(n for start, stop in order.ranges for n in range(start, stop))
        elif isinstance(order, Accepted | Refused):
            self.phase, self.to_upload = "waiting", deque()
            self.say()
        elif isinstance(order, Attend | StandBy):
            self.phase, self.order, self.done_seconds = "idle", None, None

    def _begin_if_ready(self) -> None:
        if self.order is None or self.report is not None or self.done_seconds is not None:
            return
        if self.incoming is not None:
            if not self.incoming.complete:
                return
            with suppress(TransferError):
                self.incoming.finish()
            self.incoming = None
        self.model, self.phase = self.order.model, "training"
        self.done_seconds = self.hall.now + self.order.samples * self.seconds_per_sample
        self.say()

    def _finish(self) -> None:
        assert self.order is not None
        self.done_seconds, self.phase = None, "uploading"
        path = self.folder / f"{self.order.order}.update"
        save(path, self.update(dict(arrays(self.folder / self.order.model))))
        manifest = describe(path, self.hall.chunk_bytes)
        self.outgoing = Outgoing(path, manifest)
        samples = self.order.samples
        seconds = samples * self.seconds_per_sample
        self.report = Report(
            self.name,
            self.boot,
            self.order.order,
            "trained",
            self.order.term,
            samples,
            steps=3,
            parts=Parts(Part(seconds, 2 * seconds)),
            energy=Energy(2 * seconds, basis="emulated"),
            loss_sum=float(samples),
            manifest=manifest,
        )
        self.publish("report", encode(self.report))

    def update(self, tensors: dict[str, Any]) -> dict[str, Any]:
        return {"w": tensors["w"] + np.float32(self.step_size), "n": tensors["n"] + 1}


class Hall:
    """`turn` lets a little virtual time pass; `until` turns until something holds."""

    def __init__(self, folder: Path, chunk_bytes: int = 1024, **server: Any) -> None:
        self.folder, self.chunk_bytes, self.now = folder, chunk_bytes, 100.0
        self.broker = MemoryBroker(clock=lambda: self.now)
        self.topics = Topics("main")
        self.followed: list[tuple[str, dict[str, Any]]] = []
        self.boards: list[Board] = []
        self.server = self.open(**server)
        self.operator = MemoryLink(self.broker, LinkConfig("memory", 1883, "edged-main-cli-1"))
        self.operator.subscribe(self.topics.of("reply", client="cli-1"))
        self.operator.subscribe(self.topics.filter("model"))
        self.operator.start()

    def open(self, **server: Any) -> Server:
        config = Config(store=StoreOptions(folder=str(self.folder / "store")))
        tools = Tools(self._link, lambda: self.now, lambda: self.now, Crew, Examiner)
        opened = Server(config, Store(config.store_folder()), tools, follow=self._followed, **server)
        opened.start()
        return opened

    def kill(self) -> None:
        """The coordinator dies without a word; a new process takes its place."""
        assert isinstance(self.server.link, MemoryLink)
        self.server.link.kill()
        self.server.store.close()
        self.now += 3
        self.server = self.open()

    def add(self, *names: str, seconds_per_sample: float = 0.01, boot: str = "boot") -> list[Board]:
        added = [Board(self, name, seconds_per_sample * (i + 1), boot) for i, name in enumerate(names)]
        self.boards += added
        return added

    def turn(self, seconds: float = 0.05) -> None:
        self.now += seconds
        self.broker.pump()
        self.server.step(0.0)
        for board in self.boards:
            board.step()

    def until(self, condition: Callable[[], bool], seconds: float = 300.0) -> None:
        end = self.now + seconds
        while not condition():
            assert self.now < end, f"not within {seconds} s; odd: {self.server.counters._counts}"
            self.turn()

    def ask(self, action: controls.Action) -> controls.Reply:
        request = controls.Request("cli-1", f"q{int(self.now * 1000)}", action, "tester@bench")
        self.operator.publish(self.topics.of("request"), encode(request))
        for _ in range(50):
            self.turn(0.01)
            with suppress(Empty):
                while True:
                    event = self.operator.events.get_nowait()
                    if isinstance(event, Message) and event.topic.endswith("reply/cli-1"):
                        reply = decode(controls.Reply, event.payload)
                        if reply.id == request.id:
                            return reply
        raise AssertionError("no reply")

    def start(self, **changes: Any) -> controls.Reply:
        settings = controls.RunSettings("digits", "digits", 300, 3, name="r1", chunk_bytes=1024)
        return self.ask(controls.Start(msgspec.structs.replace(settings, **changes)))

    def rows(self, table: str, run: str = "r1") -> list[dict[str, Any]]:
        return self.server.store.history.rows(table, run)

    def odd(self, board: str = "-") -> dict[str, int]:
        return {name: count for name, (count, _) in self.server.counters.of(board).items() if count}

    def over(self) -> bool:
        return any(what == "finished" for what, _ in self.followed) and self.server.idle

    def _link(self, config: LinkConfig, announcement: Announcement) -> Link:
        return MemoryLink(self.broker, config, announcement)

    def _followed(self, what: str, row: dict[str, Any]) -> None:
        self.followed.append((what, row))
