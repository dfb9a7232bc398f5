"""NVIDIA Jetson: the INA3221 (Thor: INA238) rails from sysfs, JetPack 4 to 7, and their documented total.

Needs no service and no privilege. `curr4` and `in4..7` (shunt volts, sums of nested rails) are not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, entries, number, sample, text
from probes._hwmon import I2C, Chip, chips, label
from probes._jetson import is_jetson, total, word

MILLI = 1e-3
MICRO = 1e-6
UNCERTAINTY = 0.02  # shunt 1 % and gain
JETPACK4 = "/sys/bus/i2c/drivers/ina3221x"


class Rail(NamedTuple):
    """One rail: a file of watts, or volts and amperes to multiply."""

    name: str
    place: str
    watts: tuple[Path, float] | None
    volts: Path | None = None
    amperes: Path | None = None
    window_seconds: float | None = None

    def read(self, context: Context) -> float | Trouble:
        if self.watts is not None:
            path, unit = self.watts
            value = number(context, path, unit)
        else:
            assert self.volts is not None
            assert self.amperes is not None
            volts = number(context, self.volts, MILLI)
            amperes = number(context, self.amperes, MILLI)
            if isinstance(volts, Trouble):
                return volts
            value = amperes if isinstance(amperes, Trouble) else volts * amperes
        if not isinstance(value, Trouble) and value < 0:
            return Trouble("invalid", f"{self.name} feeds back ({value:.3f} W)")
        return value


class Ina3221:
    name = "ina3221"

    def detect(self, context: Context) -> list[Finding]:
        rails = find(context)
        if not rails:
            return []
        names = [rail.name for rail in rails]
        rule = total(names)
        found = []
        for rail in rails:
            whole = rule is not None and rule.rails == (rail.name,)
            note = "" if whole or rule is None else f"part of {'+'.join(rule.rails)}: never added to it"
            channel = Channel(
                id=f"ina3221/{rail.place}/{rail.name}",
                kind="power",
                scope=rule.scope if whole and rule is not None else "rail",
                basis="measured",
                relative_uncertainty=UNCERTAINTY,
                source=str((rail.watts[0] if rail.watts else rail.amperes) or "").removeprefix(
                    str(context.root)
                ),
                window_seconds=rail.window_seconds,
                headline=whole,
                note=note,
            )
            value = rail.read(context)
            if isinstance(value, Trouble):
                found.append(Finding(channel.id, value.status, value.reason, channel=channel))
            else:
                found.append(Finding(channel.id, "ok", channel=channel))
        if rule is not None and len(rule.rails) > 1:
            found.append(self._sum(rule.rails, rails, found))
        if rule is None:
            reason = f"the rails {', '.join(names)} have no documented total: none is added to another"
            found.append(Finding("ina3221", "absent", reason))
        return found

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        """One reader per chip; the sum is read with the rails that it is of."""
        rails = {f"ina3221/{rail.place}/{rail.name}": rail for rail in find(context)}
        wanted = {channel.id: channel for channel in channels}
        sums = [channel for channel in channels if channel.contains]
        places: dict[str, dict[str, Rail]] = {}
        for name, rail in rails.items():
            if name in wanted or any(name in channel.contains for channel in sums):
                key = "module" if sums else rail.place
                places.setdefault(key, {})[name] = rail
        return [Rails(context, mine, sums, list(wanted)) for mine in places.values()]

    @staticmethod
    def _sum(names: tuple[str, ...], rails: Sequence[Rail], found: Sequence[Finding]) -> Finding:
        parts = [f"ina3221/{rail.place}/{rail.name}" for rail in rails if rail.name in names]
        channel = Channel(
            id="ina3221/module",
            kind="power",
            scope="module",
            basis="measured",
            relative_uncertainty=UNCERTAINTY,
            source=f"{' + '.join(names)}, which hang in parallel",
            window_seconds=max((rail.window_seconds or 0.0 for rail in rails), default=0.0) or None,
            contains=tuple(parts),
        )
        broken = [one for one in found if one.source in parts and one.status != "ok"]
        if broken:
            return Finding(
                channel.id, broken[0].status, f"a part is missing: {broken[0].reason}", channel=channel
            )
        return Finding(channel.id, "ok", channel=channel)


class Rails:
    """The rails of one chip, or all of a module where they are added."""

    cost: Cost = "cheap"

    def __init__(
        self, context: Context, rails: dict[str, Rail], sums: Sequence[Channel], wanted: Sequence[str]
    ) -> None:
        self._context = context
        self._rails = rails
        self._sums = sums
        self.channel_ids = tuple(
            name for name in wanted if name in rails or any(name == one.id for one in sums)
        )

    def read(self) -> list[Sample]:
        samples = {
            name: sample(self._context, name, partial(rail.read, self._context))
            for name, rail in self._rails.items()
        }
        for channel in self._sums:
            samples[channel.id] = _added(channel, [samples[name] for name in channel.contains])
        return [samples[name] for name in self.channel_ids]

    def close(self) -> None: ...


def create() -> Ina3221:
    return Ina3221()


def find(context: Context) -> list[Rail]:
    """The rails of a Jetson, by label; none on another board, whose INA chips are hwmon's."""
    rails = _jetpack4(context)
    for chip in chips(context):
        if chip.name == "ina3221":
            rails += _ina3221(context, chip)
        elif chip.name == "ina238":
            rails += _thor(context, chip)
    names = [rail.name for rail in rails]
    return rails if is_jetson(names) or any(rail.name == "VIN" for rail in rails) else []


def _jetpack4(context: Context) -> list[Rail]:
    """rail_name_K, in_powerK_input in mW, K from 0; the folder is iio:deviceN or iio_device."""
    rails = []
    top = context.path(JETPACK4)
    for place in entries(top):
        for device in entries(top / place) if I2C.fullmatch(place) else []:
            if not device.startswith("iio"):
                continue
            folder = top / place / device
            for file in entries(folder):
                match = re.fullmatch(r"rail_name_(\d)", file)
                said = text(context, folder / file) if match else ""
                if match is None or isinstance(said, Trouble) or word(said) in ("", "NC"):
                    continue
                path = folder / f"in_power{match.group(1)}_input"
                rails.append(Rail(word(said), place, (path, MILLI)))
    return rails


def _ina3221(context: Context, chip: Chip) -> list[Rail]:
    """inK_label, inK_input in mV, currK_input in mA, K from 1 to 3; there is no power file."""
    window = number(context, chip.path / "update_interval", MILLI)
    rails = []
    for k in (1, 2, 3):
        name = word(label(context, chip, f"in{k}"))
        enabled = text(context, chip.path / f"in{k}_enable")
        if name in ("", "NC") or enabled == "0":
            continue
        rails.append(
            Rail(
                name,
                chip.place,
                None,
                chip.path / f"in{k}_input",
                chip.path / f"curr{k}_input",
                None if isinstance(window, Trouble) else window,
            )
        )
    return rails


def _thor(context: Context, chip: Chip) -> list[Rail]:
    """One INA238 on the input, power1_input in uW (hwmon's unit, unlike the milliwatts of older Jetsons)."""
    name = word(label(context, chip, "power1", "in1", "in0", "curr1"))
    return [Rail("VIN", chip.place, (chip.path / "power1_input", MICRO))] if name == "VIN" else []


def _added(channel: Channel, parts: Sequence[Sample]) -> Sample:
    """The sum at the middle of its parts' instants; not known where a part is not."""
    last = parts[-1]
    broken = next((one for one in parts if one.value is None), None)
    if broken is not None:
        return Sample(
            channel.id,
            last.monotonic_seconds,
            last.boottime_seconds,
            None,
            broken.status,
            f"a part is missing: {broken.reason}",
        )
    at = sum(one.monotonic_seconds for one in parts) / len(parts)
    watts = sum(one.value for one in parts if one.value is not None)
    return Sample(channel.id, at, last.boottime_seconds, watts)
