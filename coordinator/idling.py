"""What a board draws while it has no order, out of its telemetry: which stands for waiting. Pure.

Joules are differences of the board's own counters, seconds those between the arrival of two messages.
"""

from msgspec import Struct

from coordinator.controller.memories import WAITING_HORIZON_SECONDS
from edged.messages import Power

ENOUGH_SECONDS = 10.0
"""ARCHITECTURE 7: an idle window of at least that, before round 1."""
LONGEST_GAP_SECONDS = 5.0
"""Telemetry comes once a second; over a longer gap nobody knows what the board did."""


class Idling(Struct):
    """`hear` each power message of the board."""

    seconds: float = 0.0
    joules: float = 0.0
    basis: str = ""
    headline: str = ""
    """Whose joules are counted: another sensor's counter stands elsewhere, and may cover another scope."""
    boot: str = ""
    heard_seconds: float = 0.0
    counted_joules: float | None = None
    """At the last message without an order; None where that was another one."""

    @property
    def watts(self) -> float | None:
        """None until it was idle for long enough, with a meter."""
        return self.joules / self.seconds if self.seconds >= ENOUGH_SECONDS and self.joules > 0 else None

    def hear(self, power: Power, now: float) -> None:
        """One message more."""
        counted = _headline(power) if power.order is None else None
        passed = now - self.heard_seconds
        if (power.basis, power.headline) != (self.basis, self.headline):
            self.seconds = self.joules = 0.0
        elif power.boot == self.boot and counted is not None and self.counted_joules is not None:
            used = counted - self.counted_joules
            if 0 < passed <= LONGEST_GAP_SECONDS and used >= 0:
                self.seconds, self.joules = self.seconds + passed, self.joules + used
        if self.seconds > WAITING_HORIZON_SECONDS:
            keep = WAITING_HORIZON_SECONDS / self.seconds
            self.seconds, self.joules = keep * self.seconds, keep * self.joules
        self.basis, self.headline, self.boot = power.basis, power.headline, power.boot
        self.heard_seconds, self.counted_joules = now, counted


def _headline(power: Power) -> float | None:
    """Joules of the headline, which may be a sum of channels."""
    found = [power.joules.get(channel) for channel in power.headline.split("+")]
    known = [joules for joules in found if joules is not None]
    return sum(known) if len(known) == len(found) else None
