"""What a virtual board is: speed, watts, and what goes wrong with it. Its joules are simulated ones.

Values only; `world` moves them through time.
"""

import random
from typing import Annotated

from msgspec import Meta, Struct

from edged.fields import Id

Positive = Annotated[float, Meta(gt=0)]
Fraction = Annotated[float, Meta(ge=0, lt=1)]
Nonnegative = Annotated[float, Meta(ge=0)]


class Throttling(Struct, frozen=True, forbid_unknown_fields=True):
    """From that second on the board runs at `speed_factor` of its speed."""

    from_seconds: Nonnegative
    speed_factor: Positive


class Dropout(Struct, frozen=True, forbid_unknown_fields=True):
    """The board's process dies at that second and is back after a while."""

    at_seconds: Nonnegative
    for_seconds: Positive


class VirtualBoard(Struct, frozen=True, forbid_unknown_fields=True):
    """One board. `noise` is the relative standard deviation of time and, unless `watts_noise` is given, of
    power, each drawn anew a round. `communication_watts` are those of waiting unless given."""

    id: Id
    samples_per_second: Positive
    active_watts: Nonnegative
    waiting_watts: Nonnegative
    fixed_seconds: Nonnegative = 0.0
    download_seconds: Nonnegative = 0.0
    upload_seconds: Nonnegative = 0.0
    communication_watts: Nonnegative | None = None
    noise: Fraction = 0.0
    watts_noise: Fraction | None = None
    throttlings: tuple[Throttling, ...] = ()
    dropouts: tuple[Dropout, ...] = ()
    metered: bool = True
    cores: Positive | None = None
    silo: Id | None = None
    sourced: dict[str, float | str] = {}
    """Published figures that the ones above were derived from; only shown."""

    def speed(self, at_seconds: float) -> float:
        """Samples a second at that moment."""
        factor = 1.0
        for throttling in self.throttlings:
            if at_seconds >= throttling.from_seconds:
                factor = throttling.speed_factor
        return self.samples_per_second * factor

    def draw(self, rng: random.Random, at_seconds: float, samples: int) -> tuple[float, float]:
        """Seconds of computing so many samples from that moment on, and the watts meanwhile."""
        seconds = self.fixed_seconds + samples / self.speed(at_seconds)
        power_noise = self.noise if self.watts_noise is None else self.watts_noise
        return _noisy(seconds, self.noise, rng), _noisy(self.active_watts, power_noise, rng)

    def joules(self, watts: float, seconds: float) -> float | None:
        """Simulated joules; None for a board without a meter."""
        return watts * seconds if self.metered else None

    @property
    def link_watts(self) -> float:
        """While it fetches and uploads."""
        return self.waiting_watts if self.communication_watts is None else self.communication_watts


def _noisy(value: float, noise: float, rng: random.Random) -> float:
    return value * max(0.1, rng.gauss(1.0, noise)) if noise else value
