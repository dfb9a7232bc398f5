"""What waits for the broker, within a bound in bytes: reports are kept, telemetry goes first.

PURE: it decides what is kept, what is dropped and what may be sent next; `*_link.py` does the sending.
"""

from collections.abc import Collection
from dataclasses import dataclass, replace

from edged.link import OutboxFullError, Priority, packet_bytes


@dataclass(frozen=True)
class Item:
    """One message to be sent. `attempts` counts connections that were lost while it was in flight."""

    token: int
    topic: str
    payload: bytes
    qos: int
    retain: bool
    priority: Priority
    attempts: int = 0

    @property
    def size_bytes(self) -> int:
        return packet_bytes(self.topic, self.payload)


@dataclass(frozen=True)
class Put:
    """What a put cost: telemetry dropped (the new item itself, maybe) and chunks pushed out by a report."""

    token: int
    dropped: tuple[Item, ...] = ()
    pushed_out: tuple[Item, ...] = ()


class Outbox:
    """Items in order of arrival, first those of the highest priority; sent ones stay until `acknowledge`."""

    def __init__(self, limit_bytes: int, *, chunks_in_flight: int = 8, messages_in_flight: int = 64) -> None:
        self.limit_bytes = limit_bytes
        self.chunks_in_flight = chunks_in_flight
        self.messages_in_flight = messages_in_flight
        self._waiting: dict[Priority, dict[int, Item]] = {"report": {}, "chunk": {}, "telemetry": {}}
        self._in_flight: dict[int, Item] = {}
        self._bytes = 0
        self._next_token = 1

    @property
    def queued_bytes(self) -> int:
        """Bytes of all items, waiting and in flight."""
        return self._bytes

    @property
    def in_flight(self) -> int:
        return len(self._in_flight)

    @property
    def waiting(self) -> int:
        return sum(len(items) for items in self._waiting.values())

    def __len__(self) -> int:
        return self.waiting + self.in_flight

    def put(
        self, topic: str, payload: bytes, *, qos: int, retain: bool, priority: Priority, latest: bool = False
    ) -> Put:
        """Keep the item, making room if it must. Raises OutboxFullError, changing nothing, if it cannot."""
        item = Item(self._next_token, topic, payload, qos, retain, priority)
        replaced = [old for old in self._waiting[priority].values() if latest and old.topic == topic]
        room = self.limit_bytes - self._bytes + sum(old.size_bytes for old in replaced)
        telemetry, room = self._evictable("telemetry", item.size_bytes, room, replaced)
        chunks: list[Item] = []
        if priority == "report":
            chunks, room = self._evictable("chunk", item.size_bytes, room, replaced)
        if room < item.size_bytes and priority != "telemetry":
            raise OutboxFullError(
                f"{topic}: {item.size_bytes:,} bytes do not fit; "
                f"{self._bytes:,} of {self.limit_bytes:,} bytes wait for the broker"
            )
        self._next_token += 1
        for old in (*replaced, *telemetry, *chunks):
            self._remove(old)
        if room < item.size_bytes:
            return Put(item.token, (*telemetry, item))
        self._waiting[priority][item.token] = item
        self._bytes += item.size_bytes
        return Put(item.token, tuple(telemetry), tuple(chunks))

    def take(self) -> Item | None:
        """The next item to send now, marked as in flight; None where nothing waits or the window is full."""
        if len(self._in_flight) >= self.messages_in_flight:
            return None
        for priority, items in self._waiting.items():
            if not items:
                continue
            if priority == "chunk" and self._chunks_in_flight() >= self.chunks_in_flight:
                continue
            item = items.pop(next(iter(items)))
            self._in_flight[item.token] = item
            return item
        return None

    def acknowledge(self, token: int) -> Item | None:
        """Done with it, delivered or refused. None for a token that is not in flight."""
        item = self._in_flight.pop(token, None)
        if item is not None:
            self._bytes -= item.size_bytes
        return item

    def lost(self) -> tuple[Item, ...]:
        """After a lost connection what was in flight waits again, first in line; gives up QoS 0."""
        given_up = []
        for priority, items in self._waiting.items():
            again = [
                replace(item, attempts=item.attempts + 1)
                for item in self._in_flight.values()
                if item.priority == priority and item.qos > 0
            ]
            self._waiting[priority] = {item.token: item for item in again} | items
        for item in self._in_flight.values():
            if item.qos == 0:
                given_up.append(item)
                self._bytes -= item.size_bytes
        self._in_flight = {}
        return tuple(given_up)

    def largest_in_flight(self) -> Item | None:
        """The one to suspect when a broker hangs up over a packet's size."""
        return max(self._in_flight.values(), key=lambda item: item.size_bytes, default=None)

    def discard(self, priorities: Collection[Priority]) -> tuple[Item, ...]:
        """Throw out all waiting items of these priorities, as at a close."""
        gone = tuple(item for priority in priorities for item in self._waiting[priority].values())
        for item in gone:
            self._remove(item)
        return gone

    def _chunks_in_flight(self) -> int:
        return sum(item.priority == "chunk" for item in self._in_flight.values())

    def _evictable(
        self, priority: Priority, needed: int, room: int, replaced: Collection[Item]
    ) -> tuple[list[Item], int]:
        """The oldest waiting items that must go for `needed` bytes, and the room after that."""
        chosen: list[Item] = []
        for item in self._waiting[priority].values():
            if room >= needed:
                break
            if item not in replaced:
                chosen.append(item)
                room += item.size_bytes
        return chosen, room

    def _remove(self, item: Item) -> None:
        del self._waiting[item.priority][item.token]
        self._bytes -= item.size_bytes
