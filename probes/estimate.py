"""No sensor: watts between idle and full by the busy share of the processor; needs the two figures.

W = idle + u x (full - idle), u from /proc/stat (Cloud Carbon Footprint's form, after SPECpower's load steps).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence

from probes import Channel, Context, Cost, Finding, Reader, Sample, Scope
from probes._files import Trouble, sample, text
from probes._settings import SettingError, number, only, scope, word

STAT = "/proc/stat"
MODELS = ("/proc/device-tree/model", "/sys/class/dmi/id/product_name")
BUSY = (0, 1, 2, 5, 6)  # user, nice, system, irq, softirq; time stolen by a hypervisor is another's
UNCERTAINTY = 0.4


class Estimate:
    name = "estimate"

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        _figures(options)

    def detect(self, context: Context) -> list[Finding]:
        try:
            figures = _figures(context.options)
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        if figures is None:
            return [_no_figures(context)]
        idle, full, covers, source = figures
        busy = _busy(context)
        if isinstance(busy, Trouble):
            return [Finding(self.name, busy.status, busy.reason)]
        _, cores = busy
        channel = Channel(
            id="estimate/cpu",
            kind="model",
            scope=covers,
            basis="estimated",
            relative_uncertainty=UNCERTAINTY,
            source=f"{idle:g} W idle to {full:g} W full by the busy share of {cores} cores; {source}",
            resolution_joules=(full - idle) / _ticks() / cores or None,
            window_seconds=1.0,  # shorter windows hold too few ticks of the busy share
        )
        return [Finding(channel.id, "ok", channel=channel)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Model(context, channel) for channel in channels]


class Model:
    """Joules since it was opened: idle watts all the time, the rest while a core is busy."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, channel: Channel) -> None:
        settings = context.options["estimate"]
        self._context = context
        self._idle_watts = number(settings, "estimate", "idle_watts")
        self._full_watts = number(settings, "estimate", "full_watts")
        self._since = context.clock.monotonic()
        self._busy: float | None = None
        self._read_at = self._since
        self._busy_seconds = 0.0
        self._owed_seconds = 0.0
        self.channel_ids: tuple[str, ...] = (channel.id,)

    def read(self) -> list[Sample]:
        return [sample(self._context, self.channel_ids[0], self._joules)]

    def close(self) -> None: ...

    def _joules(self) -> float | Trouble:
        found = _busy(self._context)
        if isinstance(found, Trouble):
            return found
        busy, cores = found
        now = self._context.clock.monotonic()
        if self._busy is not None:
            # Per-core ticks step back when a core goes offline: no work is undone by that.
            self._owed_seconds += max(busy - self._busy, 0.0) / cores
        # A tick counts 10 ms at once: more than all cores could do since the last reading comes later.
        done = min(self._owed_seconds, now - self._read_at)
        self._busy_seconds += done
        self._owed_seconds -= done
        self._busy, self._read_at = busy, now
        joules = self._idle_watts * (now - self._since)
        return joules + (self._full_watts - self._idle_watts) * self._busy_seconds


def create() -> Estimate:
    return Estimate()


def _figures(options: Mapping[str, Mapping[str, object]]) -> tuple[float, float, Scope, str] | None:
    """(idle watts, full watts, scope, source), None where no watts are given. Raises SettingError."""
    settings = options.get("estimate", {})
    only(settings, "estimate", ("idle_watts", "full_watts", "scope", "source"))
    if not {"idle_watts", "full_watts"} & set(settings):
        return None
    idle = number(settings, "estimate", "idle_watts")
    full = number(settings, "estimate", "full_watts")
    if full < idle:
        raise SettingError(f"energy.estimate: full_watts ({full:g}) lies below idle_watts ({idle:g})")
    source = word(settings, "estimate", "source", "given in the configuration")
    return idle, full, scope(settings, "estimate"), source


def _ticks() -> float:
    return float(os.sysconf("SC_CLK_TCK"))


def _busy(context: Context) -> tuple[float, int] | Trouble:
    """(busy seconds of all cores since boot, cores)."""
    path = context.path(STAT)
    found = text(context, path)
    if isinstance(found, Trouble):
        return found
    lines = found.splitlines()
    fields = lines[0].split() if lines else []
    if len(fields) < 8 or fields[0] != "cpu" or not all(one.isdigit() for one in fields[1:8]):
        return Trouble("invalid", f"{STAT}: the first line is not the processors' times")
    cores = sum(1 for line in lines if line.startswith("cpu")) - 1
    return sum(int(fields[1 + place]) for place in BUSY) / _ticks(), max(cores, 1)


def _no_figures(context: Context) -> Finding:
    found = [text(context, context.path(path)) for path in MODELS]
    model = next((one.rstrip("\0") for one in found if isinstance(one, str) and one), "this board")
    remedy = (
        "add to edged.toml: [energy.estimate] idle_watts = ..., full_watts = ... (read them off a wall meter)"
    )
    return Finding("estimate", "absent", f"no idle and full watts are known for {model}", remedy)
