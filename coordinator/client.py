"""An operator's connection: asks the coordinator over the broker and waits some seconds for the answer.

Every way in which no answer comes is an error of its own that names host, port and stage; it orders nothing.
"""

import getpass
import secrets
import socket
import time
from collections.abc import Callable
from queue import Empty
from types import TracebackType
from typing import TypeAlias

from edged.codec import MAX_JSON_BYTES
from edged.controls import Action, Reply, Request
from edged.link import Down, Link, LinkConfig, Message, Refused, Stage, Up
from edged.messages import FleetState, MessageError, decode, encode
from edged.topics import Topics

ANSWER_SECONDS = 3.0
CONNECT_SECONDS = 10.0

LinkFactory: TypeAlias = Callable[[LinkConfig], Link]


class NoBrokerError(ConnectionError):
    """The broker cannot be reached or will not serve this client; the text names host, port and stage."""


class NobodyAnswersError(ConnectionError):
    """The broker is there, but no coordinator answered in time."""


class NotDoneError(ValueError):
    """The coordinator answered and refused; the text is its own."""


def client_name() -> str:
    """A name that no other operator has at this moment; the last part of `edged-<fleet>-<name>`."""
    return f"cli-{secrets.token_hex(4)}"


def client_id(fleet: str, name: str) -> str:
    """What the broker knows this client by."""
    return f"edged-{fleet}-{name}"


def who() -> str:
    """user@host, kept beside each change that is asked for."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError):  # a user id without an entry in the passwd file
        user = "unknown"
    return f"{user}@{socket.gethostname()}"


def mqtt_link(config: LinkConfig) -> Link:
    """The link that commands use unless a test gives them another."""
    from edged.paho_link import PahoLink

    return PahoLink(config)


class Client:
    """A context: connects on entry, closes on exit. `name` is this client's part of the topics."""

    def __init__(self, link: Link, config: LinkConfig, fleet: str, name: str) -> None:
        self.fleet: FleetState | None = None
        self.fleet_told = 0
        self.connected = False
        self.answer_seconds = ANSWER_SECONDS
        self._link = link
        self._topics = Topics(fleet)
        self._name = name
        self._place = f"{config.host}:{config.port}"
        self._replies = self._topics.of("reply", client=name)
        self._state = self._topics.of("fleet")

    def __enter__(self) -> "Client":
        self._link.subscribe(self._replies)
        self._link.subscribe(self._state)
        self._link.start()
        try:
            self._connect()
        except BaseException:
            self._link.close(0.0)
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._link.close(1.0)

    @property
    def place(self) -> str:
        """host:port of the broker."""
        return self._place

    def ask(self, action: Action, seconds: float | None = None) -> Reply:
        """The coordinator's answer, whatever it is; it is waited for `seconds`, else `answer_seconds`.

        Raises NobodyAnswersError, NoBrokerError.
        """
        seconds = self.answer_seconds if seconds is None else seconds
        request = Request(self._name, f"q{secrets.token_hex(6)}", action, who())
        topic = self._topics.of("request")
        token = self._link.publish(topic, encode(request))
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            event = self._next(left)
            if isinstance(event, Refused) and event.token == token:
                raise NoBrokerError(
                    f"broker {self._place}: refuses our request: {event.reason}: check the ACL for {topic}"
                )
            reply = self._reply(event, request.id)
            if reply is not None:
                return reply
        if not self.connected:
            raise NoBrokerError(f"broker {self._link.status().reason or self._place}")
        raise NobodyAnswersError(self._silence(seconds))

    def demand(self, action: Action, seconds: float | None = None) -> Reply:
        """As `ask`, and NotDoneError where the coordinator refuses."""
        reply = self.ask(action, seconds)
        if not reply.ok:
            raise NotDoneError(reply.text or "the coordinator refuses, and does not say why")
        return reply

    def wait(self, seconds: float) -> bool:
        """Let at most this time pass; True as soon as the fleet's state was told anew or the link changed."""
        until = time.monotonic() + seconds
        while (left := until - time.monotonic()) > 0:
            told, connected = self.fleet_told, self.connected
            self._next(left)
            if (told, connected) != (self.fleet_told, self.connected):
                return True
        return False

    def _connect(self) -> None:
        until = time.monotonic() + CONNECT_SECONDS
        while not self.connected:
            event = self._next(until - time.monotonic())
            status = self._link.status()
            if isinstance(event, Stage) and status.counters.failed_attempts:
                raise NoBrokerError(f"broker {event.reason}")
            if event is None:
                raise NoBrokerError(
                    f"broker {self._place} {status.stage}: no answer within {CONNECT_SECONDS:g} s"
                )

    def _next(self, seconds: float) -> object:
        """The next event, or None when the time is over; what it tells of link and fleet is taken in."""
        try:
            event = self._link.events.get(timeout=max(0.0, seconds))
        except Empty:
            return None
        if isinstance(event, Up):
            self.connected = True
        elif isinstance(event, Down):
            self.connected = False
        elif isinstance(event, Message) and event.topic == self._state:
            try:
                self.fleet = decode(FleetState, event.payload)
                self.fleet_told += 1
            except MessageError:
                # Whoever wrote it is no coordinator of this protocol: it stays unheard, `doctor` names it.
                pass
        return event

    def _reply(self, event: object, request: str) -> Reply | None:
        if not isinstance(event, Message) or event.topic != self._replies:
            return None
        if len(event.payload) > MAX_JSON_BYTES:
            raise NobodyAnswersError(
                f"broker {self._place}: an answer of {len(event.payload):,} bytes came, more than the "
                f"{MAX_JSON_BYTES:,} that are read: ask for less (rounds --last 5)"
            )
        try:
            reply = decode(Reply, event.payload)
        except MessageError as error:
            raise NobodyAnswersError(
                f"broker {self._place}: an answer came that cannot be read: {error}; "
                "is the coordinator of another version?"
            ) from None
        return reply if reply.id == request else None

    def _silence(self, seconds: float) -> str:
        state = self.fleet
        where = (state.host if state else "") or "an unnamed host"
        if state is None:
            hint = "none was ever seen there. Start one with `edged-coordinator serve`, or check --fleet"
        elif state.link == "up":
            hint = f"the one on {where} is connected, but does not answer; it may still do what was asked"
        else:
            hint = f"the one on {where} is gone ({state.link}), start it again"
        fleet = self._topics.fleet
        return f"no coordinator of fleet {fleet} answers at {self._place} within {seconds:g} s; {hint}"
