"""PURE. The sums of one channel over time: joules known, joules assumed across gaps, seconds covered.

Sums only grow, and an instant between two readings is interpolated, so windows that share an edge add up.
"""

from __future__ import annotations

from bisect import bisect_right
from collections import deque
from typing import NamedTuple

from probes._energy import Level, MarkError


class Node(NamedTuple):
    """Sums at one reading. `watts` is the reading of a power channel, None for a counter."""

    at: float
    known: float
    filled: float
    covered: float
    slept: float
    variance: float
    watts: float | None


class Track:
    """A bounded history of nodes and of what went wrong between them."""

    def __init__(self, history_seconds: float) -> None:
        self._history_seconds = history_seconds
        self._forgotten = False
        self._counts: dict[str, int] = {}
        self._events: deque[tuple[float, str]] = deque()
        self.nodes: deque[Node] = deque()

    def append(self, node: Node) -> None:
        self.nodes.append(node)
        horizon = node.at - self._history_seconds
        # One node at or before the horizon stays: instants just after it are interpolated from it.
        while len(self.nodes) > 2 and self.nodes[1].at <= horizon:
            self.nodes.popleft()
            self._forgotten = True
        while self._events and self._events[0][0] < horizon:
            self._events.popleft()

    def advance(
        self,
        at: float,
        *,
        known: float = 0.0,
        filled: float = 0.0,
        covered: float = 0.0,
        slept: float = 0.0,
        variance: float = 0.0,
        watts: float | None = None,
    ) -> None:
        """Add what happened since the last node; the first call only says where the sums start."""
        if not self.nodes:
            self.append(Node(at, 0.0, 0.0, 0.0, 0.0, 0.0, watts))
            return
        last = self.nodes[-1]
        self.append(
            Node(
                at,
                last.known + known,
                last.filled + filled,
                last.covered + covered,
                last.slept + slept,
                last.variance + variance,
                watts,
            )
        )

    def flag(self, at: float, name: str) -> None:
        self._events.append((at, name))
        self._counts[name] = self._counts.get(name, 0) + 1

    def recent_watts(self, seconds: float = 1.0) -> float | None:
        """Mean watts over about the last `seconds` of readings; None before there are two, apart."""
        if len(self.nodes) < 2:
            return None
        last = self.nodes[-1]
        first = self.nodes[-2]
        for index in range(2, len(self.nodes) + 1):
            first = self.nodes[-index]
            if last.at - first.at >= seconds:
                break
        if last.at - first.at < 0.05:  # two readings this close say more of their stamps than of the board
            return None
        return (last.known + last.filled - first.known - first.filled) / (last.at - first.at)

    def level(self, at: float, seen_at: float | None = None) -> Level | None:
        """The sums at an instant; None where nothing was ever read.

        After the last node a power channel is assumed to hold its watts (as filled, not as known), and a
        counter that was seen unchanged at `seen_at` did not move until then. Raises MarkError before the
        history.
        """
        if not self.nodes:
            return None
        first, last = self.nodes[0], self.nodes[-1]
        if at < first.at:
            if self._forgotten:
                raise MarkError(
                    f"the instant lies {last.at - at:.1f} s before the last reading, and readings older than "
                    f"{self._history_seconds:.0f} s are gone: mark sooner, or raise history_seconds"
                )
            return self._level(first, at, first.at - at)
        if at >= last.at:
            beyond = at - last.at
            seen = min(max((seen_at or last.at) - last.at, 0.0), beyond)
            held = 0.0 if last.watts is None else last.watts * beyond
            moved = Node(
                at, last.known, last.filled + held, last.covered + seen, last.slept, last.variance, last.watts
            )
            return self._level(moved, at, beyond - seen)
        index = bisect_right(self.nodes, at, key=lambda node: node.at)
        return self._level(*self._between(self.nodes[index - 1], self.nodes[index], at))

    @staticmethod
    def _between(before: Node, after: Node, at: float) -> tuple[Node, float, float]:
        span = after.at - before.at
        part = (at - before.at) / span
        share = part
        if before.watts is not None and after.watts is not None and before.watts + after.watts > 0:
            # Power runs straight from one reading to the next, so its integral is a parabola.
            share = (
                part * (2 * before.watts + (after.watts - before.watts) * part) / (before.watts + after.watts)
            )
        node = Node(
            at,
            before.known + (after.known - before.known) * share,
            before.filled + (after.filled - before.filled) * share,
            before.covered + (after.covered - before.covered) * part,
            before.slept + (after.slept - before.slept) * part,
            before.variance + (after.variance - before.variance) * part,
            None,
        )
        return node, at, min(at - before.at, after.at - at)

    def _level(self, node: Node, at: float, edge_seconds: float) -> Level:
        counts = dict(self._counts)
        for when, name in reversed(self._events):
            if when <= at:
                break
            counts[name] -= 1
        return Level(
            node.known,
            node.filled,
            node.covered,
            node.slept,
            node.variance,
            edge_seconds,
            {name: count for name, count in counts.items() if count},
        )
