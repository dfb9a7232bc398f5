"""PURE. Two dies of one socket may show one counter twice: told from how both move (CodeCarbon's test)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

from probes import Channel, Sample

LEAST_JOULES = 10.0  # both must have moved this far
SAME_JOULES = 1.0
AGREEMENTS = 2  # in a row


class _Watch(NamedTuple):
    own: float
    other: float
    agreed: int


class Mirrors:
    """Watches counters that say whom they may mirror; `doubles` are found out, `undecided` not yet."""

    def __init__(self) -> None:
        self._watched: dict[str, _Watch] = {}
        self._partner: dict[str, str] = {}
        self.doubles: set[str] = set()

    @property
    def undecided(self) -> set[str]:
        return set(self._partner)

    def watch(self, channels: Iterable[Channel]) -> None:
        for channel in channels:
            if channel.may_mirror is not None and channel.id not in self.doubles:
                self._partner[channel.id] = channel.may_mirror

    def see(self, samples: Sequence[Sample]) -> None:
        """Take the readings of one pass; only readings of one pass are compared."""
        values = {one.channel_id: one.value for one in samples if one.value is not None}
        for name, partner in list(self._partner.items()):
            own, other = values.get(name), values.get(partner)
            if own is None or other is None:
                continue
            before = self._watched.get(name)
            if before is None or own < before.own or other < before.other:
                self._watched[name] = _Watch(own, other, 0)
                continue
            moved, moved_other = own - before.own, other - before.other
            if min(moved, moved_other) < LEAST_JOULES and abs(moved - moved_other) <= LEAST_JOULES:
                continue
            if abs(moved - moved_other) > SAME_JOULES:
                del self._partner[name]
                continue
            self._watched[name] = _Watch(own, other, before.agreed + 1)
            if before.agreed + 1 >= AGREEMENTS:
                del self._partner[name]
                self.doubles.add(name)
