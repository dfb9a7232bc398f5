"""What only a real mosquitto can show: access lists, passwords, limits, and its sudden end."""

import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any, TypeVar

import pytest

from coordinator.broker import Broker, find_mosquitto
from edged.link import (
    Announcement,
    Delivered,
    Down,
    LinkConfig,
    Message,
    PacketTooLargeError,
    Refused,
    Stage,
    Up,
)
from edged.paho_link import PahoLink
from edged.transfers import Incoming, Outgoing, Sender, describe

pytestmark = pytest.mark.server
E = TypeVar("E")
LONG = 15.0
QUICK: dict[str, Any] = {"first_backoff_seconds": 0.1, "longest_backoff_seconds": 0.4, "stable_seconds": 0.0}
BIRTH = Announcement("fleet/b1/birth", lambda connection, state: f"{connection} {state}".encode())

StartBroker = Callable[..., Broker]
MakeLink = Callable[..., PahoLink]


@pytest.fixture
def make_link() -> Iterator[MakeLink]:
    links: list[PahoLink] = []

    def make(
        broker: Broker,
        name: str,
        *filters: str,
        announcement: Announcement | None = None,
        events: "SimpleQueue[object] | None" = None,
        start: bool = True,
        **settings: Any,
    ) -> PahoLink:
        config = LinkConfig(broker.host, broker.port, name, **QUICK | settings)
        link = PahoLink(config, announcement, events)
        for filter in filters:
            link.subscribe(filter)
        links.append(link)
        if start:
            link.start()
        return link

    yield make
    for link in links:
        link.close(0.3)


def wait(link: PahoLink, kind: type[E]) -> E:
    deadline = time.monotonic() + LONG
    while True:
        event = link.events.get(timeout=max(0.1, deadline - time.monotonic()))
        if isinstance(event, kind):
            return event


def test_a_transfer_survives_a_killed_broker(mosquitto: Broker, make_link: MakeLink, tmp_path: Path) -> None:
    """The receiver asks for what it lacks, the sender's outbox for what was not acknowledged."""
    (tmp_path / "model").write_bytes(bytes(range(256)) * 20_000)
    manifest = describe(tmp_path / "model", 64 * 1024)
    board = make_link(mosquitto, "board", "model/+")
    coordinator = make_link(mosquitto, "coordinator", "want")
    wait(board, Up)
    wait(coordinator, Up)
    arriving = Incoming(tmp_path / "copy", manifest)
    outgoing = Outgoing(tmp_path / "model", manifest)
    sender = Sender(
        outgoing, lambda number, payload: coordinator.publish(f"model/{number}", payload, priority="chunk")
    )
    sender.grant([(0, manifest.chunks)])
    killed = False
    deadline = time.monotonic() + LONG
    while not arriving.complete:
        assert time.monotonic() < deadline, arriving.missing()
        while not board.events.empty():
            event = board.events.get()
            if isinstance(event, Message):
                arriving.write(int(event.topic.split("/")[1]), event.payload)
        if arriving.received_chunks > 10 and not killed:
            killed = True
            mosquitto.kill()
            mosquitto.start()
        while not coordinator.events.empty():
            event = coordinator.events.get()
            if isinstance(event, Delivered):
                sender.settled(event.token)
        if sender.idle and board.status().stage == "up":
            sender.grant(arriving.missing())
        time.sleep(0.001)
    outgoing.close()
    assert arriving.finish().read_bytes() == (tmp_path / "model").read_bytes()
    assert coordinator.status().counters.reconnects == 1


def test_an_access_list_that_delivers_nothing_is_named(
    start_mosquitto: StartBroker, make_link: MakeLink, tmp_path: Path
) -> None:
    """The subscription is granted, the birth acknowledged, nothing delivered: only the echo tells."""
    (tmp_path / "acl").write_text("topic write fleet/#\n")
    broker = start_mosquitto(f"acl_file {tmp_path}/acl\n")
    board = make_link(broker, "b1", announcement=BIRTH, echo_seconds=1.0)
    stage = wait(board, Stage)
    assert stage.stage == "echo"
    assert "accepts us but delivers nothing: check the ACL for fleet/b1/birth" in stage.reason


def test_an_access_list_that_forbids_writing_is_named(
    start_mosquitto: StartBroker, make_link: MakeLink, tmp_path: Path
) -> None:
    (tmp_path / "acl").write_text("topic read #\ntopic write allowed\n")
    broker = start_mosquitto(f"acl_file {tmp_path}/acl\n")
    board = make_link(broker, "b1", announcement=BIRTH)
    assert "refuses our birth: Not authorized: check the ACL for fleet/b1/birth" in wait(board, Stage).reason
    other = make_link(broker, "b2")
    wait(other, Up)
    allowed, forbidden = other.publish("allowed", b"x"), other.publish("forbidden", b"x")
    assert wait(other, Delivered) == Delivered(allowed)
    assert wait(other, Refused) == Refused("forbidden", "the broker refuses it: Not authorized", forbidden)


def test_a_wrong_password_is_named_and_a_corrected_one_is_taken_up(
    start_mosquitto: StartBroker, make_link: MakeLink, tmp_path: Path
) -> None:
    mosquitto_path = find_mosquitto()
    assert mosquitto_path is not None
    accounts, password = tmp_path / "accounts", tmp_path / "password"
    subprocess.run(["mosquitto_passwd", "-c", "-b", accounts, "b1", "right"], check=True, timeout=LONG)
    password.write_text("wrong\n")
    broker = start_mosquitto(f"allow_anonymous false\npassword_file {accounts}\n")
    board = make_link(broker, "b1", username="b1", password_file=str(password))
    stage = wait(board, Stage)
    assert stage.stage == "CONNACK"
    assert "Not authorized (user 'b1': check the user name and the password file)" in stage.reason
    password.write_text("right\n")
    wait(board, Up)


def test_the_brokers_own_limit_is_honoured(start_mosquitto: StartBroker, make_link: MakeLink) -> None:
    broker = start_mosquitto("max_packet_size 50000\n")
    board = make_link(broker, "b1", start=False)
    early = board.publish("update", b"x" * 60_000)
    board.start()
    wait(board, Up)
    refused = wait(board, Refused)
    assert (refused.topic, refused.token) == ("update", early)
    assert "60,015 bytes, the broker takes 50,000" in refused.reason
    assert board.max_packet_bytes == 50_000
    with pytest.raises(PacketTooLargeError, match="the broker takes 50,000"):
        board.publish("update", b"x" * 50_000)
    token = board.publish("update", b"x" * 49_000)
    assert wait(board, Delivered).token == token
    assert board.status().counters.reconnects == 0


def test_an_exception_in_a_callback_is_counted_and_the_link_comes_back(
    mosquitto: Broker, make_link: MakeLink
) -> None:
    class FailsOnce(SimpleQueue[object]):
        failures = 0

        def put(self, item: object, block: bool = True, timeout: float | None = None) -> None:
            if isinstance(item, Message) and self.failures == 0:
                self.failures += 1
                raise MemoryError("no room for a message")
            super().put(item, block, timeout)

    board = make_link(mosquitto, "b1", "order", events=FailsOnce())
    speaker = make_link(mosquitto, "speaker")
    wait(board, Up)
    wait(speaker, Up)
    speaker.publish("order", b"train")
    assert "no room for a message" in wait(board, Down).reason
    assert board.status().counters.callback_errors == 1
    wait(board, Up)
    speaker.publish("order", b"again")
    assert wait(board, Message).payload == b"again"


def test_two_links_with_one_id_see_each_other(mosquitto: Broker, make_link: MakeLink) -> None:
    def boot(name: str) -> Announcement:
        return Announcement("fleet/b1/birth", lambda number, state: f"{name} {number} {state}".encode())

    first = make_link(mosquitto, "b1", announcement=boot("one"))
    wait(first, Up)
    second = make_link(mosquitto, "b1", announcement=boot("two"))
    wait(second, Up)
    assert wait(first, Down).reason
    for link, other in ((first, b"two "), (second, b"one ")):
        seen = wait(link, Message)
        assert seen.topic == "fleet/b1/birth"
        assert seen.payload.startswith(other)


def test_a_broker_that_stops_answering_is_given_up(mosquitto: Broker, make_link: MakeLink) -> None:
    board = make_link(mosquitto, "b1", acknowledge_seconds=0.5)
    wait(board, Up)
    mosquitto.pause()
    try:
        board.publish("report", b"done")
        assert "acknowledged nothing for 0.5 s" in wait(board, Down).reason
    finally:
        mosquitto.resume()
    assert wait(board, Delivered).token


def test_a_slow_owner_holds_the_broker_back_instead_of_filling_memory(
    mosquitto: Broker, make_link: MakeLink
) -> None:
    board, speaker = make_link(mosquitto, "b1", "chunk/#"), make_link(mosquitto, "speaker")
    wait(board, Up)
    wait(speaker, Up)
    for number in range(200):
        speaker.publish(f"chunk/{number}", b"x" * 40_000)
    for _ in range(200):
        wait(speaker, Delivered)
    assert board.events.qsize() * 40_000 <= 2 * 1024 * 1024 + 64 * 40_000
    assert sorted(int(wait(board, Message).topic.split("/")[1]) for _ in range(200)) == list(range(200))


# paho leaves the socket of a failed handshake to the garbage collector.
@pytest.mark.filterwarnings(
    "ignore:Exception ignored in. <ssl.SSLSocket:pytest.PytestUnraisableExceptionWarning"
)
def test_a_secured_line_carries_whole_chunks_and_a_strange_authority_is_named(
    start_mosquitto: StartBroker, make_link: MakeLink, tmp_path: Path
) -> None:
    for name in ("ours", "strange"):
        command = [
            "openssl",
            "req",
            "-x509",
            "-newkey",
            "rsa:2048",
            "-nodes",
            "-days",
            "2",
            "-subj",
            f"/CN={name}",
        ]
        command += ["-addext", "subjectAltName=IP:127.0.0.1", "-keyout", f"{tmp_path}/{name}.key"]
        command += ["-out", f"{tmp_path}/{name}.crt"]
        subprocess.run(command, check=True, capture_output=True, timeout=LONG)
    broker = start_mosquitto(f"certfile {tmp_path}/ours.crt\nkeyfile {tmp_path}/ours.key\n")
    secured = {"tls": True, "ca_file": str(tmp_path / "ours.crt")}
    board, speaker = make_link(broker, "b1", "chunk/#", **secured), make_link(broker, "speaker", **secured)
    wait(board, Up)
    wait(speaker, Up)
    for number in range(24):
        speaker.publish(f"chunk/{number}", bytes([number]) * 250_000, priority="chunk")
    for number in range(24):
        assert wait(board, Message).payload == bytes([number]) * 250_000
    distrustful = make_link(broker, "b2", tls=True, ca_file=str(tmp_path / "strange.crt"))
    stage = wait(distrustful, Stage)
    assert stage.stage == "TLS"
    assert "CERTIFICATE_VERIFY_FAILED" in stage.reason
