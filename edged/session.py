"""One MQTT connection over paho, from CONNECT to its end, driven by one thread through `step`.

It names the stage at which it fails and never retries: that is the link's business. paho's own thread, queue,
resending and reconnecting stay unused; all calls into paho come from the one thread that calls `step`.
"""

import time
from collections.abc import Callable, Iterable
from typing import Any

import paho.mqtt.client as paho
from paho.mqtt.properties import Properties
from paho.mqtt.reasoncodes import ReasonCode

from edged import dial
from edged.dial import ProtocolVersion, SessionError, VersionDoubt
from edged.dispatch import Dispatch
from edged.filters import Filters
from edged.link import ASSUMED_MAX_PACKET_BYTES, Announcement, LinkConfig, Message, StageName
from edged.outbox import Item

UNSUPPORTED_VERSION = 0x84
BAD_CREDENTIALS = (0x86, 0x87)
PACKET_TOO_LARGE = 0x95


class Session:
    """`heard(message, qos)` and the words of `Dispatch` are all that leaves it; `up` is its state.

    `number` is the connection number that the announcement is made with, `past_words` the payloads that this
    process's earlier connections left with the broker.
    """

    def __init__(
        self,
        config: LinkConfig,
        dispatch: Dispatch,
        heard: Callable[[Message, int], None],
        *,
        protocol: ProtocolVersion,
        announcement: Announcement | None,
        number: int,
        past_words: Iterable[bytes],
    ) -> None:
        self.protocol = protocol
        self.stage: StageName = "waiting"
        self.words: tuple[bytes, ...] = ()
        self.farewell_acknowledged = False
        self._config = config
        self._dispatch = dispatch
        self._heard = heard
        self._announcement = announcement
        self._number = number
        self._past_words = frozenset(past_words)
        self._birth = b""
        self._farewell = b""
        self._failure: SessionError | None = None
        self._broker_words = ""
        self._tokens: dict[int, int] = {}
        self._filters = Filters()
        self._subscribing: dict[int, list[str]] = {}
        self._birth_mid = self._farewell_mid = -1
        self._deadline = self._patience_seconds = 0.0
        self._repeat_birth_at = float("inf")
        self._progress_at = time.monotonic()
        self._client = dial.make_client(config, protocol)
        self._client.on_connect = self._guarded(self._on_connect)
        self._client.on_subscribe = self._guarded(self._on_subscribe)
        self._client.on_publish = self._guarded(self._on_publish)
        self._client.on_message = self._guarded(self._on_message)
        self._client.on_disconnect = self._guarded(self._on_disconnect)

    @property
    def up(self) -> bool:
        return self.stage == "up"

    def open(self, filters: dict[str, int]) -> None:
        """Look up, connect, secure, and send CONNECT; the rest of the way is done by `step`."""
        self._filters.add(filters)
        if self._announcement is not None:
            # Before the birth: what is retained there may be the word of a second client with this name.
            self._filters.add({self._announcement.topic: 1})
            will = self._announcement.payload(self._number, "lost")
            self._birth = self._announcement.payload(self._number, "up")
            self.words = (will, self._birth)
            self._client.will_set(self._announcement.topic, will, qos=1, retain=True)
        dial.connect(self._client, self._config, self._enter)
        first_try = self.protocol == "5"
        self._enter("CONNACK", self._config.version_seconds if first_try else self._config.connect_seconds)

    def socket(self) -> Any:
        """What to poll; None when it is closed."""
        return self._client.socket()

    @property
    def address(self) -> str:
        """This side's own address on the line to the broker."""
        line: Any = self._client.socket()
        return str(line.getsockname()[0]) if line is not None else ""

    @property
    def undelivered(self) -> bool:
        """Bytes that TLS has read from the line already, so that polling the line would not tell of them."""
        line = self._client.socket()
        return bool(line is not None and hasattr(line, "pending") and line.pending())

    @property
    def seconds_left(self) -> float:
        """Until the patience with the present stage is at its end."""
        return max(0.0, self._deadline - time.monotonic())

    @property
    def wants_to_write(self) -> bool:
        return self._client.want_write()

    def step(self, *, readable: bool, writable: bool, more: Callable[[], bool]) -> None:
        """Let paho read (on, as long as `more`) and write, then look at the clock. Raises SessionError at
        the end."""
        code = paho.MQTT_ERR_SUCCESS
        if readable:
            code = dial.read(self._client, more)
        if writable and not code:
            code = self._client.loop_write()
        if not code:
            code = self._client.loop_misc()
        if self._failure is not None:
            raise self._failure
        if code or self._client.socket() is None:
            raise dial.closed(self._config, self.stage, self._broker_words)
        self._look_at_the_clock(time.monotonic())

    def subscribe(self, filters: dict[str, int]) -> None:
        """Ask for what was not asked for yet."""
        new = {filter: qos for filter, qos in filters.items() if filter not in self._filters.asked}
        if new and self.up:
            self._filters.add(new)
            self._send_subscribe(new)

    def publish(self, item: Item) -> None:
        info = self._client.publish(item.topic, item.payload, item.qos, item.retain)
        if item.qos == 0 and info.rc == paho.MQTT_ERR_SUCCESS and info.is_published():
            self._dispatch.delivered(item.token)
        else:
            self._tokens[info.mid] = item.token

    def say_farewell(self) -> None:
        """Publish the retained goodbye; `farewell_acknowledged` turns true when the broker has it."""
        if self._announcement is None:
            self.farewell_acknowledged = True
            return
        self._farewell = self._announcement.payload(self._number, "closed")
        self._farewell_mid = self._client.publish(self._announcement.topic, self._farewell, 1, True).mid

    def disconnect(self) -> None:
        """A clean goodbye: the broker forgets the will."""
        if self._client.socket() is not None:
            self._client.disconnect()
            self._client.loop_write()
        self.drop()

    def drop(self) -> None:
        """Cut the connection without a goodbye, so that the will speaks."""
        sock = self._client.socket()
        if sock is not None:
            sock.close()

    def _guarded(self, callback: Callable[..., None]) -> Callable[..., None]:
        """An exception would leave paho's loop in an undefined state: count it and end the session."""

        def run(*arguments: Any) -> None:
            try:
                callback(*arguments)
            except Exception as error:
                self._dispatch.count("callback_errors")
                self._fail(f"a failure inside the link: {error!r}")

        return run

    def _enter(self, stage: StageName, seconds: float = float("inf")) -> None:
        self.stage = stage
        self._patience_seconds = seconds
        self._deadline = time.monotonic() + seconds

    def _fail(self, reason: str, version: VersionDoubt = "fine") -> None:
        if self._failure is None:
            self._failure = SessionError(self.stage, reason, version)

    def _on_connect(
        self, _client: Any, _data: Any, _flags: Any, reason: ReasonCode, properties: Properties
    ) -> None:
        if reason.is_failure:
            hint = ""
            if reason.value in BAD_CREDENTIALS:
                hint = f" (user {self._config.username!r}: check the user name and the password file)"
            wrong_version = reason.value == UNSUPPORTED_VERSION
            self._fail(
                f"the broker refuses the connection: {reason}{hint}", "wrong" if wrong_version else "fine"
            )
            return
        self._dispatch.broker_limits(
            getattr(properties, "MaximumPacketSize", ASSUMED_MAX_PACKET_BYTES),
            getattr(properties, "ReceiveMaximum", 65_535),
        )
        if self._filters.asked:
            self._enter("SUBACK", self._config.connect_seconds)
            self._send_subscribe(self._filters.asked)
        else:
            self._announce()

    def _send_subscribe(self, filters: dict[str, int]) -> None:
        code, mid = self._client.subscribe(list(filters.items()))
        if code == paho.MQTT_ERR_SUCCESS and mid is not None:
            self._subscribing[mid] = list(filters)

    def _on_subscribe(
        self, _client: Any, _data: Any, mid: int, reasons: list[ReasonCode], _properties: Any
    ) -> None:
        filters = self._subscribing.pop(mid, [])
        for filter, reason in zip(filters, reasons, strict=False):
            if reason.value >= 0x80:
                self.stage = "SUBACK"
                self._fail(f"the broker refuses the subscription to {filter}: {reason}")
                return
        if self.stage == "SUBACK" and not self._subscribing:
            self._announce()

    def _announce(self) -> None:
        if self._announcement is None:
            self._enter("up")
            return
        self._enter("echo", self._config.echo_seconds)
        self._repeat_birth_at = time.monotonic() + self._config.echo_seconds / 3
        self._say_birth()

    def _say_birth(self) -> None:
        assert self._announcement is not None
        self._birth_mid = self._client.publish(self._announcement.topic, self._birth, 1, True).mid

    def _on_publish(self, _client: Any, _data: Any, mid: int, reason: ReasonCode, _properties: Any) -> None:
        self._progress_at = time.monotonic()
        if mid == self._birth_mid and self._announcement is not None:
            if reason.is_failure:
                topic = self._announcement.topic
                self._fail(f"the broker refuses our birth: {reason}: check the ACL for {topic}")
        elif mid == self._farewell_mid:
            self.farewell_acknowledged = not reason.is_failure
        elif (token := self._tokens.pop(mid, None)) is not None:
            if reason.is_failure:
                self._dispatch.refuse(token, f"the broker refuses it: {reason}")
            else:
                self._dispatch.delivered(token)

    def _on_message(self, _client: Any, _data: Any, message: paho.MQTTMessage) -> None:
        if message.dup:
            self._dispatch.count("duplicates")
        if not self._filters.match(message.topic):
            # amqtt sends what is retained for anybody's filter to everybody.
            self._dispatch.count("unasked")
            return
        payload = bytes(message.payload)
        if self._announcement is not None and message.topic == self._announcement.topic:
            if payload == self._birth and self.stage == "echo":
                self._enter("up")
            if payload in self._past_words and self.up:
                # The late will of an older connection: what stays must be the birth.
                self._say_birth()
            if payload in {self._birth, self._farewell} or payload in self._past_words:
                return
        self._heard(Message(message.topic, payload, message.retain), message.qos)

    def _on_disconnect(
        self, _client: Any, _data: Any, flags: Any, reason: ReasonCode, _properties: Any
    ) -> None:
        if flags.is_disconnect_packet_from_server:
            self._broker_words = f"the broker disconnects: {reason}"
        if reason.value == PACKET_TOO_LARGE and (item := self._dispatch.largest_in_flight()):
            self._dispatch.refuse(item.token, f"{item.size_bytes:,} bytes are too large for the broker")

    def _look_at_the_clock(self, now: float) -> None:
        if self.stage == "echo" and now >= self._repeat_birth_at:
            self._repeat_birth_at = float("inf")
            self._say_birth()
        if now >= self._deadline:
            silence = f"no answer within {self._patience_seconds:g} s"
            if self.stage == "echo" and self._announcement is not None:
                topic = self._announcement.topic
                silence = f"the broker accepts us but delivers nothing: check the ACL for {topic}"
            raise SessionError(self.stage, silence, "wrong" if self.stage == "CONNACK" else "fine")
        if not self._tokens or self.wants_to_write:
            self._progress_at = now
        elif now - self._progress_at >= self._config.acknowledge_seconds:
            seconds = self._config.acknowledge_seconds
            raise SessionError(self.stage, f"the broker has acknowledged nothing for {seconds:g} s")
