"""What a board says: births, states, reports, wants and power, made of what the agent knows and put on
the link.

It decides neither when nor what to do; it knows topics and messages.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from edged import vitals
from edged.board import Board
from edged.identity import Identity
from edged.link import Announcement, Link, LinkState, OutboxFullError, PacketTooLargeError
from edged.messages import Birth, MessageError, Power, Report, State, Want, encode
from edged.ranges import Range
from edged.topics import Topics, route
from probes._energy import Live

log = logging.getLogger("edged")

MOST_RANGES = 1000  # of a want: a message stays small, and a later want asks for the rest


class Voice:
    """One board's. `attach` gives it the link, which needs the announcement first."""

    def __init__(self, topics: Topics, board: str, identity: Identity, root: Path = Path("/")) -> None:
        self._topics = topics
        self._board = board
        self._root = root
        self._link: Link | None = None
        self._started = time.monotonic()
        self._next: Birth | None = None
        self.birth = Birth(
            board=board,
            boot=identity.boot,
            conn=0,
            link="up",
            host=identity.host,
            arch=identity.arch,
            model=identity.model,
            cores=identity.cores,
            memory_bytes=identity.memory_bytes,
        )

    @property
    def announcement(self) -> Announcement:
        """For the link: the birth, the will and the farewell."""
        return Announcement(self._topics.of("birth", board=self._board), self._announced)

    def attach(self, link: Link) -> None:
        """Speak over this link."""
        self._link = link

    def change_birth(self, **changes: object) -> None:
        """What births say from now on; `say_birth` says it. The link compares what it hears back with what it
        said while it connects, so the change waits for the connection if there is none."""
        self._next = replace(self._next or self.birth, **changes)

    def settle_birth(self) -> None:
        """Before there is a link: what births say from the first on."""
        self.birth, self._next = self._next or self.birth, None

    def say_birth(self, board: Board, again: bool = False) -> None:
        """Publish the birth, if it has changed (or `again`) and the link is up. Connecting announces it
        too.
        """
        if not board.up or (self._next is None and not again):
            return
        self.birth, self._next = self._next or self.birth, None
        link: LinkState = "up"
        self._put("birth", self._announced(board.connection, link), latest=True)

    def say_state(self, board: Board, counters: Mapping[str, int]) -> None:
        """Publish the state. Nothing while the link is down: it is said again when it is up."""
        if not board.up:
            return
        now = time.monotonic()
        state = State(
            board=board.board,
            boot=board.boot,
            conn=board.connection,
            phase=board.phase.value,
            order=board.order_id or None,
            samples_done=board.samples_done,
            chunks_held=board.chunks_held,
            model=board.models[-1][0] if board.models else None,
            abandoned=board.abandoned,
            blames=board.blames,
            ready=board.ready,
            joined=board.joined,
            reason=board.reason[:2000],
            term=board.term,
            uptime_seconds=now - self._started,
            clock_seconds=time.time(),
            counters={name: count for name, count in counters.items() if count},
        )
        self._publish("state", state, latest=True)

    def say_report(self, report: Report) -> None:
        """Publish a report; it waits for the link if that is down."""
        self._publish("report", report)

    def say_want(self, board: Board, version: str, missing: list[Range]) -> None:
        """Ask for missing chunks."""
        if board.up and missing:
            want = Want(board.board, board.boot, version, tuple(missing[:MOST_RANGES]))
            self._publish("want", want, latest=True)

    def say_power(self, board: Board, live: Live, order_joules: float | None) -> None:
        """Publish watts and joules so far; old ones are of no interest to anybody, so none wait for a
        link.
        """
        if not board.up:
            return
        shown = [channel for channel in live.channels if channel.status == "ok"]
        power = Power(
            board=board.board,
            boot=board.boot,
            headline=live.headline_channel_id or "",
            basis=live.basis or "",
            watts={channel.channel_id: channel.watts for channel in shown if channel.watts is not None},
            joules={channel.channel_id: channel.joules for channel in shown if channel.joules is not None},
            order=board.order_id or None,
            order_joules=order_joules,
            temperature_celsius=vitals.temperature_celsius(self._root),
            throttled=vitals.throttled(self._root),
            sampler_cpu_seconds=live.cpu_seconds,
        )
        self._publish("power", power, telemetry=True, latest=True)

    def chunk(self, order: str, number: int, payload: bytes) -> int:
        """Publish a chunk of the order's update; the link's token."""
        assert self._link is not None
        topic = self._topics.of("update", board=self._board, order=order, chunk=number)
        return self._link.publish(topic, payload, priority="chunk")

    def _announced(self, connection: int, link: LinkState) -> bytes:
        # A second board with this id says so instead of "up".
        word = "duplicate" if link == "up" and self.birth.rival else link
        return encode(replace(self.birth, conn=connection, link=word))

    def _publish(self, name: str, message: Struct, *, latest: bool = False, telemetry: bool = False) -> None:
        try:
            payload = encode(message)
        except MessageError as error:
            log.error("%s is not sent: %s", name, error)  # a sensor or a task gave what is no number
            return
        self._put(name, payload, latest=latest, telemetry=telemetry)

    def _put(self, name: str, payload: bytes, *, latest: bool = False, telemetry: bool = False) -> None:
        if self._link is None:
            return
        kind = route(name)
        try:
            self._link.publish(
                self._topics.of(name, board=self._board),
                payload,
                qos=kind.qos,
                retain=kind.retain,
                priority="telemetry" if telemetry else "report",
                latest=latest,
            )
        except (PacketTooLargeError, OutboxFullError) as error:
            log.error("%s is not sent: %s", name, error)
