"""Gives the meter the watts of doing nothing, out of stretches in which the board has no order.

It measures nothing itself; a stretch that the meter cannot use is let go.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Protocol

from probes._baseline import IDLE_SECONDS, Baseline
from probes._energy import Mark, MarkError


class Baselining(Protocol):
    """What is asked of a meter (`probes.meter.Meter`)."""

    def mark(self, at_seconds: float | None = None) -> Mark: ...

    def set_idle(self, start: Mark, end: Mark) -> Baseline: ...


class Idle:
    """Stretches of 30 s follow one another while nothing is ordered: the newest is the baseline."""

    def __init__(self, meter: Baselining) -> None:
        self._meter = meter
        self._start: Mark | None = None

    def look(self, at_seconds: float, *, idle: bool) -> None:
        """Say about once a second whether the board is idle; anything else ends the stretch."""
        if not idle:
            self._start = None
        elif self._start is None:
            self._start = self._meter.mark()
        elif at_seconds - self._start.monotonic_seconds >= IDLE_SECONDS:
            start, self._start = self._start, self._meter.mark()
            with suppress(MarkError):  # nothing measures, or readings are missing: the older baseline stays
                self._meter.set_idle(start, self._start)
