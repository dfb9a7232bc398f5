"""Which channels there are, their series and the headline among them; looks again each minute."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from probes import Channel, Context, Cost, Finding, Probe, Recalling, Sample, Status
from probes._calibration import Calibration, Scaled, parse
from probes._choice import Choice, Preferences, Seen, choose, scope_of
from probes._counter import CounterSeries
from probes._detect import Detector
from probes._energy import Level
from probes._mirror import Mirrors
from probes._power import PowerSeries
from probes._sampler import Sampler, Source
from probes._settings import SettingError
from probes._still import dead

HEARTBEAT_SECONDS = 30.0  # a counter is read at least this often
SLOWEST_POWER_SECONDS = 1.0
LOST: tuple[Status, ...] = ("absent", "denied", "invalid")
"""Worth opening again when a search finds it; a stale one comes back by itself."""


@dataclass(frozen=True, slots=True)
class Options:
    """How often to read and what to prefer. Periods are seconds between two readings."""

    preferences: Preferences = field(default_factory=Preferences)
    power_seconds: float = 0.1
    counter_seconds: float = 1.0
    dear_seconds: float = 1.0
    history_seconds: float = 120.0
    hang_seconds: float = 0.5
    edge_seconds: float = 1.0  # how long a mark waits for a dear reader that feeds the headline
    detect_seconds: float = 5.0
    reprobe_seconds: float = 60.0
    cpu_share: float = 0.01  # of one core; above it the power period doubles, up to 1 s


class Roster:
    """Series by channel id and the sources that feed them. `lock` guards the series and the choice."""

    def __init__(self, context: Context, probes: Sequence[Probe], options: Options) -> None:
        self._context = context
        self._options = options
        self._detector = Detector(probes, context, options.detect_seconds, options.hang_seconds)
        self._recalling: dict[str, Recalling] = {}
        self.lock = threading.RLock()
        self.series: dict[str, CounterSeries | PowerSeries | Scaled] = {}
        self.findings: list[Finding] = []
        self.choice = Choice((), None, None, "the meter has not looked yet")
        self.run_scope: str | None = None
        self.mirrors = Mirrors()
        self._calibrations, self._fault = _calibrations(context)
        self.sampler = Sampler(context.clock, self._take, options.hang_seconds)

    def look(self) -> None:
        """Search: open what is new, and again what could not be read and now can."""
        findings: list[Finding] = [self._fault] if self._fault is not None else []
        for probe, mine in self._detector.detect():
            findings += mine
            able = [one.channel for one in mine if one.channel is not None and one.status == "ok"]
            with self.lock:
                fresh = [channel for channel in able if self._status(channel.id) in LOST]
            if fresh:
                self._open(probe, fresh)
        with self.lock:
            self.findings = findings

    def freeze_dead(self, now: float) -> None:
        """Take no more of a sensor that stands still while a part of what it measures has moved."""
        with self.lock:
            powers = [one for one in self.series.values() if isinstance(one, PowerSeries)]
            reasons = dead(powers, now)
            for one in powers:
                if one.channel.id in reasons:
                    one.freeze(reasons[one.channel.id])

    def choose(self) -> None:
        """Take the best headline; inside a run the scope it began with comes first, and what works stays."""
        with self.lock:
            seen = self.seen()
            best = choose(seen, self._options.preferences, self.run_scope)
            able = {one.channel.id: one.channel for one in seen if one.status == "ok"}
            mine = [able[name] for name in self.choice.channel_ids if name in able]
            works = len(mine) == len(self.choice.channel_ids) > 0
            if works and scope_of(mine) == self.run_scope:
                return
            if works and best.scope != self.run_scope:
                return
            lost = [name for name in self.choice.channel_ids if name not in able]
            if lost and best.channel_ids:
                best = replace(best, reason=f"{best.reason}; {', '.join(lost)} is lost")
            self.choice = best

    def new_run(self) -> None:
        """A run begins: from here on later scopes are held against the headline's of now."""
        with self.lock:
            self.run_scope = None
            self.choice = choose(self.seen(), self._options.preferences)
            self.run_scope = self.choice.scope

    def seen(self) -> list[Seen]:
        """Every channel as it stands, also those that were found and could not be read."""
        shown = []
        for name, series in self.series.items():
            channel = series.channel
            if name in self.mirrors.doubles:
                channel = replace(channel, headline=False, note=f"the same counter as {channel.may_mirror}")
            shown.append(Seen(channel, series.status, series.reason, self.watts(name)))
        for one in self.findings:
            if one.channel is not None and one.channel.id not in self.series:
                shown.append(Seen(one.channel, one.status, one.reason))
        return shown

    def watts(self, channel_id: str) -> float | None:
        """Watts of late; a plug's counter has the plug's own watts, which do not come in steps."""
        series = self.series[channel_id]
        twin = self.series.get(series.channel.twin or "")
        if series.channel.kind == "counter" and twin is not None and twin.status == "ok":
            return twin.watts()
        return series.watts()

    def level(self, channel_id: str, at: float) -> Level | None:
        """The sums of one channel at an instant; exact where its reader can tell."""
        recalling = self._recalling.get(channel_id)
        if recalling is not None:
            return Level(recalling.value_at(channel_id, at), 0.0, at, 0.0, 0.0, 0.0)
        return self.series[channel_id].level(at)

    def periods(self) -> dict[str, float]:
        periods = {
            name: source.period_seconds
            for source in list(self.sampler.sources)
            for name in source.reader.channel_ids
        }
        scaled = [one.channel for one in self.series.values() if isinstance(one, Scaled)]
        return periods | {one.id: periods.get(one.contains[0], 0.0) for one in scaled}

    def patience(self, source: Source) -> float:
        """How long a mark waits for one reader: a dear one only where the headline needs it."""
        if source.reader.cost == "cheap":
            return 1.5 * self._options.hang_seconds
        needed = set(source.reader.channel_ids) & set(self.choice.channel_ids)
        return self._options.edge_seconds if needed else 0.0

    def slow_down(self, share: float) -> None:
        """Above the budget of processor time, read watts half as often."""
        if share <= self._options.cpu_share:
            return
        for source in self.sampler.sources:
            if source.period_seconds < SLOWEST_POWER_SECONDS:
                source.period_seconds = min(2 * source.period_seconds, SLOWEST_POWER_SECONDS)

    def _status(self, channel_id: str) -> Status:
        series = self.series.get(channel_id)
        return "absent" if series is None else series.status

    def _take(self, samples: Sequence[Sample], period_seconds: float) -> None:
        with self.lock:
            if self.mirrors.undecided:
                self.mirrors.see(samples)
            for sample in samples:
                series = self.series.get(sample.channel_id)
                if series is not None and not isinstance(series, Scaled):
                    series.add(sample, period_seconds)

    def _open(self, probe: Probe, channels: Sequence[Channel]) -> None:
        wanted = {channel.id for channel in channels}
        for source in list(self.sampler.sources):
            if wanted & set(source.reader.channel_ids):
                # One that still reads other channels is opened anew with all of them.
                with self.lock:
                    kept = [self.series[name].channel for name in source.reader.channel_ids]
                channels = [*channels, *(one for one in kept if one.id not in wanted)]
                wanted |= {one.id for one in kept}
                self.sampler.remove(source)
        with self.lock:
            self.mirrors.watch(channels)
            for channel in channels:
                if channel.id not in self.series:
                    kind = PowerSeries if channel.kind == "power" else CounterSeries
                    series = kind(channel, self._options.history_seconds)
                    self.series[channel.id] = series
                    if channel.id in self._calibrations:
                        scaled = Scaled(series, self._calibrations[channel.id])
                        self.series[scaled.channel.id] = scaled
        try:
            readers = probe.open(self._context, channels)
        except Exception as error:  # a foreign probe may raise anything, and the others still count
            now, boot = self._context.clock.monotonic(), self._context.clock.boottime()
            reason = f"does not open: {type(error).__name__}: {error}"
            self._take([Sample(one.id, now, boot, None, "invalid", reason) for one in channels], 1.0)
            return
        for reader in readers:
            mine = [channel for channel in channels if channel.id in reader.channel_ids]
            if isinstance(reader, Recalling):
                self._recalling.update(dict.fromkeys(reader.channel_ids, reader))
            self.sampler.add(Source(reader, self._period(reader.cost, mine)))

    def _period(self, cost: Cost, channels: Sequence[Channel]) -> float:
        """Watts at the power period, but no faster than the sensor; counters well before they can wrap."""
        options = self._options
        if cost == "dear":
            return options.dear_seconds
        ids = {channel.id for channel in channels if channel.kind != "power"}
        periods = [min(HEARTBEAT_SECONDS, options.counter_seconds)]
        for channel in channels:
            if channel.kind == "power" and channel.twin not in ids:
                periods.append(max(options.power_seconds, channel.window_seconds or 0.0))
            elif channel.range_joules is not None and channel.max_watts is not None:
                periods.append(channel.range_joules / (4 * channel.max_watts))
        return min(periods)


def _calibrations(context: Context) -> tuple[dict[str, Calibration], Finding | None]:
    """Those of the configuration; one that cannot be used is shown and stops no sensor."""
    try:
        return parse(context.options), None
    except SettingError as error:
        return {}, Finding("calibration", "invalid", str(error))
