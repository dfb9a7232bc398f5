"""PURE. What two readings of a cumulative counter say: joules, or that they are not known.

A wrap is corrected only where nothing else explains the fall; doubt is `unknown`, never a small number.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Literal, NamedTuple

from probes import Channel, Sample, Status
from probes._energy import Level
from probes._track import Track

Kind = Literal["ok", "wrap", "back-step", "reset", "gap", "implausible", "suspend"]

SUSPEND_SECONDS = 0.05  # growth of BOOTTIME - MONOTONIC that a sleep leaves and jitter does not
SLACK_SECONDS = 0.1  # a reading may be stamped this late; power is judged over the interval and this


class Step(NamedTuple):
    """`joules` is None when the interval cannot be known."""

    joules: float | None
    kind: Kind


def step(
    channel: Channel,
    before: float,
    after: float,
    seconds: float,
    *,
    still_seconds: float = 0.0,
    suspended: bool = False,
) -> Step:
    """Joules between two readings `seconds` apart, by the range and the power that the channel can have.

    For `still_seconds` before them the counter had shown the same: a rise tells what it counted since then.
    """
    if suspended and not channel.counts_suspend:
        return Step(None, "suspend")
    ceiling = math.inf
    if channel.max_watts is not None:
        ceiling = channel.max_watts * (seconds + SLACK_SECONDS) + (channel.resolution_joules or 0.0)
        if channel.range_joules is not None and seconds > channel.range_joules / channel.max_watts:
            # It may have gone round more than once, whichever way the two readings lie.
            return Step(None, "gap")
    if after >= before:
        most = ceiling + (channel.max_watts or 0.0) * still_seconds
        return Step(after - before, "ok") if after - before <= most else Step(None, "implausible")
    if before - after <= channel.back_step_joules:
        return Step(0.0, "back-step")
    if channel.range_joules is None or channel.max_watts is None:
        return Step(None, "reset")
    joules = after + channel.range_joules - before
    return Step(joules, "wrap") if 0 <= joules <= ceiling else Step(None, "reset")


class CounterSeries:
    """Readings of one counter (or model), in order of time, as sums."""

    def __init__(self, channel: Channel, history_seconds: float) -> None:
        self.channel = channel
        self.track = Track(history_seconds)
        self.status: Status = "absent"
        self.reason = "not read yet"
        self._last: Sample | None = None  # the last valid one, moved or not
        self._moved_at = 0.0

    def add(self, sample: Sample, period_seconds: float) -> None:
        """Take one reading. One without a value says why; the counter runs on, so the next closes the gap."""
        value = _checked(sample, self.channel)
        if isinstance(value, str):
            bad: Status = sample.status if sample.status != "ok" else "invalid"
            self.status, self.reason = bad, value
            return
        if self._last is None:
            self._restart(sample)
            return
        seconds = sample.monotonic_seconds - self._last.monotonic_seconds
        if seconds < 0 or (seconds == 0 and value == self._last.value):
            return
        before = self._last.value or 0.0
        slept = sample.boottime_seconds - self._last.boottime_seconds - seconds
        suspended = slept > SUSPEND_SECONDS
        elapsed = seconds + slept if self.channel.counts_suspend else seconds
        self.status, self.reason = "ok", ""
        if value == before and not suspended:
            self._stand_still(sample)
            return
        still = self._last.monotonic_seconds - self._moved_at
        found = step(self.channel, before, value, elapsed, still_seconds=still, suspended=suspended)
        at = sample.monotonic_seconds
        if suspended:
            self.track.flag(at, "suspend")
        if found.kind not in ("ok", "suspend"):
            self.track.flag(at, found.kind)
        since = at - self.track.nodes[-1].at
        if found.joules is None:
            self._unknown(at, since, slept if suspended else 0.0)
        else:
            self.track.advance(at, known=found.joules, covered=since)
        self._last, self._moved_at = sample, at

    def level(self, at: float) -> Level | None:
        seen = None if self._last is None or self.status == "frozen" else self._last.monotonic_seconds
        return delayed(self.track.level(at, seen), self._last)

    def known_joules(self) -> float | None:
        """Since the first reading; None before it."""
        return self.track.nodes[-1].known if self.track.nodes else None

    def covered_seconds(self) -> float:
        """That those joules are of."""
        return self.track.nodes[-1].covered if self.track.nodes else 0.0

    def watts(self) -> float | None:
        """Mean over about the last second."""
        return self.track.recent_watts()

    def _restart(self, sample: Sample) -> None:
        self.status, self.reason = "ok", ""
        self.track.advance(sample.monotonic_seconds)
        self._last, self._moved_at = sample, sample.monotonic_seconds

    def _unknown(self, at: float, since: float, slept: float = 0.0) -> None:
        watts = self.track.recent_watts()
        if watts is None:
            self.track.flag(at, "gap-unfilled")
        self.track.advance(at, filled=(watts or 0.0) * since, slept=slept)

    def _stand_still(self, sample: Sample) -> None:
        """No node: the next step is spread over all the time since the last. Too long, and it is frozen."""
        self._last = sample
        limit = self.channel.moves_within_seconds
        at = sample.monotonic_seconds
        if limit is None or at - self._moved_at <= limit:
            return
        self.status = "frozen"
        self.reason = f"the counter has not moved for {at - self._moved_at:.0f} s"
        if self.track.nodes[-1].at <= self._moved_at:
            self.track.flag(at, "frozen")
        self._unknown(at, at - self.track.nodes[-1].at)


def delayed(level: Level | None, last: Sample | None) -> Level | None:
    """An answer that took long is true of some instant in that time: the edge is known no better."""
    if level is None or last is None or last.delay_seconds == 0:
        return level
    return replace(level, edge_seconds=level.edge_seconds + last.delay_seconds)


def _checked(sample: Sample, channel: Channel) -> float | str:
    """The value, or why it is none."""
    if sample.status != "ok" or sample.value is None:
        return sample.reason or sample.status
    if not math.isfinite(sample.value) or sample.value < 0:
        return f"{sample.value} is not a counter reading"
    if channel.range_joules is not None and sample.value > 1.001 * channel.range_joules:
        return f"{sample.value:.0f} J lies above the counter's range of {channel.range_joules:.0f} J"
    return sample.value
