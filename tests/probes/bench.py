"""A meter over scripted channels in virtual time, and the channels that its tests share."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

from probes import Context
from probes._files import Trouble
from probes._outside import real_context
from probes._virtual import VirtualClock
from probes.meter import Energy, Mark, Meter, Options
from tests.probes.scripted import Scripted, Value, channel


def context(clock: VirtualClock, **options: dict[str, object]) -> Context:
    return replace(real_context(Path("/nowhere"), options), clock=clock)


class Bench:
    """A meter over scripted channels, sampled each `period` seconds of virtual time."""

    def __init__(self, *probes: Scripted, period: float = 0.1, options: Options | None = None) -> None:
        self.clock = VirtualClock()
        self.period = period
        self.meter = Meter(context(self.clock), list(probes), options)
        self.meter.open()

    def run(self, seconds: float) -> Mark:
        for _ in range(round(seconds / self.period)):
            self.clock.advance(self.period)
            self.meter.sample()
        return self.meter.mark()

    def window(self, start: Mark, end: Mark) -> Energy:
        return self.meter.window(start, end)


def steady(watts: float) -> Value:
    return lambda now: watts


def counting(watts: float, wrap: float = math.inf) -> Value:
    return lambda now: (5.0 + watts * now) % wrap


def down(value: Value, start: float, end: float, status: str = "invalid") -> Value:
    """The same, not readable in [start, end)."""
    trouble = Trouble("denied" if status == "denied" else "invalid", "EIO")
    return lambda now: trouble if start <= now < end else value(now)


VDD_IN = channel("ina/VDD_IN", scope="module")


PACKAGE = channel("cpu/package-0", "counter", "package", range_joules=65532.6, max_watts=500.0)


DRAM = channel("cpu/package-0/dram", "counter", "dram", range_joules=65532.6, max_watts=200.0)


WALL = channel("plug/wall", scope="wall", counts_suspend=True)
