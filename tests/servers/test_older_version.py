"""Brokers that know MQTT 3.1.1 alone, and what that version cannot say."""

import socket
import threading
import time
from collections.abc import Callable
from contextlib import suppress
from typing import Any, TypeVar

import pytest

from coordinator.broker import Broker
from edged.link import Announcement, Delivered, Down, LinkConfig, Refused, Stage, Up
from edged.paho_link import PahoLink

pytestmark = pytest.mark.server
E = TypeVar("E")
LONG = 15.0
QUICK: dict[str, Any] = {"first_backoff_seconds": 0.1, "longest_backoff_seconds": 0.4, "stable_seconds": 0.0}
BIRTH = Announcement("fleet/b1/birth", lambda connection, state: f"{connection} {state}".encode())


class Downgrade:
    """A broker's address that hangs up on MQTT v5, as brokers do that know only 3.1.1."""

    def __init__(self, broker_port: int) -> None:
        self._broker_port = broker_port
        self._server = socket.create_server(("127.0.0.1", 0))

    def __enter__(self) -> int:
        threading.Thread(target=self._accept, daemon=True).start()
        return int(self._server.getsockname()[1])

    def __exit__(self, *_: object) -> None:
        self._server.shutdown(socket.SHUT_RDWR)
        self._server.close()

    def _accept(self) -> None:
        while True:
            try:
                client, _ = self._server.accept()
            except OSError:
                return
            first = client.recv(65_536)
            # CONNECT: type, length, 00 04 M Q T T, version.
            if first[8:9] == b"\x05":
                client.close()
                continue
            try:
                broker = socket.create_connection(("127.0.0.1", self._broker_port))
            except OSError:
                client.close()
                continue
            broker.sendall(first)
            for source, sink in ((client, broker), (broker, client)):
                threading.Thread(target=self._copy, args=(source, sink), daemon=True).start()

    @staticmethod
    def _copy(source: socket.socket, sink: socket.socket) -> None:
        with suppress(OSError):
            while data := source.recv(65_536):
                sink.sendall(data)
        for end in (source, sink):
            with suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
            end.close()


def wait(link: PahoLink, kind: type[E]) -> E:
    deadline = time.monotonic() + LONG
    while True:
        event = link.events.get(timeout=max(0.1, deadline - time.monotonic()))
        if isinstance(event, kind):
            return event


def test_the_older_version_is_said_once_and_works(mosquitto: Broker) -> None:
    with Downgrade(mosquitto.port) as port:
        board = PahoLink(LinkConfig("127.0.0.1", port, "b1", **QUICK), BIRTH)
        board.start()
        assert wait(board, Stage).reason.endswith("the broker does not speak MQTT v5: 3.1.1 it is")
        first = wait(board, Up)
        mosquitto.kill()
        wait(board, Down)
        mosquitto.start()
        while not isinstance(event := board.events.get(timeout=LONG), Up):
            assert not (isinstance(event, Stage) and "3.1.1 it is" in event.reason)
        assert event.connection > first.connection
        board.close(1.0)


def test_a_broker_that_hangs_up_over_a_size_it_did_not_tell_is_not_asked_for_ever(
    start_mosquitto: Callable[..., Broker],
) -> None:
    """3.1.1 cannot tell a limit: the connection just ends, each time. Later reports must get through."""
    broker = start_mosquitto("message_size_limit 100000\nmax_packet_size 120000\n")
    with Downgrade(broker.port) as port:
        board = PahoLink(LinkConfig("127.0.0.1", port, "b1", **QUICK))
        board.start()
        wait(board, Up)
        assert board.status().protocol == "3.1.1"
        large = board.publish("update", b"x" * 200_000)
        small = board.publish("report", b"done")
        refused = wait(board, Refused)
        assert refused.token == large
        assert "lost 5 times while these 200,015 bytes were sent" in refused.reason
        assert wait(board, Delivered).token == small
        board.close(1.0)
