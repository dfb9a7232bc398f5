"""What the board draws while it only waits, out of long enough stretches: the split rule needs it.

A stretch that the meter cannot use is let go; what was known stays (ARCHITECTURE 7).
"""

from __future__ import annotations

from typing import Protocol

from msgspec import Struct

from probes._energy import Energy, Mark, MarkError

WAITING_SECONDS = 10.0
EMULATED_SECONDS = 2.0
"""An emulated meter has no noise to average away."""


class Windows(Protocol):
    """What is asked of a meter (`probes.meter.Meter`)."""

    def mark(self, at_seconds: float | None = None) -> Mark: ...

    def window(self, start: Mark, end: Mark) -> Energy: ...


class Watts(Struct, frozen=True):
    """Mean of one stretch and its uncertainty, None where the meter does not know it; of that scope alone."""

    watts: float
    uncertainty_watts: float | None = None
    scope: str | None = None


class Waiting:
    """The newest stretch holds. `known` is also True where no sensor can ever tell."""

    def __init__(self, meter: Windows, seconds: float = WAITING_SECONDS) -> None:
        self._meter = meter
        self._seconds = seconds
        self._start: Mark | None = None
        self.watts: Watts | None = None
        self.known = False

    def look(self, at_seconds: float, *, waiting: bool) -> None:
        """Say about once a second whether the board waits; anything else ends the stretch."""
        if not waiting:
            self._start = None
        elif self._start is None:
            self._start = self._meter.mark()
        elif at_seconds - self._start.monotonic_seconds >= self._seconds:
            start, self._start = self._start, self._meter.mark()
            self._take(start, self._start)

    def _take(self, start: Mark, end: Mark) -> None:
        try:
            found = self._meter.window(start, end)
        except MarkError:
            return  # readings are missing: the next stretch may have them
        self.known = True
        seconds = end.monotonic_seconds - start.monotonic_seconds
        if found.joules is not None and seconds > 0:
            spread = found.uncertainty_joules
            uncertainty = None if spread is None else spread / seconds
            self.watts = Watts(found.joules / seconds, uncertainty, found.scope)
