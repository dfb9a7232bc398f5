"""Where the contract is tried: a broker of one kind, links to it, and the means to stop and kill."""

import subprocess
import sys
from pathlib import Path
from typing import Any, Protocol

from coordinator.broker import Broker
from edged.link import Announcement, LinkConfig
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.paho_link import PahoLink

QUICK: dict[str, Any] = {
    "version_seconds": 0.4,
    "first_backoff_seconds": 0.1,
    "longest_backoff_seconds": 0.4,
    "stable_seconds": 0.0,
}

BOARD_PROCESS = """
import sys, time
from edged.link import Announcement, LinkConfig, Up
from edged.paho_link import PahoLink
port, topic, version_seconds = int(sys.argv[1]), sys.argv[2], float(sys.argv[3])
say = Announcement(topic, lambda connection, link: f"dead {link}".encode())
link = PahoLink(LinkConfig("127.0.0.1", port, "killed", version_seconds=version_seconds), say)
link.start()
while not isinstance(link.events.get(), Up):
    pass
print("up", flush=True)
time.sleep(60)
"""


class Ground(Protocol):
    """A broker and links to it, of whatever kind."""

    def link(
        self, name: str, announcement: Announcement | None = None, /, **settings: Any
    ) -> MemoryLink | PahoLink: ...

    def pump(self) -> None: ...

    def stop_broker(self) -> None: ...

    def start_broker(self) -> None: ...

    def kill_a_board(self, topic: str) -> None: ...


class MemoryGround:
    def __init__(self) -> None:
        self.broker = MemoryBroker()
        self.links: list[MemoryLink] = []

    def link(self, name: str, announcement: Announcement | None = None, /, **settings: Any) -> MemoryLink:
        link = MemoryLink(self.broker, LinkConfig("memory", 1, name, **QUICK | settings), announcement)
        self.links.append(link)
        return link

    def pump(self) -> None:
        self.broker.pump()

    def stop_broker(self) -> None:
        self.broker.stop()

    def start_broker(self) -> None:
        self.broker.start()

    def kill_a_board(self, topic: str) -> None:
        link = self.link("killed", Announcement(topic, lambda _, state: f"dead {state}".encode()))
        link.start()
        link.kill()


class MqttGround:
    def __init__(self, broker: Broker) -> None:
        self.broker = broker
        self.links: list[PahoLink] = []

    def link(self, name: str, announcement: Announcement | None = None, /, **settings: Any) -> PahoLink:
        config = LinkConfig(self.broker.host, self.broker.port, name, **QUICK | settings)
        self.links.append(PahoLink(config, announcement))
        return self.links[-1]

    def pump(self) -> None: ...

    def stop_broker(self) -> None:
        self.broker.kill()

    def start_broker(self) -> None:
        self.broker.start()

    def kill_a_board(self, topic: str) -> None:
        command = [sys.executable, "-c", BOARD_PROCESS, str(self.broker.port), topic, "0.4"]
        with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=Path(__file__).parents[2]) as board:
            assert board.stdout is not None
            assert board.stdout.readline() == b"up\n"
            board.kill()
