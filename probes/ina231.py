"""Odroid XU3 and XU+E: four INA231 behind the vendor's driver, which writes watts as text. XU4 has none.

The rails hang in parallel and no sensor sees the board's input: their sum is processor, GPU and memory.
Layout: energymon's odroid/README.md.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, entries, number, sample, text
from probes._hwmon import I2C, word

TOP = "/sys/bus/i2c/drivers/INA231"
SUM = "ina231/rails"
RAILS = 4


class Rail(NamedTuple):
    """One sensor of an Odroid XU3 and what it feeds."""

    id: str
    folder: Path
    name: str


class Ina231:
    name = "ina231"

    def detect(self, context: Context) -> list[Finding]:
        rails = _rails(context)
        found = []
        for rail in rails:
            value = _watts(context, rail)
            channel = Channel(
                id=rail.id,
                kind="power",
                scope="rail",
                basis="measured",
                relative_uncertainty=0.02,
                source=f"{TOP}/{rail.folder.name}/sensor_W ({rail.name})",
                window_seconds=_window(context, rail),
                parent=SUM,
                headline=False,
            )
            found.append(_finding(channel, value))
        if len(rails) == RAILS:
            channel = Channel(
                id=SUM,
                kind="power",
                scope="package",
                basis="measured",
                relative_uncertainty=0.02,
                source=f"{' + '.join(rail.name for rail in rails)}, parallel rails; no sensor at the input",
                window_seconds=_window(context, rails[0]),
                contains=tuple(rail.id for rail in rails),
            )
            found.append(_finding(channel, _sum([_watts(context, rail) for rail in rails])))
        return found

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        rails = _rails(context)
        return [Rails(context, rails, [channel.id for channel in channels])] if rails else []


class Rails:
    """All four: the sum needs each."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, rails: Sequence[Rail], wanted: Sequence[str]) -> None:
        self._context = context
        self._rails = rails
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        values = {rail.id: _watts(self._context, rail) for rail in self._rails}
        values[SUM] = _sum(list(values.values()))
        return [sample(self._context, name, partial(values.__getitem__, name)) for name in self.channel_ids]

    def close(self) -> None: ...


def create() -> Ina231:
    return Ina231()


def _rails(context: Context) -> list[Rail]:
    top = context.path(TOP)
    found = []
    for place in entries(top):
        if I2C.fullmatch(place):
            said = text(context, top / place / "sensor_name")
            name = place if isinstance(said, Trouble) or not said else said
            found.append(Rail(f"ina231/{place}/{word(name)}", top / place, name))
    return found


def _watts(context: Context, rail: Rail) -> float | Trouble:
    if text(context, rail.folder / "enable") == "0":
        return Trouble("absent", f"{rail.folder}: the sensor is off, 0 W is not a reading")
    said = text(context, rail.folder / "sensor_W")
    if isinstance(said, Trouble):
        return said
    try:
        watts = float(said)
    except ValueError:
        watts = math.nan
    if not math.isfinite(watts) or watts < 0:
        return Trouble("invalid", f"{rail.folder}/sensor_W: {said[:40]!r} is no power")
    return watts


def _sum(values: Sequence[float | Trouble]) -> float | Trouble:
    broken = next((one for one in values if isinstance(one, Trouble)), None)
    if broken is not None:
        return Trouble(broken.status, f"a part is missing: {broken.reason}")
    return sum(one for one in values if not isinstance(one, Trouble))


def _window(context: Context, rail: Rail) -> float | None:
    seconds = number(context, rail.folder / "update_period", 1e-6)
    return None if isinstance(seconds, Trouble) or seconds <= 0 else seconds


def _finding(channel: Channel, value: float | Trouble) -> Finding:
    if not isinstance(value, Trouble):
        return Finding(channel.id, "ok", channel=channel)
    remedy = f"echo 1 | sudo tee {TOP}/*/enable" if "is off" in value.reason else ""
    return Finding(channel.id, value.status, value.reason, remedy, channel)
