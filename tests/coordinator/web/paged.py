"""A whole coordinator in memory with its live page on a free loopback port; time passes while a test asks."""

import http.client
import json
import socket
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import structs

from coordinator import watching
from coordinator.web.settings import WebOptions
from edged.messages import Power, encode
from tests.coordinator.hall import Hall

PATIENCE_SECONDS = 60.0
T = TypeVar("T")


class Answer(msgspec.Struct):
    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


class Paged:
    """The test's own thread turns the hall, as a coordinator's does its loop; requests run beside it."""

    def __init__(self, folder: Path, token_file: str | None = None) -> None:
        self.hall = Hall(folder)
        server = self.hall.server
        web = WebOptions(listen="127.0.0.1:0", token_file=token_file)
        server.config = structs.replace(server.config, web=web)
        host = watching.live_page(server)
        assert host is not None
        self.host = host
        self.port = int(host.url.rstrip("/").rpartition(":")[2])
        self._crew = ThreadPoolExecutor(4)

    def close(self) -> None:
        self._crew.shutdown()
        self.host.close()
        self.hall.server.close()

    def aside(self, do: Callable[[], T]) -> T:
        """What it comes to, on another thread, while time passes here."""
        doing = self._crew.submit(do)
        while not doing.done():
            self.hall.turn()
            time.sleep(0.002)
        return doing.result()

    def ask(self, method: str, path: str, body: Any = None, **headers: str) -> Answer:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None and not isinstance(body, bytes):
            body, named = json.dumps(body), {"Content-Type": "application/json", **named}

        def request() -> Answer:
            connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=PATIENCE_SECONDS)
            try:
                connection.request(method, path, body, named)
                found = connection.getresponse()
                return Answer(found.status, {k.lower(): v for k, v in found.getheaders()}, found.read())
            finally:
                connection.close()

        return self.aside(request)

    def get(self, path: str, **headers: str) -> Answer:
        return self.ask("GET", path, **headers)

    def run(self, rounds: int = 3, boards: int = 3, **settings: Any) -> None:
        """A run of so many rounds begins."""
        self.hall.add(*[f"b{n}" for n in range(boards)])
        self.hall.turn()
        wanted = {"rounds": rounds, "policy": "adaptive", "min_boards": boards, **settings}
        assert self.hall.start(**wanted).ok

    def until(self, true: Callable[[], Any]) -> Any:
        end = time.monotonic() + PATIENCE_SECONDS
        while not (found := true()):
            assert time.monotonic() < end
            self.hall.turn()
            time.sleep(0.002)
        return found

    def finished(self) -> None:
        self.hall.until(self.hall.over)

    def power(self, board: str, watts: float) -> None:
        """Watts of a board, as the broker would bring them."""
        boot = next(one.boot for one in self.hall.boards if one.name == board)
        message = Power(board, boot, "meter", "measured", {"meter": watts}, {"meter": 10.0})
        self.hall.operator.publish(self.hall.server.topics.of("power", board=board), encode(message))

    def events(self, *wanted: str, meanwhile: Callable[[], object] = lambda: None) -> dict[str, str]:
        """The stream until each wanted event came, with its first data; `meanwhile` is called as it flows."""

        def read() -> dict[str, str]:
            found: dict[str, str] = {}
            with socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_SECONDS) as stream:
                stream.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
                text = b""
                until = time.monotonic() + PATIENCE_SECONDS
                while not set(wanted) <= set(found):
                    assert time.monotonic() < until, (wanted, found)
                    text += stream.recv(65536)
                    meanwhile()
                    whole = text.decode(errors="replace").split("\n\n")[:-1]
                    for name, _, data in (part.partition("\ndata: ") for part in whole):
                        if "event: " in name and data:
                            found.setdefault(name.rpartition("event: ")[2], data)
            return found

        return self.aside(read)
