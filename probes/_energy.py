"""PURE. What the meter answers: an instant that was read, the energy between two of them, the state now."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from probes import Basis, Status


class MarkError(ValueError):
    """An instant that the meter cannot place: before its history, or after now."""


@dataclass(frozen=True, slots=True)
class Level:
    """One channel's sums since the meter started. A window is the difference of two: windows add up."""

    known_joules: float
    filled_joules: float  # assumed across gaps, at the watts beside the gap
    covered_seconds: float
    slept_seconds: float  # of suspends, which CLOCK_MONOTONIC leaves out: never measured on the board
    sampling_variance: float  # of the trapezoid, in joules squared
    edge_seconds: float  # how far the reading may lie from the instant asked for
    flags: Mapping[str, int] = field(default_factory=dict)  # how often each thing has happened so far


@dataclass(frozen=True, slots=True)
class Mark:
    """An instant of CLOCK_MONOTONIC and what every channel stood at."""

    monotonic_seconds: float
    boottime_seconds: float
    levels: Mapping[str, Level]
    headline: tuple[str, ...]  # the channels whose sum was the headline then; empty when nothing measures
    cpu_seconds: float  # the meter's own cost so far


@dataclass(frozen=True, slots=True)
class Energy:
    """Joules of one window. `joules` is None, with the reason, when they are not known; never 0 for that."""

    joules: float | None
    reason: str  # why None; else how the figure came about
    seconds: float
    scope: str | None  # `package+dram+gpu` where a headline is a sum
    basis: Basis | None
    channel_id: str | None  # joined by `+` where a headline is a sum
    uncertainty_joules: float | None  # standard uncertainty, k = 1
    resolution_joules: float | None
    coverage: float  # measured part of the window, 0 to 1
    flags: tuple[str, ...]
    partial_joules: float | None  # what the measured part of the window used
    above_idle_joules: float | None  # joules less the idle baseline; None without a baseline that still holds
    interval_seconds: float | None  # between two readings: a window under 20 of them is coarse
    components: Mapping[str, float | None] = field(default_factory=dict)  # other channels, never to be added
    meter_id: str | None = None  # equal on two boards: the same joules
    meter_cpu_seconds: float = 0.0  # what the meter itself used of the processor in the window


@dataclass(frozen=True, slots=True)
class LiveChannel:
    """One channel now; `watts` is a mean over about a second, None without readings."""

    channel_id: str
    scope: str
    basis: Basis
    status: Status
    reason: str
    watts: float | None
    joules: float | None  # since the meter started, known part
    headline: bool


@dataclass(frozen=True, slots=True)
class Live:
    """The meter now, for telemetry; costs no reading."""

    monotonic_seconds: float
    channels: tuple[LiveChannel, ...]
    headline_channel_id: str | None
    scope: str | None
    basis: Basis | None
    watts: float | None  # of the headline
    joules: float | None  # of the headline, since the meter started
    reason: str  # why this headline, or why none
    cpu_seconds: float  # the sampler's own cost so far
    period_seconds: float
