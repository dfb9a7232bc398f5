"""The meter: what the probes read, as joules between two instants, with what may be said of them.

It decides nothing about sensors (the probes do) and keeps no file. One thread samples, one looks after it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence

from probes import Context, Probe, load_all
from probes._baseline import Baseline, baseline, conditions
from probes._choice import COARSE_STEPS, Preferences, scope_of
from probes._detect import Found, listing
from probes._energy import Energy, Live, LiveChannel, Mark, MarkError
from probes._roster import Options, Roster
from probes._window import energy, part

__all__ = [
    "Baseline",
    "Energy",
    "Found",
    "Live",
    "LiveChannel",
    "Mark",
    "MarkError",
    "Meter",
    "Options",
    "Preferences",
]

LOOK_AFTER_SECONDS = 0.5
BUDGET_SECONDS = 30.0  # over which the sampler's own cost is judged


class Meter:
    """Joules of this board over any window. Give `probes` to restrict it; by default every probe is tried."""

    def __init__(
        self, context: Context, probes: Sequence[Probe] | None = None, options: Options | None = None
    ) -> None:
        self._context = context
        self._options = options or Options()
        self._roster = Roster(context, load_all() if probes is None else probes, self._options)
        self._baseline: Baseline | None = None
        self._stop = threading.Event()
        self._keeper: threading.Thread | None = None

    def open(self) -> None:
        """Look for sensors, read each once and choose the headline. Starts no thread that stays."""
        self._roster.look()
        self._roster.sampler.read_now(self._roster.patience)
        self._roster.new_run()

    def start(self) -> None:
        """Sample until `close`; `open` comes first."""
        self._roster.sampler.start()
        self._keeper = threading.Thread(target=self._keep, name="edged-meter", daemon=True)
        self._roster.look()
        self._roster.sampler.read_now(self._roster.patience)
        self._roster.new_run()
        self._keeper.start()

    def close(self) -> None:
        """End the threads; a probe that hangs is left behind."""
        self._stop.set()
        if self._keeper is not None:
            self._keeper.join(1.0)
        self._roster.sampler.stop()

    def sample(self) -> None:
        """Read every channel once, as the sampler does when each is due: for a meter that is not started."""
        self._roster.sampler.read_now(self._roster.patience)

    def mark(self, at_seconds: float | None = None) -> Mark:
        """Read now; the mark is this instant, or an earlier one of CLOCK_MONOTONIC between kept readings.

        Raises MarkError for an instant before the kept history or after now.
        """
        roster, clock = self._roster, self._context.clock
        now = clock.monotonic()
        at = now if at_seconds is None else at_seconds
        if at > now:
            raise MarkError(f"the instant lies {at - now:.3f} s ahead of CLOCK_MONOTONIC")
        roster.sampler.read_now(roster.patience)
        with roster.lock:
            found = {name: roster.level(name, at) for name in roster.series}
            levels = {name: level for name, level in found.items() if level is not None}
            boot = clock.boottime() - (clock.monotonic() - at)
            return Mark(at, boot, levels, roster.choice.channel_ids, roster.sampler.cpu_seconds())

    def window(self, start: Mark, end: Mark, channel_ids: Sequence[str] | None = None) -> Energy:
        """Energy between two marks, by the headline of `start` (or by the channels named).

        Windows that share a mark add up to the window over both. Raises MarkError where `end` comes first.
        """
        roster = self._roster
        with roster.lock:
            chosen = start.headline if channel_ids is None else tuple(channel_ids)
            channels = {name: series.channel for name, series in roster.series.items()}
            mirrors = roster.mirrors
            headline = [channels[name] for name in chosen if name in channels and name not in mirrors.doubles]
            undecided = any(name in mirrors.undecided for name in chosen)
            others = [channel for name, channel in channels.items() if name not in chosen]
            why, periods, run_scope = roster.choice.reason, roster.periods(), roster.run_scope
        flags = ["die-undecided"] if undecided else []
        if channel_ids is None and start.headline != end.headline:
            flags.append("channel-change")
        if headline and run_scope is not None and scope_of(headline) != run_scope:
            flags.append("scope-change")
        idle = None
        if self._baseline is not None:
            now = conditions(self._context)
            idle = self._baseline.watts_for(chosen, end.monotonic_seconds, now)
        return energy(
            start,
            end,
            headline,
            others,
            why=why,
            periods=periods,
            idle_watts=idle,
            extra_flags=flags,
            cpu_seconds=end.cpu_seconds - start.cpu_seconds,
        )

    def measure(self, start: Mark, end: Mark) -> Energy:
        """Like `window`, for one that stands alone: a counter where it took enough steps, else watts.

        Such windows do not add up: one may be counted and the next integrated.
        """
        with self._roster.lock:
            channels = {name: series.channel for name, series in self._roster.series.items()}
        chosen = []
        for name in start.headline:
            pair = [channels[one] for one in (name, channels[name].twin) if one in channels]
            counter = next((one for one in pair if one.kind == "counter"), None)
            watts = next((one for one in pair if one.kind == "power"), None)
            if counter is None or watts is None:
                chosen.append(name)
                continue
            found = part(start, end, counter.id)
            step = counter.resolution_joules or 0.0
            fine = found is not None and found[0] + found[1] >= COARSE_STEPS * step
            chosen.append(counter.id if fine else watts.id)
        return self.window(start, end, chosen)

    def live(self) -> Live:
        """Watts and joules so far of every channel; reads nothing."""
        roster = self._roster
        with roster.lock:
            choice = roster.choice
            shown = []
            for name, series in roster.series.items():
                channel = series.channel
                ok = series.status == "ok"
                shown.append(
                    LiveChannel(
                        channel_id=name,
                        scope=channel.scope,
                        basis=channel.basis,
                        status=series.status,
                        reason=series.reason,
                        watts=roster.watts(name) if ok else None,
                        joules=series.known_joules(),
                        headline=name in choice.channel_ids,
                    )
                )
            mine = [one for one in shown if one.headline]
            return Live(
                monotonic_seconds=self._context.clock.monotonic(),
                channels=tuple(shown),
                headline_channel_id="+".join(choice.channel_ids) or None,
                scope=choice.scope,
                basis=choice.basis,
                watts=_sum([one.watts for one in mine]),
                joules=_sum([one.joules for one in mine]),
                reason=choice.reason,
                cpu_seconds=roster.sampler.cpu_seconds(),
                period_seconds=min(roster.periods().values(), default=0.0),
            )

    def channels(self) -> list[Found]:
        """Every channel and every place looked at, with its part in the headline or why it has none."""
        with self._roster.lock:
            return listing(self._roster.findings, self._roster.seen(), self._roster.choice)

    def options_of(self, probe: str) -> Mapping[str, object]:
        """The `[energy.X]` table that a probe was given."""
        return self._context.options.get(probe, {})

    def new_run(self) -> None:
        """A run begins: choose the headline afresh; a later change of its scope is flagged."""
        self._roster.new_run()

    def set_idle(self, start: Mark, end: Mark) -> Baseline:
        """Take an idle stretch of 30 s or more as the baseline of `above_idle_joules`.

        Raises MarkError where it cannot serve.
        """
        with self._roster.lock:
            series = [self._roster.series[name] for name in start.headline]
            self._baseline = baseline(start, end, series, conditions(self._context))
            return self._baseline

    def look_again(self) -> None:
        """Search for sensors that came or went, and see to the headline; done each minute once started."""
        self._roster.look()
        self._roster.freeze_dead(self._context.clock.monotonic())
        self._roster.choose()

    def _keep(self) -> None:
        clock, sampler = self._context.clock, self._roster.sampler
        look_at = clock.monotonic() + self._options.reprobe_seconds
        judged_at, cpu_seconds = clock.monotonic(), sampler.cpu_seconds()
        while not self._stop.wait(LOOK_AFTER_SECONDS):
            sampler.rescue()
            now = clock.monotonic()
            if now - judged_at >= BUDGET_SECONDS:
                self._roster.slow_down((sampler.cpu_seconds() - cpu_seconds) / (now - judged_at))
                judged_at, cpu_seconds = now, sampler.cpu_seconds()
            if now >= look_at:
                self.look_again()
                look_at = clock.monotonic() + self._options.reprobe_seconds


def _sum(parts: Sequence[float | None]) -> float | None:
    """None where a part is not known, and of nothing."""
    known = [one for one in parts if one is not None]
    return sum(known) if parts and len(known) == len(parts) else None
