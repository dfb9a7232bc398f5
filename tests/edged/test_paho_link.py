"""A link that cannot connect says at which stage, and goes on trying. No broker is needed for that."""

import socket
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from edged.link import Announcement, Down, LinkConfig, LinkState, Stage, Up
from edged.paho_link import PahoLink

QUICK: dict[str, Any] = {
    "connect_seconds": 0.5,
    "version_seconds": 0.2,
    "first_backoff_seconds": 0.05,
    "longest_backoff_seconds": 0.1,
}

LEFT_OPEN = pytest.mark.filterwarnings(
    # paho leaves the socket of a failed handshake to the garbage collector.
    "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)


@pytest.fixture
def listen() -> Iterator[Callable[[Callable[[socket.socket], None]], int]]:
    """A listener on loopback that does something odd with each connection; returns its port."""
    servers: list[socket.socket] = []

    def start(behave: Callable[[socket.socket], None]) -> int:
        server = socket.create_server(("127.0.0.1", 0))
        servers.append(server)

        def accept() -> None:
            held = []
            try:
                while True:
                    connection, _ = server.accept()
                    held.append(connection)
                    behave(connection)
            except OSError:
                for connection in held:
                    connection.close()

        threading.Thread(target=accept, daemon=True).start()
        return int(server.getsockname()[1])

    yield start
    for server in servers:
        server.shutdown(socket.SHUT_RDWR)
        server.close()


def first_stage(config: LinkConfig, announcement: Announcement | None = None) -> Stage:
    link = PahoLink(config, announcement)
    link.start()
    try:
        stage = link.events.get(timeout=15.0)
        assert isinstance(stage, Stage)
        assert link.status().reason == stage.reason
        return stage
    finally:
        link.close(0.1)


def closed_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def test_a_name_that_does_not_resolve() -> None:
    stage = first_stage(LinkConfig("broker..lab", 1883, "b1", **QUICK))
    assert stage.stage == "DNS"
    assert stage.reason.startswith("broker..lab:1883 DNS: the name does not resolve")


def test_nobody_listens() -> None:
    port = closed_port()
    stage = first_stage(LinkConfig("127.0.0.1", port, "b1", **QUICK))
    assert stage.stage == "TCP"
    assert stage.reason.startswith(f"127.0.0.1:{port} TCP: no connection: ")


@LEFT_OPEN
def test_the_listener_speaks_no_tls(listen: Callable[[Callable[[socket.socket], None]], int]) -> None:
    def answer(connection: socket.socket) -> None:
        connection.sendall(b"220 this is no broker\r\n")

    stage = first_stage(LinkConfig("127.0.0.1", listen(answer), "b1", tls=True, **QUICK))
    assert stage.stage == "TLS"


@LEFT_OPEN
def test_the_tls_handshake_is_never_answered(
    listen: Callable[[Callable[[socket.socket], None]], int],
) -> None:
    # paho 2.1 waits for the handshake as long as the keepalive, 2.2 as long as the connect.
    config = LinkConfig("127.0.0.1", listen(lambda _: None), "b1", tls=True, keepalive_seconds=1, **QUICK)
    assert first_stage(config).stage == "TLS"


def test_a_missing_certificate_is_named() -> None:
    config = LinkConfig("127.0.0.1", closed_port(), "b1", tls=True, ca_file="/nowhere/ca.crt", **QUICK)
    stage = first_stage(config)
    assert stage.stage == "TLS"
    assert "/nowhere/ca.crt" in stage.reason


def test_connect_is_never_answered(listen: Callable[[Callable[[socket.socket], None]], int]) -> None:
    stage = first_stage(LinkConfig("127.0.0.1", listen(lambda _: None), "b1", **QUICK))
    assert stage.stage == "CONNACK"
    assert "no answer within 0.2 s" in stage.reason


def test_connect_is_answered_by_hanging_up(listen: Callable[[Callable[[socket.socket], None]], int]) -> None:
    stage = first_stage(LinkConfig("127.0.0.1", listen(lambda line: line.close()), "b1", **QUICK))
    assert stage.stage == "CONNACK"
    assert "closed the connection without an answer" in stage.reason


def test_connect_is_answered_with_nonsense(listen: Callable[[Callable[[socket.socket], None]], int]) -> None:
    def answer(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(b"HTTP/1.1 400 Bad Request\r\n\r\n")

    stage = first_stage(LinkConfig("127.0.0.1", listen(answer), "b1", **QUICK))
    assert stage.stage == "CONNACK"


@pytest.mark.parametrize(
    ("last_word", "said"),
    [
        (b"", "TCP: the connection was lost"),
        (b"\xe0\x02\x8e\x00", "the broker disconnects: Session taken over"),  # DISCONNECT of MQTT v5
    ],
)
def test_a_connection_that_was_up_names_what_failed_and_not_up(
    listen: Callable[[Callable[[socket.socket], None]], int], last_word: bytes, said: str
) -> None:
    def accept_and_hang_up(connection: socket.socket) -> None:
        connection.recv(1024)
        connection.sendall(b"\x20\x03\x00\x00\x00")  # CONNACK
        up.wait(15.0)
        connection.sendall(last_word)
        connection.close()

    up = threading.Event()
    config = LinkConfig("127.0.0.1", listen(accept_and_hang_up), "b1", **QUICK | {"version_seconds": 15.0})
    link = PahoLink(config)
    link.start()
    try:
        assert isinstance(link.events.get(timeout=15.0), Up)
        up.set()
        down = link.events.get(timeout=15.0)
    finally:
        link.close(0.1)
    assert down == Down(f"127.0.0.1:{config.port}{' ' if said.startswith('TCP') else ': '}{said}")


def test_a_password_file_that_is_missing_is_named(tmp_path: Path) -> None:
    config = LinkConfig(
        "127.0.0.1", closed_port(), "b1", username="b1", password_file=str(tmp_path / "password"), **QUICK
    )
    stage = first_stage(config)
    assert stage.stage == "CONNACK"
    assert str(tmp_path / "password") in stage.reason


def test_a_failure_that_repeats_is_told_once_and_counted() -> None:
    link = PahoLink(LinkConfig("127.0.0.1", closed_port(), "b1", **QUICK))
    link.start()
    link.events.get(timeout=15.0)
    while link.status().counters.failed_attempts < 4:
        threading.Event().wait(0.02)
    link.close(0.1)
    assert link.events.empty()


def test_a_failure_inside_the_link_does_not_end_it() -> None:
    def broken(connection: int, state: LinkState) -> bytes:
        raise RuntimeError(f"no words for {state}")

    link = PahoLink(LinkConfig("127.0.0.1", closed_port(), "b1", **QUICK), Announcement("birth", broken))
    link.start()
    stage = link.events.get(timeout=15.0)
    assert isinstance(stage, Stage)
    assert "no words for lost" in stage.reason
    while link.status().counters.restarts < 3:
        threading.Event().wait(0.02)
    link.close(0.1)
    assert link.status().stage == "closed"


def test_the_owners_own_queue_is_used() -> None:
    events: SimpleQueue[object] = SimpleQueue()
    link = PahoLink(LinkConfig("127.0.0.1", closed_port(), "b1", **QUICK), events=events)
    link.start()
    assert isinstance(events.get(timeout=15.0), Stage)
    link.close(0.1)


@pytest.mark.parametrize(
    ("host", "port", "client_id", "words"),
    [
        ("", 1883, "b1", "broker address ''"),
        ("h", 0, "b1", r"port of 1\.\.65535"),
        ("h", 99_999, "b1", r"port of 1\.\.65535"),
        ("h", 1883, "", "client id is empty"),
    ],
)
def test_an_address_that_cannot_be_is_refused_at_once(
    host: str, port: int, client_id: str, words: str
) -> None:
    with pytest.raises(ValueError, match=words):
        LinkConfig(host, port, client_id)
