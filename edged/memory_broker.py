"""A broker inside the process, for tests and the simulator: retained messages, wills, and faults on request.

Deterministic: everything happens in order of (due time, order of arrival). With `automatic` each call
delivers what is due at once; without, nothing moves until `pump`, which fits virtual time. Clean sessions.
"""

import heapq
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Literal

from paho.mqtt.client import topic_matches_sub
from paho.mqtt.matcher import MQTTMatcher

from edged.link import ASSUMED_MAX_PACKET_BYTES


@dataclass(eq=False)
class Connection:
    """One client's connection, from connect to cut. `on_message` gets topic, payload, retain, duplicate."""

    client_id: str
    on_message: Callable[[str, bytes, bool, bool], None]
    on_cut: Callable[[str], None]
    will: tuple[str, bytes] | None = None
    alive: bool = True
    filters: set[str] = field(default_factory=set)


@dataclass
class Fault:
    """A request to misbehave for the next `remaining` messages that match."""

    kind: Literal["drop", "duplicate", "delay"]
    filter: str
    remaining: int
    seconds: float = 0.0


class MemoryBroker:
    """`clock` gives the seconds that delays and retries are measured in: virtual time, if the caller likes.

    `refused_filters` and `refused_topics` answer "Not authorized"; `silent` takes all, delivers nothing.
    """

    def __init__(
        self,
        *,
        clock: Callable[[], float] = time.monotonic,
        automatic: bool = True,
        delay_seconds: float = 0.0,
        max_packet_bytes: int = ASSUMED_MAX_PACKET_BYTES,
    ) -> None:
        self.clock = clock
        self.automatic = automatic
        self.delay_seconds = delay_seconds
        self.max_packet_bytes = max_packet_bytes
        self.online = True
        self.silent = False
        self.refused_filters: set[str] = set()
        self.refused_topics: set[str] = set()
        self.published_bytes = 0
        self._lock = threading.RLock()
        self._retained: dict[str, bytes] = {}
        self._present: dict[str, Connection] = {}
        self._subscribers = MQTTMatcher()  # type: ignore[no-untyped-call]
        self._faults: list[Fault] = []
        self._due: list[tuple[float, int, Callable[[], None]]] = []
        self._sequence = 0
        self._pumping = False

    def connect(self, connection: Connection) -> str | None:
        """None, or why not. A client of the same id is thrown out first, as brokers do."""
        with self._lock:
            if not self.online:
                return "the broker is stopped"
            older = self._present.get(connection.client_id)
            if older is not None:
                self.cut(older, "session taken over by another client with this id")
            self._present[connection.client_id] = connection
            return None

    def subscribe(self, connection: Connection, filter: str) -> str | None:
        """None, or why not. Retained messages that match follow."""
        with self._lock:
            if filter in self.refused_filters:
                return "Not authorized"
            connection.filters.add(filter)
            try:
                self._subscribers[filter][connection] = None
            except KeyError:
                self._subscribers[filter] = {connection: None}
            for topic, payload in self._retained.items():
                if topic_matches_sub(filter, topic):
                    self._deliver(connection, topic, payload, retain=True)
            self._moved()
            return None

    def publish(self, topic: str, payload: bytes, retain: bool) -> str | None:
        """None, or why not. An empty retained payload clears the topic."""
        with self._lock:
            if topic in self.refused_topics:
                return "Not authorized"
            self.published_bytes += len(payload)
            if retain and payload:
                self._retained[topic] = payload
            elif retain:
                self._retained.pop(topic, None)
            receivers: dict[Connection, None] = {}
            for subscribers in self._subscribers.iter_match(topic):  # type: ignore[no-untyped-call]
                receivers |= subscribers
            for connection in receivers:
                self._deliver(connection, topic, payload, retain=False)
            self._moved()
            return None

    def disconnect(self, connection: Connection) -> None:
        """A goodbye: the will is forgotten."""
        with self._lock:
            self._forget(connection)

    def cut(self, connection: Connection, reason: str) -> None:
        """The connection breaks: the will speaks, then the client hears why."""
        with self._lock:
            if not connection.alive:
                return
            self._forget(connection)
            if connection.will is not None:
                topic, payload = connection.will
                self.publish(topic, payload, retain=True)
            self.after(0.0, lambda: connection.on_cut(reason))
            self._moved()

    def stop(self, *, keep_retained: bool = True) -> None:
        """The broker goes down hard; it keeps wills as retained messages, as mosquitto's persistence does."""
        with self._lock:
            self.online = False
            for connection in list(self._present.values()):
                self.cut(connection, "the broker is stopped")
            if not keep_retained:
                self._retained.clear()

    def start(self) -> None:
        with self._lock:
            self.online = True

    def drop(self, filter: str, messages: int = 1) -> None:
        """Acknowledge the next messages that match and deliver them to nobody."""
        self._faults.append(Fault("drop", filter, messages))

    def duplicate(self, filter: str, messages: int = 1) -> None:
        """Deliver the next messages that match twice."""
        self._faults.append(Fault("duplicate", filter, messages))

    def delay(self, filter: str, seconds: float, messages: int = 1) -> None:
        """Deliver the next messages that match later than those sent after them."""
        self._faults.append(Fault("delay", filter, messages, seconds))

    def retained(self, topic: str) -> bytes | None:
        with self._lock:
            return self._retained.get(topic)

    def after(self, seconds: float, action: Callable[[], None]) -> None:
        """Have `action` done by the pump that comes at or after this time."""
        with self._lock:
            self._sequence += 1
            heapq.heappush(self._due, (self.clock() + seconds, self._sequence, action))

    def pump(self) -> int:
        """Do all that is due by the clock, and what that causes now; returns how many things were done."""
        done = 0
        with self._lock:
            if self._pumping:
                return 0
            self._pumping = True
            try:
                while self._due and self._due[0][0] <= self.clock():
                    heapq.heappop(self._due)[2]()
                    done += 1
            finally:
                self._pumping = False
        return done

    def next_due(self) -> float | None:
        """When the next thing is due, for a virtual clock to jump to."""
        with self._lock:
            return self._due[0][0] if self._due else None

    def _moved(self) -> None:
        if self.automatic:
            self.pump()

    def _forget(self, connection: Connection) -> None:
        connection.alive = False
        if self._present.get(connection.client_id) is connection:
            del self._present[connection.client_id]
        for filter in connection.filters:
            del self._subscribers[filter][connection]

    def _fault(self, topic: str) -> Fault | None:
        for fault in self._faults:
            if fault.remaining > 0 and topic_matches_sub(fault.filter, topic):
                fault.remaining -= 1
                return fault
        return None

    def _deliver(self, connection: Connection, topic: str, payload: bytes, *, retain: bool) -> None:
        fault = self._fault(topic)
        if self.silent or (fault and fault.kind == "drop"):
            return
        seconds = self.delay_seconds + (fault.seconds if fault else 0.0)
        for copy in range(2 if fault and fault.kind == "duplicate" else 1):
            self.after(seconds, partial(self._hand_over, connection, topic, payload, retain, copy > 0))

    @staticmethod
    def _hand_over(connection: Connection, topic: str, payload: bytes, *flags: bool) -> None:
        if connection.alive:
            connection.on_message(topic, payload, *flags)
