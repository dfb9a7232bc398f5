"""The outgoing side that every link shares: the outbox behind a lock, the counters, and the refusals.

It sends nothing itself; the links take from it what may go out and tell it what became of it.
"""

import threading
from collections import Counter
from typing import Literal

from edged.link import (
    ASSUMED_MAX_PACKET_BYTES,
    Delivered,
    Events,
    LinkConfig,
    LinkCounters,
    LinkStatus,
    OutboxFullError,
    PacketTooLargeError,
    Priority,
    Refused,
    StageName,
    packet_bytes,
)
from edged.outbox import Item, Outbox

MOST_ATTEMPTS = 5
SMALL_BYTES = 64 * 1024


class Dispatch:
    """Thread-safe. Puts `Delivered` and `Refused` into the owner's queue."""

    def __init__(self, config: LinkConfig, events: Events) -> None:
        self.max_packet_bytes = ASSUMED_MAX_PACKET_BYTES
        self._config = config
        self._events = events
        self._lock = threading.Lock()
        self._outbox = Outbox(
            config.outbox_bytes,
            chunks_in_flight=config.chunks_in_flight,
            messages_in_flight=config.messages_in_flight,
        )
        self._counts: Counter[str] = Counter()

    def publish(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, priority: Priority, latest: bool
    ) -> int:
        """Keep it; returns the token. Raises PacketTooLargeError, OutboxFullError, ValueError (bad topic)."""
        if not topic or "+" in topic or "#" in topic or "\0" in topic:
            raise ValueError(f"{topic!r} is no topic to publish on: empty, or with + or # or NUL in it")
        try:
            self._check_size(topic, payload)
            with self._lock:
                put = self._outbox.put(
                    topic, payload, qos=qos, retain=retain, priority=priority, latest=latest
                )
        except (PacketTooLargeError, OutboxFullError) as error:
            self.count("refused")
            self._events.put(Refused(topic, str(error)))
            raise
        self._count_dropped(put.dropped)
        for item in put.pushed_out:
            self._refused(item, "pushed out of the full outbox by a report")
        return put.token

    def broker_limits(self, max_packet_bytes: int, messages: int) -> None:
        """What this connection's broker takes: the size of a packet, and how many unacknowledged at once."""
        self.max_packet_bytes = max_packet_bytes
        with self._lock:
            self._outbox.messages_in_flight = min(self._config.messages_in_flight, messages)

    def take(self) -> Item | None:
        """The next message that may go out now; those too large or too often failed are refused."""
        while True:
            with self._lock:
                item = self._outbox.take()
            if item is None:
                return None
            try:
                self._check_size(item.topic, item.payload)
            except PacketTooLargeError as error:
                self.refuse(item.token, str(error))
                continue
            if item.attempts >= MOST_ATTEMPTS and item.size_bytes > SMALL_BYTES:
                lost = f"the connection was lost {item.attempts} times"
                self.refuse(item.token, f"{lost} while these {item.size_bytes:,} bytes were sent")
                continue
            return item

    def delivered(self, token: int) -> None:
        with self._lock:
            item = self._outbox.acknowledge(token)
        if item is None:
            return
        self.count("published")
        self.count("published_bytes", len(item.payload))
        if item.qos > 0:
            self._events.put(Delivered(token))

    def refuse(self, token: int, reason: str) -> None:
        """Forget a message in flight for good and say so."""
        with self._lock:
            item = self._outbox.acknowledge(token)
        if item is not None:
            self._refused(item, reason)

    def largest_in_flight(self) -> Item | None:
        with self._lock:
            return self._outbox.largest_in_flight()

    def connection_lost(self) -> None:
        with self._lock:
            given_up = self._outbox.lost()
        self._count_dropped(given_up)

    def reports_only(self) -> None:
        """Closing: nothing that somebody would have to take in pieces or in time is worth waiting for."""
        with self._lock:
            gone = self._outbox.discard(("chunk", "telemetry"))
        self._count_dropped([item for item in gone if item.priority == "telemetry"])

    @property
    def empty(self) -> bool:
        with self._lock:
            return len(self._outbox) == 0

    def count(self, name: str, amount: int = 1) -> None:
        with self._lock:
            self._counts[name] += amount

    def counters(self) -> LinkCounters:
        with self._lock:
            return LinkCounters(**self._counts)

    def status(
        self,
        stage: StageName,
        reason: str,
        connection: int,
        protocol: Literal["5", "3.1.1", "memory"] | None,
    ) -> LinkStatus:
        """What the link knows of its connection, with what is on the way out."""
        with self._lock:
            return LinkStatus(
                stage,
                self._config.host,
                self._config.port,
                protocol,
                reason,
                connection,
                queued_messages=self._outbox.waiting,
                queued_bytes=self._outbox.queued_bytes,
                in_flight=self._outbox.in_flight,
                max_packet_bytes=self.max_packet_bytes,
                counters=LinkCounters(**self._counts),
            )

    def _check_size(self, topic: str, payload: bytes) -> None:
        size = packet_bytes(topic, payload)
        if size > self.max_packet_bytes:
            raise PacketTooLargeError(topic, size, self.max_packet_bytes)

    def _refused(self, item: Item, reason: str) -> None:
        self.count("refused")
        self._events.put(Refused(item.topic, reason, item.token))

    def _count_dropped(self, items: "list[Item] | tuple[Item, ...]") -> None:
        if items:
            self.count("dropped_telemetry", len(items))
            self.count("dropped_bytes", sum(item.size_bytes for item in items))
