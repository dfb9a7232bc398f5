"""A board that obeys orders over an in-memory broker under virtual time, and lies where a test wants it."""

import tempfile
from collections import deque
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import TYPE_CHECKING, Any

import msgspec
import numpy as np

from edged.link import Announcement, LinkConfig, Message, Up
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
    Steady,
    Train,
    Want,
    decode,
    encode,
)
from edged.transfers import Incoming, Outgoing, TransferError, describe
from edged.weights import arrays, save
from tests.coordinator.stand_ins import POOL_SAMPLES, TASK_HASH

if TYPE_CHECKING:
    from tests.coordinator.hall import Hall


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
        self.tensor = "w"
        """Another name makes its updates those of another model."""
        self.waited_seconds: float | None = None
        """Of each order; None: it never closes an order's account."""
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
                self._close()
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
            self.phase, self.order, self.done_seconds, self.incoming = "idle", None, None, None

    def _close(self) -> None:
        """The account of an order that another one replaces."""
        if self.waited_seconds is not None and self.report is not None:
            wait = Part(self.waited_seconds, 2 * self.waited_seconds)
            parts = msgspec.structs.replace(self.report.parts, wait=wait)
            report = msgspec.structs.replace(self.report, stage="closed", parts=parts, manifest=None)
            self.publish("report", encode(report))

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
            steady=Steady(samples, seconds, 2 * seconds),
            loss_sum=float(samples),
            manifest=manifest,
        )
        self.publish("report", encode(self.report))

    def update(self, tensors: dict[str, Any]) -> dict[str, Any]:
        if self.order is not None and self.order.grain == "gradient":
            return {f"gradient/{self.tensor}": np.full_like(tensors["w"], -self.step_size), "n": tensors["n"]}
        return {"w": tensors["w"] + np.float32(self.step_size), "n": tensors["n"] + 1}
