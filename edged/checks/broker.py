"""The way to the broker, stage by stage, as this board's user; says nothing where the fleet would listen."""

from __future__ import annotations

import secrets
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from queue import Empty

from edged.checks import Finding
from edged.link import (
    ASSUMED_MAX_PACKET_BYTES,
    Down,
    Link,
    LinkConfig,
    LinkStatus,
    Message,
    Refused,
    Stage,
    Up,
)
from edged.messages import Birth, MessageError, decode
from edged.topics import Topics

CONNECT_SECONDS = 60.0  # both versions of MQTT, each with its own patience
SMALLEST_PACKET_BYTES = 16 * 1024

MakeLink = Callable[[LinkConfig], Link]

WAYS_OUT = (
    ("DNS", "check the name in [broker] host"),
    ("TCP", "is the broker running there, and the port open?"),
    ("TLS", "check ca_file, certificate_file and key_file in [broker], and this board's clock"),
    ("CONNACK", "check username and password_file in [broker]"),
    ("SUBACK", "let this user subscribe there in the broker's access list"),
    ("echo", "let this user say and hear that topic in the broker's access list"),
)


def examine(board: str, fleet: str, config: LinkConfig, make_link: MakeLink, host: str) -> Iterator[Finding]:
    """Connects under a name of its own, so that the running daemon keeps its connection. `host`: this one."""
    topics = Topics(fleet)
    birth, echo = topics.of("birth", board=board), topics.of("echo", board=board)
    link = make_link(replace(config, client_id=f"edged-{fleet}-cli-{secrets.token_hex(4)}"))
    for name in ("birth", "echo", "order", "board_model"):
        link.subscribe(topics.filter(name, board=board))
    link.subscribe(topics.filter("model"))
    link.start()
    try:
        kept: list[Message] = []
        fault = _connected(link, kept)
        if fault:
            yield Finding("broker", "fail", fault, way_out(fault))
            return
        yield from limits(link.status())
        fault = echoed(link, echo, config.echo_seconds, kept)
        if fault:
            yield Finding("access list", "fail", fault, way_out(fault))
        else:
            yield Finding(
                "access list", "ok", f"all subscriptions are granted, and a word to {echo} came back"
            )
        yield _daemon([one.payload for one in kept if one.topic == birth], board, host)
    finally:
        link.close(2.0)


def limits(status: LinkStatus) -> Iterator[Finding]:
    """Version and largest message of a broker that is connected."""
    place = f"{status.host}:{status.port}"
    if status.protocol == "3.1.1":
        text = f"{place} speaks MQTT 3.1.1 only, so its limits are not known"
        yield Finding(
            "broker", "warn", text, "mosquitto 2 speaks v5; with 3.1.1 refusals come without a reason"
        )
    else:
        yield Finding("broker", "ok", f"{place}, MQTT {status.protocol}")
    limit = status.max_packet_bytes
    said = "" if limit != ASSUMED_MAX_PACKET_BYTES else " (or did not say, and that is assumed)"
    if limit < SMALLEST_PACKET_BYTES:
        yield Finding(
            "packets", "fail", f"the broker takes {limit:,} bytes at most", "raise its max_packet_size"
        )
    else:
        yield Finding("packets", "ok", f"the broker takes {limit:,} bytes a message{said}")


def way_out(error: str) -> str:
    """What to look at when connecting failed at the stage that the text names."""
    return next((words for stage, words in WAYS_OUT if f" {stage}" in error), "")


def _connected(link: Link, kept: list[Message]) -> str:
    """Why the link does not come up; empty when it does."""
    until = time.monotonic() + CONNECT_SECONDS
    while (left := until - time.monotonic()) > 0:
        try:
            event = link.events.get(timeout=left)
        except Empty:
            break
        if isinstance(event, Up):
            return ""
        if isinstance(event, Message):
            kept.append(event)
        # A stage without a failed attempt is news (MQTT 3.1.1), not the end.
        if isinstance(event, Stage) and link.status().counters.failed_attempts:
            return event.reason
    status = link.status()
    return f"{status.host}:{status.port} {status.stage}: nothing came of it within {CONNECT_SECONDS:g} s"


def echoed(link: Link, topic: str, seconds: float, kept: list[Message]) -> str:
    """Why a word to the board's own topic does not come back; empty when it does."""
    word = secrets.token_hex(8).encode()
    token = link.publish(topic, word)
    status = link.status()
    place = f"{status.host}:{status.port} echo:"
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        try:
            event = link.events.get(timeout=left)
        except Empty:
            break
        if isinstance(event, Message):
            if (event.topic, event.payload) == (topic, word):
                return ""
            kept.append(event)
        elif isinstance(event, Refused) and event.token == token:
            return f"{place} {event.reason}: check the ACL for {topic}"
        elif isinstance(event, Down):
            return f"{place} {event.reason}"
    return f"{place} the broker accepts us but delivers nothing: check the ACL for {topic}"


def _daemon(births: list[bytes], board: str, host: str) -> Finding:
    """What the retained birth says of the daemon with this board's id."""
    payload = births[-1] if births else b""
    if not payload:
        return Finding("daemon", "ok", f"no daemon named {board} was ever here", "edged run starts one")
    try:
        birth = decode(Birth, payload)
    except MessageError as error:
        return Finding(
            "daemon", "warn", f"the birth of {board} cannot be read: {error}", "another version there?"
        )
    if birth.rival or (birth.link == "up" and birth.host and birth.host != host):
        other = birth.rival or f"{birth.host} at {birth.address or '?'}"
        return Finding(
            "daemon", "fail", f"{other} is connected as {board}, too", "give this board another [board] id"
        )
    if birth.link != "up":
        return Finding(
            "daemon", "ok", f"the daemon of {board} is not connected (link {birth.link})", "edged run"
        )
    return Finding("daemon", "ok", f"the daemon of {board} is connected")
