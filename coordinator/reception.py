"""Messages as they come from the broker: taken apart by topic, decoded, checked against it, refused by name.

Whatever bytes come on whatever topic, it answers with a typed value or with a note; it never raises for them.
"""

from collections.abc import Callable
from typing import Final, TypeVar

import msgspec
from msgspec import Struct

from coordinator.events import Note
from coordinator.wording import dotted
from edged.controls import Request
from edged.link import Message
from edged.messages import Birth, FleetState, MessageError, Power, Report, State, Want, decode
from edged.topics import VALID_ID, Address, Topics

SUBSCRIPTIONS: Final = ("birth", "state", "power", "report", "want", "update", "request")
_KINDS: Final[dict[str, type[Birth | State | Power | Report | Want]]] = {
    "birth": Birth,
    "state": State,
    "power": Power,
    "report": Report,
    "want": Want,
}


class Chunk(Struct, frozen=True):
    """A chunk of an update."""

    board: str
    order: str
    number: int
    payload: bytes


class BadRequest(Struct, frozen=True):
    """An operator's request that cannot be read; id and client as far as they could be."""

    client: str
    id: str
    error: str


T = TypeVar("T")
Received = Birth | State | Power | Report | Want | Chunk | Request | BadRequest | FleetState


class Reception:
    """`note` takes what was refused."""

    def __init__(self, topics: Topics, note: Callable[[Note], None]) -> None:
        self._topics, self._note = topics, note

    def read(self, message: Message) -> Received | None:
        """The message as a value; None where it was refused, or was only a retained one being cleared."""
        address = self._topics.parse(message.topic)
        if address is None:
            self._refuse("-", "strange_topics", f"topic {message.topic!r} is none of this protocol's")
            return None
        name = address.route.name
        if name == "update":
            return self._chunk(address, message.payload)
        if name == "request":
            return self._request(message.payload)
        if name == "birth" and not message.payload:
            return None
        if name == "fleet":
            return self._decoded(FleetState, "-", name, message.payload) if message.payload else None
        if name not in _KINDS:
            self._refuse(address.board or "-", "strange_topics", f"{message.topic} is not for us")
            return None
        found = self._decoded(_KINDS[name], address.board, name, message.payload)
        if found is not None and found.board != address.board:
            text = f"a {name} on the topic of {address.board} says it is of {found.board}"
            self._refuse(address.board, "foreign_ids", text)
            return None
        return found

    def _decoded(self, kind: type[T], board: str, name: str, payload: bytes) -> T | None:
        try:
            return decode(kind, payload)
        except MessageError as error:
            self._refuse(board, f"malformed_{name}s", f"{name}: {dotted(str(error))}")
            return None

    def _chunk(self, address: Address, payload: bytes) -> Chunk | None:
        named = address.order.split(".")[2]
        if named != address.board:
            self._refuse(address.board, "foreign_ids", f"an update for order {address.order} of {named}")
            return None
        return Chunk(address.board, address.order, address.chunk, payload)

    def _request(self, payload: bytes) -> Request | BadRequest | None:
        try:
            return decode(Request, payload)
        except MessageError as error:
            self._refuse("-", "malformed_requests", f"request: {dotted(str(error))}")
            return _sender(payload, dotted(str(error)))

    def _refuse(self, board: str, counter: str, text: str) -> None:
        self._note(Note(board, counter, text))


def _sender(payload: bytes, error: str) -> BadRequest | None:
    """Who asked, so that the person hears what was wrong with it; None where that cannot be read either."""
    try:
        raw = msgspec.json.decode(payload)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    if not isinstance(raw, dict):
        return None
    client, number = raw.get("client"), raw.get("id")
    if (
        isinstance(client, str)
        and VALID_ID.match(client)
        and isinstance(number, str)
        and VALID_ID.match(number)
    ):
        return BadRequest(client, number, error)
    return None
