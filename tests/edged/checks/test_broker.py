"""The way to the broker as `edged doctor` tells it: each stage that may fail, and what the fleet hears."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from edged.checks import Finding
from edged.checks.broker import MakeLink, examine
from edged.link import Link, LinkConfig
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.messages import Birth, encode
from edged.paho_link import PahoLink

ADDRESS = LinkConfig("memory", 1, "edged-main-pi4", first_backoff_seconds=0.01, echo_seconds=0.1)
ROOT = "edged/v1/main/board/pi4"


def over(broker: MemoryBroker, seen: list[str] | None = None) -> MakeLink:
    def make(config: LinkConfig) -> Link:
        if seen is not None:
            seen.append(config.client_id)
        return MemoryLink(broker, config)

    return make


def look(broker: MemoryBroker, seen: list[str] | None = None) -> dict[str, Finding]:
    return {one.what: one for one in examine("pi4", "main", ADDRESS, over(broker, seen), "attic")}


def retained(broker: MemoryBroker, topic: str, payload: bytes) -> None:
    broker.publish(topic, payload, retain=True)


def birth(link: str, host: str = "attic", rival: str = "") -> bytes:
    return encode(Birth("pi4", "boot1", 1, link, host=host, address="192.0.2.4", rival=rival))


def test_a_broker_that_works_is_ok_line_by_line() -> None:
    found = look(MemoryBroker(max_packet_bytes=1_000_000))
    assert {one.verdict for one in found.values()} == {"ok"}
    assert set(found) == {"broker", "packets", "access list", "daemon"}
    assert "1,000,000 bytes" in found["packets"].text


def test_the_running_daemon_is_not_pushed_out_and_nothing_stays_behind() -> None:
    broker, seen = MemoryBroker(), []  # type: ignore[var-annotated]
    retained(broker, f"{ROOT}/birth", birth("up"))
    found = look(broker, seen)
    assert found["daemon"].text == "the daemon of pi4 is connected"
    assert seen[0] != ADDRESS.client_id
    assert seen[0].startswith("edged-main-cli-")
    late = MemoryLink(broker, LinkConfig("memory", 1, "late"))
    late.subscribe("#")
    late.start()
    topics = {getattr(late.events.get_nowait(), "topic", "") for _ in range(late.events.qsize())}
    assert topics - {""} == {f"{ROOT}/birth"}


def stopped(broker: MemoryBroker) -> None:
    broker.online = False


def deaf(broker: MemoryBroker) -> None:
    broker.refused_filters = {f"{ROOT}/order"}


@pytest.mark.parametrize(
    ("spoil", "said", "way_out"),
    [
        (stopped, "the broker is stopped", ""),
        (deaf, f"SUBACK: the broker refuses the subscription to {ROOT}/order", "subscribe there"),
    ],
)
def test_a_broker_that_refuses_is_named_with_stage_and_way_out(
    spoil: Callable[[MemoryBroker], None], said: str, way_out: str
) -> None:
    broker = MemoryBroker()
    spoil(broker)
    (only,) = look(broker).values()
    assert only.verdict == "fail"
    assert said in only.text
    assert way_out in only.way_out


@pytest.mark.parametrize("why", ["refused", "silent"])
def test_a_word_that_does_not_come_back_fails(why: str) -> None:
    broker = MemoryBroker()
    broker.refused_topics = {f"{ROOT}/echo"} if why == "refused" else set()
    broker.silent = why == "silent"
    found = look(broker)
    assert found["broker"].verdict == "ok"
    assert found["access list"].verdict == "fail"
    assert f"check the ACL for {ROOT}/echo" in found["access list"].text
    assert "access list" in found["access list"].way_out


def test_a_broker_that_takes_only_small_packets_fails() -> None:
    found = look(MemoryBroker(max_packet_bytes=4096))["packets"]
    assert (found.verdict, found.way_out) == ("fail", "raise its max_packet_size")


@pytest.mark.parametrize(
    ("payload", "verdict", "said"),
    [
        (birth("lost"), "ok", "not connected (link lost)"),
        (birth("up", host="cellar"), "fail", "cellar at 192.0.2.4 is connected as pi4, too"),
        (birth("up", rival="cellar at 192.0.2.9"), "fail", "cellar at 192.0.2.9"),
        (b"{", "warn", "cannot be read"),
    ],
)
def test_the_retained_birth_tells_of_the_daemon(payload: bytes, verdict: str, said: str) -> None:
    broker = MemoryBroker()
    retained(broker, f"{ROOT}/birth", payload)
    found = look(broker)["daemon"]
    assert (found.verdict, said in found.text) == (verdict, True), found.text


def test_a_real_link_names_dns_tcp_and_the_password_file(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    quick = {"connect_seconds": 0.5, "version_seconds": 0.2}
    for config, stage, way_out in (
        (LinkConfig("no-such-host.invalid", 1883, "x", **quick), "DNS", "the name"),  # type: ignore[arg-type]
        (LinkConfig("127.0.0.1", port, "x", **quick), "TCP", "running there"),  # type: ignore[arg-type]
        (
            LinkConfig("127.0.0.1", port, "x", username="pi4", password_file=str(tmp_path / "none"), **quick),  # type: ignore[arg-type]
            "CONNACK",
            "password_file",
        ),
    ):
        (only,) = examine("pi4", "main", config, PahoLink, "attic")
        assert (only.verdict, f" {stage}" in only.text, way_out in only.way_out) == ("fail", True, True), only
