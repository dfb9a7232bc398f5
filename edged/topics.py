"""The topic of each message, its QoS and whether it is retained; and back from a topic to its parts.

Pure. The table is the only place where QoS and retain are stated (docs/protocol.md is held to it).
"""

import re
from typing import Literal

from msgspec import Struct

Sender = Literal["board", "coordinator", "operator"]
ROOT = "edged/v1"
_ID = r"[a-z0-9][a-z0-9_-]{0,62}"


class Route(Struct, frozen=True):
    """One kind of topic: pattern with <names>, who publishes it, QoS, retain, and its message's name."""

    name: str
    pattern: str
    sender: Sender
    qos: Literal[0, 1]
    retain: bool
    message: str


ROUTES: tuple[Route, ...] = (
    Route("birth", "board/<board>/birth", "board", 1, True, "Birth"),
    Route("state", "board/<board>/state", "board", 1, False, "State"),
    Route("power", "board/<board>/power", "board", 0, False, "Power"),
    Route("report", "board/<board>/report", "board", 1, False, "Report"),
    Route("want", "board/<board>/want", "board", 1, False, "Want"),
    Route("echo", "board/<board>/echo", "board", 1, False, "echo"),
    Route("update", "board/<board>/update/<order>/<chunk>", "board", 1, False, "chunk"),
    Route("order", "board/<board>/order", "coordinator", 1, False, "Order"),
    Route("board_model", "board/<board>/model/<version>/<chunk>", "coordinator", 1, False, "chunk"),
    Route("model", "model/<version>/<chunk>", "coordinator", 1, False, "chunk"),
    Route("fleet", "fleet/state", "coordinator", 1, True, "FleetState"),
    Route("request", "control/request", "operator", 1, False, "Request"),
    Route("reply", "control/reply/<client>", "coordinator", 1, False, "Reply"),
)

_FIELDS = {
    "board": _ID,
    "client": _ID,
    "chunk": r"\d{1,9}",
    "version": _ID + r"\.\d{1,9}",
    "order": _ID + r"\.\d{1,9}\." + _ID + r"\.\d{1,9}",
}


def _regex(pattern: str) -> re.Pattern[str]:
    named = re.sub(r"<(\w+)>", lambda m: f"(?P<{m.group(1)}>{_FIELDS[m.group(1)]})", pattern)
    return re.compile(named + r"\Z")


_REGEXES = {route.name: _regex(route.pattern) for route in ROUTES}
_BY_NAME = {route.name: route for route in ROUTES}
VALID_ID = re.compile(_ID + r"\Z")


class Address(Struct, frozen=True):
    """A topic taken apart; fields that the route does not have are empty (chunk: -1)."""

    route: Route
    board: str = ""
    client: str = ""
    order: str = ""
    version: str = ""
    chunk: int = -1


class Topics(Struct, frozen=True):
    """The topics of one fleet."""

    fleet: str

    @property
    def root(self) -> str:
        """Prefix of all topics of the fleet."""
        return f"{ROOT}/{self.fleet}"

    def of(self, name: str, **fields: str | int) -> str:
        """The topic of a route with its fields filled in. Raises KeyError for a missing field,
        ValueError for one that would not parse back."""
        pattern = route(name).pattern
        topic = re.sub(r"<(\w+)>", lambda m: str(fields[m.group(1)]), pattern)
        if not _REGEXES[name].match(topic):
            raise ValueError(f"{topic!r} is no topic of the form {pattern!r}")
        return f"{self.root}/{topic}"

    def filter(self, name: str, **fields: str | int) -> str:
        """The subscription filter of a route: fields not given become +."""
        rest = re.sub(r"<(\w+)>", lambda m: str(fields.get(m.group(1), "+")), route(name).pattern)
        return f"{self.root}/{rest}"

    def parse(self, topic: str) -> Address | None:
        """The parts of a topic of this fleet, or None where it is none of ours."""
        prefix = self.root + "/"
        if not topic.startswith(prefix):
            return None
        rest = topic[len(prefix) :]
        for name, regex in _REGEXES.items():
            found = regex.match(rest)
            if found:
                fields = found.groupdict()
                chunk = int(fields.pop("chunk", -1))
                return Address(_BY_NAME[name], chunk=chunk, **fields)
        return None


def route(name: str) -> Route:
    """The table's row of that name."""
    return _BY_NAME[name]


def order_id(run: str, round_number: int, board: str, attempt: int) -> str:
    """run.round.board.attempt"""
    return f"{run}.{round_number}.{board}.{attempt}"


def version_id(run: str, merges: int) -> str:
    """run.merges"""
    return f"{run}.{merges}"
