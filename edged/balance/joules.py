"""Joules of this rank's machine while it trains, by the probes: how many, on what basis, or why unknown.

A sensor sees the whole machine, so where several ranks share one, the first of them has its joules.
"""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

from msgspec import Struct

if TYPE_CHECKING:
    from probes.meter import Meter

WORDS = 160


class Reading(Struct, frozen=True):
    """`joules` is None where it is not known, and `reason` says why; else `basis` and `scope` are the meter's
    (measured, calibrated, estimated or emulated, and what the sensor covers)."""

    joules: float | None
    basis: str = ""
    scope: str = ""
    reason: str = ""

    def __str__(self) -> str:
        if self.joules is None:
            return f"unknown: {self.reason}"
        return f"{self.joules:.1f} ({self.basis}, {self.scope})"


class Joules:
    """Since it was made. With `meter` that one is read and left running; else this machine's is opened."""

    def __init__(self, meter: Meter | None = None) -> None:
        self._own = meter is None
        self._meter: Meter | None = meter
        self._elsewhere = self._own and int(os.environ.get("LOCAL_RANK") or 0) > 0
        if self._elsewhere:
            return
        if self._meter is None:
            from probes._outside import real_context
            from probes.meter import Meter as OwnMeter

            self._meter = OwnMeter(real_context())
            self._meter.open()
            self._meter.start()
        self._start = self._meter.mark()

    def read(self) -> Reading:
        """So far. Raises nothing: an unusable window is a reading without joules."""
        from probes._energy import MarkError

        if self._elsewhere or self._meter is None:
            return Reading(None, reason="they are with the machine's first rank: one sensor sees them all")
        try:
            found = self._meter.window(self._start, self._meter.mark())
        except MarkError as error:
            return Reading(None, reason=str(error)[:WORDS])
        if found.joules is None:
            return Reading(None, reason=found.reason[:WORDS])
        return Reading(found.joules, str(found.basis), str(found.scope))

    def close(self) -> None:
        """End the threads of a meter that was opened here."""
        if self._own and self._meter is not None:
            self._meter.close()
            self._meter = None
