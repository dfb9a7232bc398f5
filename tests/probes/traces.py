"""Random traces of a counter with all that happens to one, and what must hold between its readings.

The quick suite draws some thousands; benchmarks/counters.py draws a million.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import pairwise
from random import Random
from typing import NamedTuple

from probes import Channel
from probes._counter import SLACK_SECONDS, step

RANGES = (262143.32885, 65532.610987, 65712.999613, 4294967296.0, 1000.0)
UNITS = (61.035e-6, 15.258e-6, 1.0, 0.001)


class Reading(NamedTuple):
    """What the counter shows, and what really happened since the reading before."""

    seconds: float
    shown: float
    true_joules: float
    reset: bool
    suspended: bool


@dataclass
class Tally:
    """How often each kind of step was met, so that a run can show that it tried them."""

    traces: int = 0
    steps: int = 0
    known: int = 0
    unknown: int = 0
    wraps: int = 0
    resets: int = 0
    gaps: int = 0
    suspends: int = 0
    back_steps: int = 0


def draw(random: Random) -> tuple[Channel, list[Reading]]:
    """One counter and six readings of it."""
    has_range = random.random() < 0.8
    span = random.choice(RANGES)
    unit = random.choice(UNITS)
    max_watts = random.choice((150.0, 500.0, 2000.0))
    back_step = 0.0 if has_range else random.choice((0.0, 3600.0))
    channel = Channel(
        id="counter",
        kind="counter",
        scope="package",
        basis="measured",
        relative_uncertainty=0.05,
        source="drawn",
        resolution_joules=unit,
        range_joules=span if has_range else None,
        max_watts=max_watts,
        back_step_joules=back_step,
    )
    total = random.uniform(0, 3 * span)
    readings = [Reading(0.0, _shown(total, span, unit, has_range), 0.0, False, False)]
    for _ in range(5):
        event = random.random()
        seconds = random.choice((0.0005, 0.1, 1.0, 30.0)) * random.uniform(0.5, 1.5)
        reset = suspended = False
        if event < 0.1:  # nobody read for long
            seconds *= random.choice((10.0, 300.0, 5000.0))
        joules = seconds * max_watts * random.choice((0.02, 0.2, random.random()))
        total += joules
        if event > 0.9:
            reset, total = True, random.uniform(0, 50.0)
        elif event > 0.82:
            suspended = True
            total += random.uniform(0, span)
        elif event > 0.75 and back_step:  # what was not saved before a restart
            lost = random.uniform(0, back_step)
            total, joules = max(total - lost, 0.0), joules - lost
        readings.append(Reading(seconds, _shown(total, span, unit, has_range), joules, reset, suspended))
    return channel, readings


def check(channel: Channel, readings: list[Reading], tally: Tally) -> str:
    """The first thing that is wrong with our reading of a trace; empty where all is right."""
    tally.traces += 1
    assert channel.max_watts is not None
    unit = channel.resolution_joules or 0.0
    for before, after in pairwise(readings):
        found = step(channel, before.shown, after.shown, after.seconds, suspended=after.suspended)
        tally.steps += 1
        tally.wraps += found.kind == "wrap"
        tally.resets += found.kind == "reset"
        tally.gaps += found.kind == "gap"
        tally.suspends += found.kind == "suspend"
        tally.back_steps += found.kind == "back-step"
        long = channel.range_joules is not None and after.seconds > channel.range_joules / channel.max_watts
        if found.joules is None:
            tally.unknown += 1
            if not (after.reset or after.suspended or long or after.true_joules < 0):
                # Without a range a fall is unknowable; nothing else may be given up.
                if channel.range_joules is None and after.shown < before.shown:
                    continue
                return f"gave up a plain step: {found}, {before}, {after}, {channel}"
            continue
        tally.known += 1
        if found.joules < 0:
            return f"negative: {found}, {before}, {after}, {channel}"
        if found.joules > channel.max_watts * (after.seconds + SLACK_SECONDS) + unit + 1e-6:
            return f"above plausible: {found}, {before}, {after}, {channel}"
        if after.suspended:
            return f"a sleep was counted: {found}, {before}, {after}"
        if long:
            return f"may have wrapped unseen: {found}, {before}, {after}, {channel}"
        if not after.reset and found.kind != "back-step":
            apart = abs(found.joules - after.true_joules)
            if after.true_joules >= 0 and apart > 2 * unit + 1e-5:
                return f"wrong by {apart}: {found}, {before}, {after}, {channel}"
    return ""


def run(traces: int, seed: int) -> Tally:
    """Draw and check; raises AssertionError with the first trace that is misread."""
    random = Random(seed)
    tally = Tally()
    for _ in range(traces):
        channel, readings = draw(random)
        wrong = check(channel, readings, tally)
        assert not wrong, wrong
    return tally


def _shown(total: float, span: float, unit: float, has_range: bool) -> float:
    """The counter steps by its unit and, with a range, starts again above it."""
    value = total % span if has_range else total
    return value // unit * unit
