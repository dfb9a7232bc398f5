"""PURE. Sampled watts as joules: the trapezoid on CLOCK_MONOTONIC; gaps and sleeps are not bridged."""

from __future__ import annotations

import math

from probes import Channel, Sample, Status
from probes._counter import SUSPEND_SECONDS, delayed
from probes._energy import Level
from probes._track import Track

GAP_PERIODS = (
    3.0  # without a valid reading for longer than this many periods, the time between is not measured
)


class PowerSeries:
    """Readings of one power channel, in order of time, as sums."""

    def __init__(self, channel: Channel, history_seconds: float) -> None:
        self.channel = channel
        self.track = Track(history_seconds)
        self.status: Status = "absent"
        self.reason = "not read yet"
        self._last: Sample | None = None
        self._dead = ""
        self.changed_at = 0.0  # when the value last was another

    def add(self, sample: Sample, period_seconds: float) -> None:
        """Take one reading; `period_seconds` is how often they are meant to come."""
        watts = _checked(sample, self.channel)
        if isinstance(watts, str):
            bad: Status = sample.status if sample.status != "ok" else "invalid"
            self.status, self.reason = bad, watts
            return
        at = sample.monotonic_seconds
        last, node = self._last, self.track.nodes[-1] if self.track.nodes else None
        if last is not None and at <= last.monotonic_seconds:
            return
        if last is None or watts != last.value:
            self.changed_at, self._dead = at, ""
        self.status, self.reason = ("frozen", self._dead) if self._dead else ("ok", "")
        self._last = sample
        if last is None or node is None or node.watts is None:
            self.track.advance(at, watts=watts)
            return
        seconds = at - last.monotonic_seconds
        joules = (node.watts + watts) / 2 * seconds
        slept = sample.boottime_seconds - last.boottime_seconds - seconds
        suspended = slept > SUSPEND_SECONDS
        gap = seconds > GAP_PERIODS * max(period_seconds, self.channel.window_seconds or 0.0)
        if suspended:
            self.track.flag(at, "suspend")
        if gap:
            self.track.flag(at, "gap")
        own = suspended and not self.channel.counts_suspend
        if gap or own or self._dead:
            self.track.advance(at, filled=joules, slept=slept if own else 0.0, watts=watts)
            return
        # A change of power at an unknown instant between two readings moves the area evenly within plus or
        # minus half of (change x interval).
        variance = ((watts - node.watts) * seconds) ** 2 / 12
        self.track.advance(at, known=joules, covered=seconds, variance=variance, watts=watts)

    @property
    def value(self) -> float | None:
        """The last valid reading."""
        return None if self._last is None else self._last.value

    def freeze(self, reason: str) -> None:
        """From here on its readings count for nothing, until one differs."""
        self.status, self.reason, self._dead = "frozen", reason, reason
        self.track.flag(self.track.nodes[-1].at, "frozen")

    def level(self, at: float) -> Level | None:
        return delayed(self.track.level(at), self._last)

    def known_joules(self) -> float | None:
        """Since the first reading; None before it."""
        return self.track.nodes[-1].known if self.track.nodes else None

    def covered_seconds(self) -> float:
        """That those joules are of."""
        return self.track.nodes[-1].covered if self.track.nodes else 0.0

    def watts(self) -> float | None:
        """Mean over about the last second; the reading itself where there is only one."""
        if len(self.track.nodes) == 1:
            return self.track.nodes[0].watts
        return self.track.recent_watts()


def _checked(sample: Sample, channel: Channel) -> float | str:
    """The value, or why it is none. Negative watts feed back or charge: they are no consumption."""
    if sample.status != "ok" or sample.value is None:
        return sample.reason or sample.status
    if not math.isfinite(sample.value) or sample.value < 0:
        return f"{sample.value} W is not what a board draws"
    if channel.max_watts is not None and sample.value > channel.max_watts:
        return f"{sample.value:.0f} W is above what this channel can show ({channel.max_watts:.0f} W)"
    return sample.value
