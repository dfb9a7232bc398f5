"""What the board draws while idle: measured in a stretch known to be idle, with its conditions."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import Protocol

from probes import Context
from probes._energy import Level, Mark, MarkError
from probes._files import Trouble, entries, text

IDLE_SECONDS = 30.0  # shorter stretches say nothing
MEAN_SECONDS = 5.0
LAPSE_SECONDS = 86400.0


class Levels(Protocol):
    """A channel's sums over time."""

    def level(self, at: float) -> Level | None: ...


@dataclass(frozen=True, slots=True)
class Baseline:
    """Idle watts of the headline; holds for a day and under the same governor and supply."""

    watts: float
    channel_ids: tuple[str, ...]
    measured_at_seconds: float  # CLOCK_MONOTONIC
    conditions: tuple[str, ...]

    def watts_for(
        self, channel_ids: Sequence[str], now: float, conditions_now: tuple[str, ...]
    ) -> float | None:
        holds = now - self.measured_at_seconds <= LAPSE_SECONDS and self.conditions == conditions_now
        return self.watts if holds and self.channel_ids == tuple(channel_ids) else None


def baseline(start: Mark, end: Mark, series: Sequence[Levels], under: tuple[str, ...]) -> Baseline:
    """The median of 5 s means: a short wake-up does not count. Raises MarkError where it cannot serve."""
    seconds = end.monotonic_seconds - start.monotonic_seconds
    if seconds < IDLE_SECONDS:
        raise MarkError(
            f"{seconds:.1f} s are too short for an idle baseline: {IDLE_SECONDS:.0f} s are needed"
        )
    if not series:
        raise MarkError("no idle baseline: nothing measures here")
    means = []
    for place in range(int(seconds // MEAN_SECONDS)):
        edges = [start.monotonic_seconds + MEAN_SECONDS * k for k in (place, place + 1)]
        total = 0.0
        for one in series:
            first, last = one.level(edges[0]), one.level(edges[1])
            if first is None or last is None:
                raise MarkError("no idle baseline: a channel was not read in that stretch")
            if last.covered_seconds - first.covered_seconds < 0.95 * MEAN_SECONDS:
                break
            total += last.known_joules - first.known_joules
        else:
            means.append(total / MEAN_SECONDS)
    if len(means) < IDLE_SECONDS / MEAN_SECONDS - 1:
        raise MarkError("no idle baseline: too little of that stretch was measured")
    return Baseline(median(means), start.headline, end.monotonic_seconds, under)


def conditions(context: Context) -> tuple[str, ...]:
    """The governor and the supplies that are plugged in: a change ends a baseline."""
    governor = text(context, context.path("/sys/devices/system/cpu/cpu0/cpufreq/scaling_governor"))
    found = [] if isinstance(governor, Trouble) else [f"governor {governor}"]
    supplies = context.path("/sys/class/power_supply")
    for name in entries(supplies):
        if text(context, supplies / name / "online") == "1":
            found.append(f"supply {name}")
    return tuple(found)
