"""The link over MQTT: one thread that connects, stays connected, and tries again after a random wait.

MQTT v5 first, 3.1.1 where the broker knows no other. What one connection does is in `session.py`.
"""

import random
import select
import socket
import threading
import time
from collections import deque
from contextlib import suppress
from queue import SimpleQueue
from typing import Literal

from edged.backoff import Backoff
from edged.dial import ProtocolVersion, SessionError
from edged.dispatch import Dispatch
from edged.inflow import Inflow
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
from edged.session import Session

GATHER_SECONDS = 0.02
"""After telemetry the next is read so much later, all that has come together: a thread that wakes for each
of a thousand boards' watts spends more on waking than on reading."""


class PahoLink:
    """See `link.Link`. `random_source` draws the back-off's waits."""

    def __init__(
        self,
        config: LinkConfig,
        announcement: Announcement | None = None,
        events: Events | None = None,
        random_source: random.Random | None = None,
    ) -> None:
        self.config = config
        self._announcement = announcement
        self._events: Events = SimpleQueue() if events is None else events
        self._random = random_source or random.Random()
        self._dispatch = Dispatch(config, self._events)
        self._backoff = Backoff(
            config.first_backoff_seconds, config.longest_backoff_seconds, config.stable_seconds
        )
        self._filters: dict[str, int] = {}
        self._past_words: deque[bytes] = deque(maxlen=16)
        self._inflow = Inflow(self._events)
        self._number = 0
        self._stage: StageName = "idle"
        self._protocol: ProtocolVersion | None = None
        self._offered: ProtocolVersion = "5"
        self._fallback_told = False
        self._reason = ""
        self._told: Stage | None = None
        self._closing = threading.Event()
        self._close_seconds = 0.0
        self._thread: threading.Thread | None = None
        self._wake_in, self._wake_out = socket.socketpair()
        self._wake_in.setblocking(False)
        self._wake_out.setblocking(False)

    @property
    def events(self) -> Events:
        return self._events

    @property
    def max_packet_bytes(self) -> int:
        return self._dispatch.max_packet_bytes

    def start(self) -> None:
        if self._thread is None and not self._closing.is_set():
            self._stage = "waiting"
            self._thread = threading.Thread(target=self._supervise, name="edged-link", daemon=True)
            self._thread.start()

    def subscribe(self, filter: str, qos: Literal[0, 1] = 1) -> None:
        self._filters = {**self._filters, filter: qos}
        self._wake()

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
        self._wake()
        return token

    def status(self) -> LinkStatus:
        return self._dispatch.status(self._stage, self._reason, self._number, self._protocol)

    def close(self, timeout_seconds: float = 3.0) -> None:
        self._close_seconds = timeout_seconds
        self._closing.set()
        self._wake()
        if self._thread is not None:
            self._thread.join(timeout_seconds + 1.0)
        else:
            self._close_pipe()
        self._stage = "closed"

    def _wake(self) -> None:
        # A full pipe means that the thread has been woken already.
        with suppress(OSError):
            self._wake_out.send(b"\0")

    def _close_pipe(self) -> None:
        self._wake_in.close()
        self._wake_out.close()

    def _supervise(self) -> None:
        """Nothing but `close` ends this: what the loop did not foresee is counted, told, and tried again."""
        while not self._closing.is_set():
            try:
                self._keep_connecting()
            except BaseException as error:
                self._dispatch.count("restarts")
                self._dispatch.connection_lost()
                self._stage = "waiting"
                self._tell(Stage("waiting", f"a failure inside the link, starting it again: {error!r}"))
                self._backoff = self._backoff.after_failure()
                self._wait()
        self._close_pipe()

    def _keep_connecting(self) -> None:
        while not self._closing.is_set():
            failure = self._connect_with_either_version()
            if failure is not None and not self._closing.is_set():
                self._dispatch.count("failed_attempts")
                self._tell(Stage(failure.stage, failure.reason))
                self._backoff = self._backoff.after_failure()
            self._stage = "waiting"
            self._wait()

    def _connect_with_either_version(self) -> SessionError | None:
        """As `_connection`. A refused version is not offered again until the other one fails, too."""
        failure = self._connection(self._offered)
        if failure is None or failure.version == "fine" or self._closing.is_set():
            return failure
        other: ProtocolVersion = "3.1.1" if self._offered == "5" else "5"
        second_failure = self._connection(other)
        if failure.version == "wrong" and (second_failure is None or second_failure.version == "fine"):
            self._offered = other
        return failure if second_failure is not None and second_failure.version != "fine" else second_failure

    def _wait(self) -> None:
        self._closing.wait(self._backoff.wait_seconds(self._random.random()))

    def _connection(self, protocol: ProtocolVersion) -> SessionError | None:
        """One connection from start to end. Returns why it did not come up; None if it was up."""
        self._number += 1
        session = Session(
            self.config,
            self._dispatch,
            self._heard,
            protocol=protocol,
            announcement=self._announcement,
            number=self._number,
            past_words=self._past_words,
        )
        up_since: float | None = None
        try:
            session.open(self._filters)
            while not self._closing.is_set():
                self._stage = session.stage
                if session.up and up_since is None:
                    up_since = time.monotonic()
                    self._rise(protocol, session.address)
                session.subscribe(self._filters)
                self._turn(session)
            self._farewell(session)
        except SessionError as failure:
            if up_since is None:
                # A copy, since the traceback holds paho's socket of a failed TLS handshake open.
                return SessionError(failure.stage, failure.reason, failure.version)
            self._reason = self._words(failure.stage, failure.reason)
            self._events.put(Down(self._reason))
            self._backoff = self._backoff.after_loss(time.monotonic() - up_since)
        finally:
            session.drop()
            self._dispatch.connection_lost()
            self._past_words.extend(session.words)
        return None

    def _turn(self, session: Session, seconds: float = 1.0) -> None:
        """Send what may be sent, then wait for the network or a wake-up and let the session work."""
        while session.up and (item := self._dispatch.take()) is not None:
            session.publish(item)
        owner_is_behind = self._inflow.owner_is_behind() and not self._closing.is_set()
        poller = select.poll()
        poller.register(self._wake_in, select.POLLIN)
        if self._inflow.patient and not session.wants_to_write:
            poller.poll(GATHER_SECONDS * 1000)
        line = session.socket()
        if line is not None:
            reading = 0 if owner_is_behind else select.POLLIN
            poller.register(line, reading | (select.POLLOUT if session.wants_to_write else 0))
        timeout = (
            0.005 if owner_is_behind else 0.0 if session.undelivered else min(seconds, session.seconds_left)
        )
        happened = dict(poller.poll(timeout * 1000))
        if self._wake_in.fileno() in happened:
            self._wake_in.recv(4096)
        mask = happened.get(line.fileno(), 0) if line is not None else 0
        self._inflow.begin()
        try:
            session.step(
                readable=bool(mask & ~select.POLLOUT) or (session.undelivered and not owner_is_behind),
                writable=bool(mask & select.POLLOUT),
                more=self._inflow.more,
            )
        finally:
            self._inflow.end()

    def _farewell(self, session: Session) -> None:
        """Reports first, within half of the time, then the goodbye; the rest of the messages stay unsent."""
        if not session.up:
            return
        begun = time.monotonic()
        self._dispatch.reports_only()
        while not self._dispatch.empty and time.monotonic() < begun + self._close_seconds / 2:
            self._turn(session, 0.05)
        session.say_farewell()
        while not session.farewell_acknowledged and time.monotonic() < begun + self._close_seconds:
            self._turn(session, 0.05)
        if session.farewell_acknowledged:
            session.disconnect()

    def _rise(self, protocol: ProtocolVersion, address: str) -> None:
        self._protocol = protocol
        self._reason = ""
        self._told = None
        self._dispatch.count("connects")
        if self._dispatch.counters().connects > 1:
            self._dispatch.count("reconnects")
        if protocol == "3.1.1" and not self._fallback_told:
            self._fallback_told = True
            self._events.put(
                Stage("CONNACK", self._words("CONNACK", "the broker does not speak MQTT v5: 3.1.1 it is"))
            )
        self._events.put(Up(self._number, address))

    def _heard(self, message: Message, qos: int) -> None:
        self._dispatch.count("received")
        self._dispatch.count("received_bytes", len(message.payload))
        self._inflow.put(message, qos)

    def _words(self, stage: StageName, reason: str) -> str:
        if stage == "up":  # what ended a connection that had passed all stages
            return f"{self.config.host}:{self.config.port}: {reason}"
        return f"{self.config.host}:{self.config.port} {stage}: {reason}"

    def _tell(self, stage: Stage) -> None:
        """A failure that repeats is told once."""
        self._reason = self._words(stage.stage, stage.reason)
        if stage != self._told:
            self._told = stage
            self._events.put(Stage(stage.stage, self._reason))
