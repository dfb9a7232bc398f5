"""Adapter over `pyRAPL.Sensor`, a second opinion on powercap; off unless `[energy.pyrapl] enabled = true`.

pyRAPL 0.2.3.1 never looks at a counter's range, so only its raw counters are taken, with our own rule for
wraps; `Measurement` and `measureit` are not used. It fails on dies and on holes in the zones' numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, sample
from probes.powercap import Powercap

MICRO = 1e-6
NOTE = "a second reading of powercap's counter, to check it by: never added"


class PyRapl:
    name = "pyrapl"

    def detect(self, context: Context) -> list[Finding]:
        if context.options.get(self.name, {}).get("enabled") is not True:
            return []
        packages = _packages(context)
        sensor = _sensor(context)
        if isinstance(sensor, Trouble):
            remedy = "pip install 'edged[rapl]'" if sensor.status == "absent" else ""
            return [Finding(self.name, sensor.status, sensor.reason, remedy)]
        values = _values(sensor)
        if isinstance(values, Trouble):
            return [Finding(self.name, values.status, values.reason)]
        found = []
        for index, value in enumerate(values):
            known = packages.get(f"powercap/package-{index}")
            channel = _channel(index, known)
            if value is None:
                found.append(Finding(channel.id, "invalid", "pyRAPL has no value for it", channel=channel))
            else:
                found.append(Finding(channel.id, "ok", channel=channel))
        return found

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Sockets(context, [channel.id for channel in channels])]


class Sockets:
    """All packages: the library reads them together."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, wanted: Sequence[str]) -> None:
        self._context = context
        self._sensor = _sensor(context)
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        values = self._sensor if isinstance(self._sensor, Trouble) else _values(self._sensor)

        def one(name: str) -> float | Trouble:
            if isinstance(values, Trouble):
                return values
            index = int(name.rpartition("-")[2])
            value = values[index] if index < len(values) else None
            return Trouble("invalid", "pyRAPL has no value for it") if value is None else value

        return [sample(self._context, name, partial(one, name)) for name in self.channel_ids]

    def close(self) -> None: ...


def create() -> PyRapl:
    return PyRapl()


def disagreement(pyrapl_joules: float, powercap_joules: float, step_joules: float) -> str:
    """Why two measures of one interval do not agree within the counter's step; empty where they do."""
    apart = abs(pyrapl_joules - powercap_joules)
    if apart <= max(step_joules, MICRO):
        return ""
    return f"pyRAPL says {pyrapl_joules:.6f} J, powercap {powercap_joules:.6f} J: {apart:.6f} J apart"


def _packages(context: Context) -> dict[str, Channel]:
    found = Powercap().detect(context)
    return {one.channel.id: one.channel for one in found if one.channel is not None}


def _channel(index: int, known: Channel | None) -> Channel:
    channel = Channel(
        id=f"pyrapl/package-{index}",
        kind="counter",
        scope="package",
        basis="measured",
        relative_uncertainty=0.05,
        source="pyRAPL.Sensor, raw counter",
        max_watts=500.0,
        headline=False,
        note=NOTE,
    )
    if known is None:
        return channel  # without a range a wrap is unknown, never corrected
    return replace(
        channel,
        range_joules=known.range_joules,
        resolution_joules=known.resolution_joules,
        max_watts=known.max_watts,
    )


def _sensor(context: Context) -> Any:
    try:
        sensor = context.load_module("pyRAPL.sensor").Sensor
        device = context.load_module("pyRAPL.device").Device
    except ImportError:
        return Trouble("absent", "pyRAPL is not installed")
    try:
        return sensor(devices=[device.PKG])
    except PermissionError:
        return Trouble("denied", "pyRAPL may not read energy_uj")
    except Exception as error:  # its own exception has no text, and no base that is known before the import
        return Trouble("invalid", f"pyRAPL does not start: {str(error) or type(error).__name__}")


def _values(sensor: Any) -> list[float | None] | Trouble:
    """Joules by socket: pyRAPL gives package and dram in turn, -1 for what it lacks or was not asked for."""
    try:
        raw = sensor.energy()
    except Exception as error:
        return Trouble("invalid", f"pyRAPL: {str(error) or type(error).__name__}")
    if not isinstance(raw, (list, tuple)):
        return Trouble("invalid", f"pyRAPL answered {raw!r:.40}")
    return [
        None if isinstance(one, bool) or not isinstance(one, (int, float)) or one < 0 else one * MICRO
        for one in raw[::2]
    ]
