"""What has come from the broker and is not taken by the owner yet: how much, how urgent, whether to read on.

It belongs to the link's thread. What was sent at most once, as telemetry is, may wait for the end of a burst.
"""

from collections import deque
from typing import Final

from edged.link import Events, Message

MOST_UNREAD_EVENTS: Final = 256
MOST_UNREAD_BYTES: Final = 2 * 1024 * 1024
"""While the owner is this far behind, nothing more is read from the broker."""
MOST_AT_ONCE: Final = 64
"""Messages read between two looks at what is to be sent."""


class Inflow:
    """A burst: `begin`, then `put` for each message while there is `more`, then `end`."""

    def __init__(self, events: Events) -> None:
        self._events = events
        self._sizes: deque[int] = deque()
        self._bytes = 0
        self._held: list[Message] = []
        self._came = self._seen = self._urgent = 0

    def begin(self) -> None:
        """A new burst."""
        self._came = self._seen = self._urgent = 0

    def put(self, message: Message, qos: int) -> None:
        """One message more; for the owner's queue at once, or with the rest of its burst if all can wait."""
        self._came += 1
        self._held.append(message)
        if qos:
            self._urgent += 1
            self.end()

    def more(self) -> bool:
        """Whether something came since the last call, and the owner takes another one."""
        came, self._seen = self._came - self._seen, self._came
        return came > 0 and self._came < MOST_AT_ONCE and not self.owner_is_behind()

    def end(self) -> None:
        """Into the owner's queue: together, or its thread would wake for each one and fight for the lock."""
        for message in self._held:
            self._sizes.append(len(message.payload))
            self._bytes += len(message.payload)
            self._events.put(message)
        self._held.clear()

    @property
    def patient(self) -> bool:
        """Whether something came in this burst, and all of it can wait."""
        return self._came > 0 and not self._urgent

    def owner_is_behind(self) -> bool:
        """The last messages, as many as there are unread events, are at least the unread ones."""
        unread = self._events.qsize()
        while len(self._sizes) > unread:
            self._bytes -= self._sizes.popleft()
        return unread >= MOST_UNREAD_EVENTS or self._bytes >= MOST_UNREAD_BYTES
