"""The contract of a board's or coordinator's connection to the broker: what the owner says and what it hears.

An owner publishes, subscribes, and blocks on one queue of events. It never sees a client library, a thread or
a retry. `paho_link.py` keeps this contract over MQTT, `memory_link.py` inside one process.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from queue import SimpleQueue
from typing import Literal, Protocol, TypeAlias

Priority = Literal["report", "chunk", "telemetry"]
LinkState = Literal["up", "lost", "closed"]
StageName = Literal["idle", "waiting", "DNS", "TCP", "TLS", "CONNACK", "SUBACK", "echo", "up", "closed"]

ASSUMED_MAX_PACKET_BYTES = 2_000_000
"""What a broker takes when it does not say: mosquitto's default since 2.1."""


@dataclass(frozen=True)
class Up:
    """Connected, subscribed, and (with an announcement) the own birth was heard back. Say your state now.

    `address` is this side's own on the way to the broker, "" where there is none.
    """

    connection: int
    address: str = ""


@dataclass(frozen=True)
class Down:
    """The connection that was up is lost; a new one is being tried. Nothing in the outbox is lost by this."""

    reason: str


@dataclass(frozen=True)
class Stage:
    """Something worth telling about connecting: the stage that failed or changed, and why, in words."""

    stage: StageName
    reason: str


@dataclass(frozen=True)
class Message:
    """A message for a subscribed filter. May come before `Up`, and twice: QoS 1 promises at least once."""

    topic: str
    payload: bytes
    retain: bool = False


@dataclass(frozen=True)
class Delivered:
    """The broker acknowledged this QoS 1 message. It says nothing about any subscriber."""

    token: int


@dataclass(frozen=True)
class Refused:
    """This message will not be sent: too large, not authorised, pushed out. No token if it never had one."""

    topic: str
    reason: str
    token: int | None = None


Event: TypeAlias = Up | Down | Stage | Message | Delivered | Refused
Events: TypeAlias = SimpleQueue[object]
"""The owner's one queue. Links put `Event`s, the owner may put events of its own."""


class PacketTooLargeError(ValueError):
    """A publish above the broker's limit. It was refused; sending it would close the connection each time."""

    def __init__(self, topic: str, packet_bytes: int, limit_bytes: int) -> None:
        super().__init__(
            f"{topic}: a packet of {packet_bytes:,} bytes, the broker takes {limit_bytes:,}: use chunks"
        )
        self.topic = topic
        self.packet_bytes = packet_bytes
        self.limit_bytes = limit_bytes


class OutboxFullError(RuntimeError):
    """A publish that does not fit into the bounded outbox even with all telemetry thrown out."""


@dataclass(frozen=True)
class LinkConfig:
    """Where and as whom to connect. Files are read at each attempt, so a renewed password needs no restart.

    `tls` without a CA file trusts the system's. `outbox_bytes` bounds all that is not acknowledged.
    `version_seconds` is the patience with a broker that answers nothing to MQTT v5 before 3.1.1 is tried.
    """

    host: str
    port: int
    client_id: str
    username: str | None = None
    password_file: str | None = None
    tls: bool = False
    ca_file: str | None = None
    certificate_file: str | None = None
    key_file: str | None = None
    keepalive_seconds: int = 60
    connect_seconds: float = 10.0
    version_seconds: float = 2.0
    echo_seconds: float = 10.0
    acknowledge_seconds: float = 60.0
    first_backoff_seconds: float = 2.0
    longest_backoff_seconds: float = 60.0
    stable_seconds: float = 60.0
    outbox_bytes: int = 8 * 1024 * 1024
    chunks_in_flight: int = 8
    messages_in_flight: int = 64

    def __post_init__(self) -> None:
        if not self.host or not 1 <= self.port <= 65_535:
            raise ValueError(f"broker address {self.host!r}:{self.port}: need a host and a port of 1..65535")
        if not self.client_id:
            raise ValueError("the client id is empty: the broker tells clients apart by it")
        if not 1 <= self.keepalive_seconds <= 65_535:
            raise ValueError(f"keepalive of {self.keepalive_seconds} s: MQTT allows 1..65535")


@dataclass(frozen=True)
class Announcement:
    """The retained word about who is there: `payload(connection, "up" | "lost" | "closed")`, QoS 1.

    Birth, will and farewell go to the same topic. `connection` counts the connections of this process, so
    that a late will of an older one can be told from the present one. It is called from the link's thread.
    What others say there comes to the owner as a `Message`; so does what was retained before the birth.
    """

    topic: str
    payload: Callable[[int, LinkState], bytes]


@dataclass(frozen=True)
class LinkCounters:
    """Since the start of the process."""

    connects: int = 0
    failed_attempts: int = 0
    reconnects: int = 0
    dropped_telemetry: int = 0
    dropped_bytes: int = 0
    refused: int = 0
    duplicates: int = 0
    unasked: int = 0
    callback_errors: int = 0
    restarts: int = 0
    published: int = 0
    published_bytes: int = 0
    received: int = 0
    received_bytes: int = 0


@dataclass(frozen=True)
class LinkStatus:
    """What `status` and the service's status line show. `reason` is the last failure in words, "" if none."""

    stage: StageName
    host: str
    port: int
    protocol: Literal["5", "3.1.1", "memory"] | None = None
    reason: str = ""
    connection: int = 0
    queued_messages: int = 0
    queued_bytes: int = 0
    in_flight: int = 0
    max_packet_bytes: int = ASSUMED_MAX_PACKET_BYTES
    counters: LinkCounters = field(default_factory=LinkCounters)


class Link(Protocol):
    """A connection that looks after itself. Methods may be called from any thread, also before `start`."""

    @property
    def events(self) -> Events:
        """Block on `events.get(timeout=...)`; put your own events in, too."""
        ...

    @property
    def max_packet_bytes(self) -> int:
        """The broker's limit for one packet, or the assumed one before it said so."""
        ...

    def start(self) -> None:
        """Begin connecting, in the background. Never raises for the network."""
        ...

    def subscribe(self, filter: str, qos: Literal[0, 1] = 1) -> None:
        """Subscribe now and at every reconnect. A refusal is a `Stage("SUBACK", ...)` naming the filter."""
        ...

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
        """Queue a message and return its token; with QoS 1 `Delivered(token)` or `Refused` follows.

        While down, messages wait. Reports are kept; telemetry goes first, oldest first, counted.
        `latest` replaces an unsent message of the same topic and priority. Raises PacketTooLargeError or
        OutboxFullError, after a `Refused` event without a token.
        """
        ...

    def status(self) -> LinkStatus: ...

    def close(self, timeout_seconds: float = 3.0) -> None:
        """Send what reports are left, then the farewell, wait for its PUBACK within the time, disconnect.

        If the farewell is not acknowledged the connection is cut so that the will speaks. Idempotent.
        """
        ...


def packet_bytes(topic: str, payload: bytes) -> int:
    """Size of the PUBLISH packet (MQTT v5, QoS 1, no properties): what the broker's limit is about."""
    body = 2 + len(topic.encode()) + 2 + 1 + len(payload)
    length_bytes = 1 if body < 128 else 2 if body < 16_384 else 3 if body < 2_097_152 else 4
    return 1 + length_bytes + body
