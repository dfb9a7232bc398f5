"""A link over `MemoryBroker` with the contract of `link.py`: no thread, socket or clock of its own.

Everything it does happens inside the caller's calls or the broker's `pump`.
"""

from collections import deque
from functools import partial
from queue import SimpleQueue
from typing import Literal

from edged.backoff import Backoff
from edged.dispatch import Dispatch
from edged.link import (
    Announcement,
    Down,
    Events,
    LinkConfig,
    LinkStatus,
    Message,
    Priority,
    Stage,
    StageName,
    Up,
)
from edged.memory_broker import Connection, MemoryBroker


class MemoryLink:
    """`draw` stands for the back-off's random number, so that runs repeat."""

    def __init__(
        self,
        broker: MemoryBroker,
        config: LinkConfig,
        announcement: Announcement | None = None,
        events: Events | None = None,
        draw: float = 0.5,
    ) -> None:
        self.config = config
        self._broker = broker
        self._announcement = announcement
        self._events: Events = SimpleQueue() if events is None else events
        self._draw = draw
        self._dispatch = Dispatch(config, self._events)
        self._backoff = Backoff(
            config.first_backoff_seconds, config.longest_backoff_seconds, config.stable_seconds
        )
        self._filters: dict[str, int] = {}
        self._wills: deque[bytes] = deque(maxlen=8)
        self._births: deque[bytes] = deque(maxlen=8)
        self._connection: Connection | None = None
        self._number = 0
        self._up_since = 0.0
        self._stage: StageName = "idle"
        self._reason = ""

    @property
    def events(self) -> Events:
        return self._events

    @property
    def max_packet_bytes(self) -> int:
        return self._dispatch.max_packet_bytes

    def start(self) -> None:
        if self._stage == "idle":
            self._stage = "waiting"
            self._later(0.0)
            self._moved()

    def subscribe(self, filter: str, qos: Literal[0, 1] = 1) -> None:
        self._filters[filter] = qos
        if self._connection is not None:
            self._subscribe(self._connection, filter)

    def publish(
        self,
        topic: str,
        payload: bytes,
        *,
        qos: Literal[0, 1] = 1,
        retain: bool = False,
        priority: Priority = "report",
        latest: bool = False,
    ) -> int:
        token = self._dispatch.publish(
            topic, payload, qos=qos, retain=retain, priority=priority, latest=latest
        )
        self._flush()
        self._moved()
        return token

    def status(self) -> LinkStatus:
        return self._dispatch.status(self._stage, self._reason, self._number, "memory")

    def close(self, timeout_seconds: float = 3.0) -> None:
        """As the contract says, but time does not pass in here: nothing is waited for."""
        if self._stage == "closed":
            return
        if self._stage == "up":
            self._dispatch.reports_only()
            self._flush()
        connection, self._connection = self._connection, None
        self._stage = "closed"
        if connection is None:
            return
        if self._announcement is not None:
            farewell = self._announcement.payload(self._number, "closed")
            if self._broker.publish(self._announcement.topic, farewell, retain=True) is not None:
                self._broker.cut(connection, "closed without a farewell")
                return
        self._broker.disconnect(connection)

    def kill(self) -> None:
        """The process dies: no farewell, the will speaks, the link never comes back."""
        connection, self._connection = self._connection, None
        self._stage = "closed"
        if connection is not None:
            self._broker.cut(connection, "killed")

    def lose(self, reason: str = "connection lost") -> None:
        """The network breaks: the will speaks and the link comes back after its back-off."""
        if self._connection is not None:
            self._broker.cut(self._connection, reason)

    def _connect(self) -> None:
        if self._stage != "waiting":
            return
        self._number += 1
        number = self._number
        will = None
        if self._announcement is not None:
            payload = self._announcement.payload(number, "lost")
            self._wills.append(payload)
            self._births.append(self._announcement.payload(number, "up"))
            will = (self._announcement.topic, payload)
        connection = Connection(
            self.config.client_id,
            on_message=self._heard,
            on_cut=lambda reason: self._cut(number, reason),
            will=will,
        )
        refused = self._broker.connect(connection)
        if refused is not None:
            self._failed("TCP", refused)
            return
        self._connection = connection
        self._dispatch.max_packet_bytes = self._broker.max_packet_bytes
        self._stage = "SUBACK"
        own_topic = [] if self._announcement is None else [self._announcement.topic]
        for filter in [*self._filters, *own_topic]:
            if not self._subscribe(connection, filter):
                return
        if self._announcement is None:
            self._rise()
            return
        self._stage = "echo"
        self._broker.after(self.config.echo_seconds, lambda: self._echo_missed(number))
        self._say_birth()

    def _subscribe(self, connection: Connection, filter: str) -> bool:
        refused = self._broker.subscribe(connection, filter)
        if refused is not None:
            self._failed("SUBACK", f"the broker refuses the subscription to {filter}: {refused}")
        return refused is None

    def _say_birth(self) -> None:
        assert self._announcement is not None
        self._broker.publish(self._announcement.topic, self._births[-1], retain=True)

    def _heard(self, topic: str, payload: bytes, retain: bool, duplicate: bool) -> None:
        if self._announcement is not None and topic == self._announcement.topic:
            if payload == self._births[-1] and self._stage == "echo":
                self._rise()
            if payload in self._wills and self._stage == "up":
                self._say_birth()
            if payload in self._wills or payload in self._births:
                return
        if duplicate:
            self._dispatch.count("duplicates")
        self._dispatch.count("received")
        self._dispatch.count("received_bytes", len(payload))
        self._events.put(Message(topic, payload, retain))

    def _rise(self) -> None:
        self._stage = "up"
        self._reason = ""
        self._up_since = self._broker.clock()
        self._dispatch.count("connects")
        if self._dispatch.counters().connects > 1:
            self._dispatch.count("reconnects")
        self._events.put(Up(self._number))
        self._flush()

    def _flush(self) -> None:
        connection, number = self._connection, self._number
        while self._stage == "up" and connection is not None and connection.alive:
            item = self._dispatch.take()
            if item is None:
                return
            refused = self._broker.publish(item.topic, item.payload, item.retain)
            if refused is not None:
                self._dispatch.refuse(item.token, refused)
            else:
                acknowledge = partial(self._acknowledged, number, item.token)
                self._broker.after(self._broker.delay_seconds, acknowledge)
                self._moved()

    def _acknowledged(self, number: int, token: int) -> None:
        if number == self._number and self._connection is not None and self._connection.alive:
            self._dispatch.delivered(token)
            self._flush()

    def _echo_missed(self, number: int) -> None:
        if number == self._number and self._stage == "echo" and self._announcement is not None:
            self._failed(
                "echo",
                f"the broker accepts us but delivers nothing: check the ACL for {self._announcement.topic}",
            )

    def _failed(self, stage: StageName, reason: str) -> None:
        self._dispatch.count("failed_attempts")
        self._reason = f"{self.config.host}:{self.config.port} {stage}: {reason}"
        self._events.put(Stage(stage, self._reason))
        connection, self._connection = self._connection, None
        was_up, self._stage = self._stage == "up", "waiting"
        if was_up:
            self._events.put(Down(self._reason))
            self._dispatch.connection_lost()
        if connection is not None:
            self._broker.cut(connection, reason)
        self._backoff = self._backoff.after_failure()
        self._later(self._backoff.wait_seconds(self._draw))

    def _cut(self, number: int, reason: str) -> None:
        if number != self._number or self._connection is None:
            return
        self._connection = None
        was_up, self._stage = self._stage == "up", "waiting"
        self._reason = reason
        if was_up:
            self._events.put(Down(reason))
            self._backoff = self._backoff.after_loss(self._broker.clock() - self._up_since)
        else:
            self._events.put(Stage("waiting", reason))
            self._backoff = self._backoff.after_failure()
        self._dispatch.connection_lost()
        self._later(self._backoff.wait_seconds(self._draw))

    def _later(self, seconds: float) -> None:
        self._broker.after(seconds, self._connect)

    def _moved(self) -> None:
        if self._broker.automatic:
            self._broker.pump()
