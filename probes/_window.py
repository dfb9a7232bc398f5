"""PURE. The energy between two marks: coverage, uncertainty and what may be said of it."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from probes import Channel
from probes._choice import scope_of, weakest
from probes._energy import Energy, Level, Mark, MarkError

ENOUGH = 0.95  # of a window measured, and the rest may be filled at the watts beside the gap
FILL_UNCERTAINTY = 0.5  # of the joules assumed across a gap


def part(start: Mark, end: Mark, channel_id: str) -> tuple[float, float, float] | None:
    """(known joules, filled joules, coverage 0..1) of one channel; None where an edge was not read."""
    first, last = start.levels.get(channel_id), end.levels.get(channel_id)
    if first is None or last is None:
        return None
    seconds = end.monotonic_seconds - start.monotonic_seconds
    covered = last.covered_seconds - first.covered_seconds
    # Time asleep belongs to the window as well, and nothing on the board measured it.
    seconds += last.slept_seconds - first.slept_seconds
    coverage = 1.0 if seconds == 0 else min(max(covered / seconds, 0.0), 1.0)
    if coverage > 1 - 1e-9:
        coverage = 1.0
    return last.known_joules - first.known_joules, last.filled_joules - first.filled_joules, coverage


def energy(
    start: Mark,
    end: Mark,
    headline: Sequence[Channel],
    others: Sequence[Channel],
    *,
    why: str,
    periods: Mapping[str, float],
    idle_watts: float | None = None,
    extra_flags: Sequence[str] = (),
    cpu_seconds: float = 0.0,
) -> Energy:
    """Joules of the window. `why` is the reason for this headline; `periods` the seconds between readings.

    Raises MarkError where `end` lies before `start`.
    """
    seconds = end.monotonic_seconds - start.monotonic_seconds
    if seconds < 0:
        raise MarkError(f"the window ends {-seconds:.3f} s before it starts")
    components = {channel.id: _component(start, end, channel) for channel in others}
    if not headline:
        return _unknown(seconds, why, extra_flags, components, cpu_seconds)
    parts = [part(start, end, channel.id) for channel in headline]
    known = sum(one[0] for one in parts if one is not None)
    filled = sum(one[1] for one in parts if one is not None)
    coverage = min((0.0 if one is None else one[2]) for one in parts)
    flags = dict.fromkeys(extra_flags)
    for channel in headline:
        flags.update(dict.fromkeys(channel.flags))
        flags.update(dict.fromkeys(_events(start, end, channel.id)))
    joules: float | None = known + filled
    reason = why
    if coverage < ENOUGH or "gap-unfilled" in flags:
        joules = None
        reason = _why_unknown(start, end, headline, flags)
    elif coverage < 1.0:
        flags["gap-filled"] = None
    if joules is not None and joules < 0:
        # What the window before got across a gap at its end proved too much, by more than this one used.
        joules, reason = None, "an estimate across the gap before this window proved too high"
    watts = 0.0 if seconds == 0 else (known + filled) / seconds
    return Energy(
        joules=joules,
        reason=reason,
        seconds=seconds,
        scope=scope_of(headline),
        basis=weakest(headline),
        channel_id="+".join(channel.id for channel in headline),
        uncertainty_joules=None if joules is None else _uncertainty(start, end, headline, seconds),
        resolution_joules=max((channel.resolution_joules or 0.0 for channel in headline), default=0.0)
        or None,
        coverage=coverage,
        flags=tuple(flags),
        partial_joules=known,
        above_idle_joules=None if joules is None or idle_watts is None else joules - idle_watts * seconds,
        interval_seconds=max(_interval(channel, periods, watts) for channel in headline),
        components=components,
        meter_id="+".join(dict.fromkeys(one.meter_id for one in headline if one.meter_id)) or None,
        meter_cpu_seconds=cpu_seconds,
    )


def _unknown(
    seconds: float,
    why: str,
    flags: Sequence[str],
    components: Mapping[str, float | None],
    cpu_seconds: float,
) -> Energy:
    return Energy(
        joules=None,
        reason=why,
        seconds=seconds,
        scope=None,
        basis=None,
        channel_id=None,
        uncertainty_joules=None,
        resolution_joules=None,
        coverage=0.0,
        flags=tuple(flags),
        partial_joules=None,
        above_idle_joules=None,
        interval_seconds=None,
        components=components,
        meter_cpu_seconds=cpu_seconds,
    )


def _component(start: Mark, end: Mark, channel: Channel) -> float | None:
    found = part(start, end, channel.id)
    if found is None or found[2] < ENOUGH or "gap-unfilled" in _events(start, end, channel.id):
        return None
    return found[0] + found[1]


def _events(start: Mark, end: Mark, channel_id: str) -> list[str]:
    first, last = start.levels.get(channel_id), end.levels.get(channel_id)
    if last is None:
        return []
    before: Mapping[str, int] = {} if first is None else first.flags
    return [name for name, count in last.flags.items() if count > before.get(name, 0)]


def _why_unknown(start: Mark, end: Mark, headline: Sequence[Channel], flags: Mapping[str, None]) -> str:
    worst = []
    for channel in headline:
        found = part(start, end, channel.id)
        if found is None:
            worst.append(f"{channel.id} was not read at both edges")
        elif found[2] < ENOUGH or "gap-unfilled" in flags:
            worst.append(f"{channel.id} was measured for {100 * found[2]:.0f} % of the window")
    said = f" ({', '.join(flags)})" if flags else ""
    return "; ".join(worst) + said


def _uncertainty(start: Mark, end: Mark, headline: Sequence[Channel], seconds: float) -> float:
    """Standard (k = 1): shares of the readings add up (one bias); steps, sampling, edges are independent."""
    bias = 0.0
    independent = 0.0
    for channel in headline:
        first, last = start.levels[channel.id], end.levels[channel.id]
        known = last.known_joules - first.known_joules
        filled = last.filled_joules - first.filled_joules
        joules = known + filled
        watts = 0.0 if seconds == 0 else joules / seconds
        bias += channel.relative_uncertainty * abs(joules)
        independent += (channel.resolution_joules or 0.0) ** 2 / 6
        independent += max(last.sampling_variance - first.sampling_variance, 0.0)
        independent += (FILL_UNCERTAINTY * filled) ** 2
        independent += _edge(first, watts) + _edge(last, watts)
    return math.sqrt(bias**2 + independent)


def _edge(level: Level, watts: float) -> float:
    return (level.edge_seconds * watts) ** 2


def _interval(channel: Channel, periods: Mapping[str, float], watts: float) -> float:
    """Seconds that one reading stands for: a counter is read at the edges, so its step and refresh decide."""
    window = channel.window_seconds or 0.0
    if channel.kind == "power":
        return max(window, periods.get(channel.id, 0.0))
    step = (channel.resolution_joules or 0.0) / watts if watts > 0 else 0.0
    return max(window, step)
