"""Gives each thing out of the coordinator's queue to whoever is concerned: messages, link, results, requests.

It keeps nothing and decides nothing, except to step down for a newer coordinator.
"""

import logging
from collections.abc import Callable
from typing import TYPE_CHECKING

from msgspec import Struct

from coordinator import events as ev
from coordinator.answers import answer
from coordinator.evaluate import Answer
from coordinator.evaluations import Beginning
from coordinator.reception import BadRequest, Chunk, Received, Reception
from coordinator.store import Row
from coordinator.workers import Done
from edged import link as wire
from edged.controls import Reply, Request
from edged.messages import Birth, FleetState, Power, Report, State, Want, encode

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)


class Stop:
    """Put into the queue, it ends the loop."""


class Asked(Struct, frozen=True):
    """A request from within this process (the page); `tell` is called on the loop and must return at once."""

    request: Request
    tell: Callable[[Reply], None]


class Switchboard:
    """The one reader of the queue."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._reception = Reception(server.topics, server.note)

    def take(self, item: object) -> None:
        """One thing out of the queue."""
        server = self._server
        match item:
            case wire.Message():
                received = self._reception.read(item)
                if received is not None:
                    self._receive(received)
            case wire.Delivered():
                server.distribution.settled(item.token, server.now)
            case wire.Refused():
                if item.token is None or not server.distribution.settled(item.token, server.now):
                    server.note(ev.Note("-", "refused_by_broker", f"{item.topic}: {item.reason}"))
            case wire.Up():
                LOG.info("connected to the broker")
                server.feed(ev.OwnLink(True))
                server.collection.reconnected(server.now)
                server.herald.change()
            case wire.Down():
                LOG.warning("the connection to the broker is lost: %s", item.reason)
                server.feed(ev.OwnLink(False))
            case wire.Stage():
                LOG.warning("the broker: %s", item.reason)
            case Done():
                item.deliver()
            case Answer():
                self._evaluated(item)
            case Asked():
                item.tell(answer(server, item.request))
            case Stop():
                server.stopping = True

    def _receive(self, received: Received) -> None:
        server = self._server
        match received:
            case Birth():
                server.boards.born(received)
            case State():
                server.boards.heard(received)
                server.distribution.heard(received, server.now)
            case Power():
                server.boards.powered(received)
            case Report():
                server.boards.reported(received)
            case Want():
                server.distribution.want(received, server.now)
            case Chunk():
                chunk = (received.board, received.order, received.number, received.payload)
                server.collection.chunk(*chunk, server.now)
            case Request():
                self._reply(received.client, answer(server, received))
            case BadRequest():
                self._reply(received.client, Reply(received.id, False, f"not understood: {received.error}"))
            case FleetState():
                self._compare(received)

    def _reply(self, client: str, reply: Reply) -> None:
        topic = self._server.topics.of("reply", client=client)
        self._server.link.publish(topic, encode(reply))

    def _compare(self, other: FleetState) -> None:
        server = self._server
        if other.boot == server.boot:
            return
        if other.link != "up":
            # A former coordinator's last word stands where ours should.
            server.herald.change()
            return
        text = (
            f"a coordinator on {other.host or 'an unnamed host'} (term {other.term}) serves this fleet, too"
        )
        server.note(ev.Note("-", "rival_coordinators", text))
        if (other.term, other.boot) > (server.term, server.boot):
            server.deposed, server.stopping = text, True

    def _evaluated(self, found: Answer) -> None:
        server = self._server
        about = server.evaluations.answered(found)
        if isinstance(about, Beginning):
            server.runs.prepared(about, found, server.now)
        elif isinstance(about, Row):
            server.execution.keep(about)
            server.execution.flush(server.now)
            rounds = server.rounds
            if rounds is not None and rounds.state.phase == "done" and not server.execution.problem:
                server.runs.prune()  # while a run goes on the next save does, which knows what is on the disk
            server.tell("evaluation", about.values)
