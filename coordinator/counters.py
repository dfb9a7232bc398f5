"""How often something odd happened with which board, and the last time in words; logged without flooding.

It survives a restart with the store. What is odd is said by whoever notes it.
"""

import logging
from collections.abc import Mapping
from typing import Final

from coordinator.events import Note
from coordinator.store import Count

LOG = logging.getLogger(__name__)
LOG_AGAIN_SECONDS: Final = 60.0
MOST: Final = 20_000
"""Beyond so many pairs of board and counter everything goes to board "-": topics can be invented."""


def counted(counters: Mapping[str, int]) -> str:
    """Counters as people read them: `stray reports 3, old births 1`."""
    return ", ".join(f"{name.replace('_', ' ')} {count:,}" for name, count in counters.items())


class Counters:
    """Counts by (board, counter); `board` "-" is the coordinator itself or nobody in particular."""

    def __init__(self, kept: Mapping[str, Mapping[str, tuple[int, str]]] | None = None) -> None:
        self._counts: dict[tuple[str, str], tuple[int, str]] = {
            (board, counter): value
            for board, counters in (kept or {}).items()
            for counter, value in counters.items()
        }
        self._names: dict[str, set[str]] = {}
        for board, counter in self._counts:
            self._names.setdefault(board, set()).add(counter)
        self._logged: dict[tuple[str, str], float] = {}
        self._changed: set[tuple[str, str]] = set()

    def note(self, note: Note, now: float) -> None:
        """Count it; the first one and then one a minute is logged."""
        key = (note.board, note.counter)
        if key not in self._counts and len(self._counts) >= MOST:
            key = ("-", note.counter)
        text = " ".join(note.text.split())[:500]
        self._counts[key] = (self._counts.get(key, (0, ""))[0] + 1, text)
        self._names.setdefault(key[0], set()).add(key[1])
        self._changed.add(key)
        if now - self._logged.get(key, float("-inf")) >= LOG_AGAIN_SECONDS:
            self._logged[key] = now
            who = "the coordinator" if note.board == "-" else note.board
            LOG.warning("%s: %s (%s)", who, text, counted({note.counter: self._counts[key][0]}))

    def of(self, board: str) -> dict[str, tuple[int, str]]:
        """This board's counters with the last text."""
        return {counter: self._counts[board, counter] for counter in sorted(self._names.get(board, ()))}

    def boards(self) -> list[str]:
        """Boards with a counter."""
        return sorted(self._names)

    def totals(self) -> dict[str, int]:
        """By counter, over all boards."""
        found: dict[str, int] = {}
        for (_, counter), (count, _) in self._counts.items():
            found[counter] = found.get(counter, 0) + count
        return found

    def changed(self) -> list[Count]:
        """What changed since `saved`."""
        return [Count(*key, *self._counts[key]) for key in sorted(self._changed)]

    def saved(self) -> None:
        """What `changed` gave is in the store."""
        self._changed.clear()

    def forget(self, board: str) -> None:
        """Start anew for this board."""
        for key in [key for key in self._counts if key[0] == board]:
            self._counts[key] = (0, "")
            self._changed.add(key)
