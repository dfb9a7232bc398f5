"""A whole coordinator over an in-memory broker under virtual time, with scripted boards that obey it."""

import weakref
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

import msgspec

from coordinator.config import Config, StoreOptions
from coordinator.evaluate import Answer
from coordinator.server import Server
from coordinator.store import Store
from coordinator.tools import Tools
from edged import controls
from edged.link import Announcement, Link, LinkConfig, Message
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.messages import (
    decode,
    encode,
)
from edged.topics import Topics
from tests.coordinator.scripted import Board
from tests.coordinator.stand_ins import Crew, Examiner


class Hall:
    """`turn` lets a little virtual time pass; `until` turns until something holds."""

    def __init__(
        self,
        folder: Path,
        chunk_bytes: int = 1024,
        examiner: Callable[[Callable[[Answer], None]], Examiner] = Examiner,
        **server: Any,
    ) -> None:
        self.folder, self.chunk_bytes, self.now = folder, chunk_bytes, 100.0
        self.broker = MemoryBroker(clock=lambda: self.now)
        self.topics = Topics("main")
        self.followed: list[tuple[str, dict[str, Any]]] = []
        self.boards: list[Board] = []
        self.examiner = examiner
        self.server = self.open(**server)
        self.operator = MemoryLink(self.broker, LinkConfig("memory", 1883, "edged-main-cli-1"))
        self.operator.subscribe(self.topics.of("reply", client="cli-1"))
        self.operator.subscribe(self.topics.filter("model"))
        self.operator.start()

    def open(self, **server: Any) -> Server:
        config = Config(store=StoreOptions(folder=str(self.folder / "store")))
        tools = Tools(self._link, lambda: self.now, lambda: self.now, Crew, self.examiner)
        store = Store(config.store_folder())
        # Most tests leave the hall as it is; Python 3.13 complains of a connection that nobody closed.
        weakref.finalize(self, store.close)
        opened = Server(config, store, tools, follow=self._followed, **server)
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
