"""Tells everybody the fleet's state on one retained topic, and what the broker says there when we are gone.

What the state is comes from outside; here it becomes bytes, not too often.
"""

import threading
from collections.abc import Callable
from typing import Final

from msgspec import structs

from edged.link import Announcement, Link, LinkState
from edged.messages import FleetState, encode
from edged.topics import Topics

SHORTEST_GAP_SECONDS: Final = 0.2
LONGEST_GAP_SECONDS: Final = 10.0


class Herald:
    """`payload` is called by the link's thread, everything else by the coordinator's loop."""

    def __init__(self, topics: Topics, first: FleetState) -> None:
        self._topic = topics.of("fleet")
        self._latest = first
        self._words: dict[tuple[int, LinkState], bytes] = {}
        self._lock = threading.Lock()
        self._changed = True
        self._told_seconds = float("-inf")

    @property
    def announcement(self) -> Announcement:
        """For the coordinator's link: its birth, will and farewell."""
        return Announcement(self._topic, self.payload)

    def payload(self, connection: int, link: LinkState) -> bytes:
        """The state as it was when this connection was made, with the link's; the same bytes each time."""
        with self._lock:
            key = (connection, link)
            if link == "closed" or key not in self._words:
                # Told apart by `conn`: a link takes the words of its older connections for late ones.
                said = structs.replace(self._latest, link=link, waiting=(), conn=connection)
                self._words[key] = encode(said)
            return self._words[key]

    def begin(self, state: FleetState) -> None:
        """What the first connection announces; before the link is started."""
        self._latest = state

    def change(self) -> None:
        """The state is another one now."""
        self._changed = True

    def due(self) -> float:
        """When it is to be told next."""
        return self._told_seconds + (SHORTEST_GAP_SECONDS if self._changed else LONGEST_GAP_SECONDS)

    def tell(self, state: Callable[[], FleetState], link: Link, now: float) -> FleetState | None:
        """Publish the state if that is due; answers what was told."""
        if now < self.due():
            return None
        self._latest, self._changed, self._told_seconds = state(), False, now
        link.publish(self._topic, encode(self._latest), qos=1, retain=True, latest=True)
        return self._latest
