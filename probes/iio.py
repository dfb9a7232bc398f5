"""Power monitors under IIO: PAC1934 (PolarFire Icicle and others), INA2xx and MAX9611 by their IIO drivers.

Raw x scale is milliwatts (sysfs-bus-iio, in_powerY_raw). They sit on rails: none is the board's input by
itself, unless `[energy.iio] input = "iio/..."` says so. Their energy files are not used.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, entries, number, sample, text
from probes._hwmon import address_of, word

TOP = "/sys/bus/iio/devices"
MILLI = 1e-3
POWER = re.compile(r"in_power(\d*)_raw")


class Rail(NamedTuple):
    """One power channel; `raw` x `scale` are milliwatts."""

    id: str
    chip: str
    raw: Path
    scale: float | Trouble


class Iio:
    name = "iio"

    def detect(self, context: Context) -> list[Finding]:
        found = []
        wanted = context.options.get(self.name, {}).get("input")
        for rail in _rails(context):
            mine = rail.id == wanted
            channel = Channel(
                id=rail.id,
                kind="power",
                scope="dc_in" if mine else "rail",
                basis="measured",
                relative_uncertainty=0.02,
                source=f"{rail.chip}: {rail.raw.name}",
                headline=mine,
            )
            value = _watts(context, rail)
            if isinstance(value, Trouble):
                found.append(Finding(rail.id, value.status, value.reason, channel=channel))
            else:
                found.append(Finding(rail.id, "ok", channel=channel))
        return found

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        """One reader per chip."""
        wanted = {channel.id for channel in channels}
        chips: dict[Path, list[Rail]] = {}
        for rail in _rails(context):
            if rail.id in wanted:
                chips.setdefault(rail.raw.parent, []).append(rail)
        return [Rails(context, mine) for mine in chips.values()]


class Rails:
    """The rails of one chip."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, rails: Sequence[Rail]) -> None:
        self._context = context
        self._rails = rails
        self.channel_ids: tuple[str, ...] = tuple(rail.id for rail in rails)

    def read(self) -> list[Sample]:
        return [sample(self._context, rail.id, partial(_watts, self._context, rail)) for rail in self._rails]

    def close(self) -> None: ...


def create() -> Iio:
    return Iio()


def _rails(context: Context) -> list[Rail]:
    top = context.path(TOP)
    found = []
    for device in entries(top):
        folder = top / device
        said = text(context, folder / "name")
        chip = "" if isinstance(said, Trouble) else said
        place = address_of(folder) or chip
        for file in entries(folder):
            match = POWER.fullmatch(file)
            if match is None or not place:
                continue
            k = match.group(1)
            names = [
                text(context, folder / f"in_{kind}{k}_label") for kind in ("power", "voltage", "current")
            ]
            label = next((one for one in names if isinstance(one, str) and one), f"power{k}")
            found.append(Rail(f"iio/{place}/{word(label)}", chip, folder / file, _scale(context, folder, k)))
    return found


def _scale(context: Context, folder: Path, k: str) -> float | Trouble:
    """A channel's own scale, else the chip's; the ABI has no default but 1 for a file that is not there."""
    for name in (f"in_power{k}_scale", "in_power_scale"):
        said = text(context, folder / name)
        if isinstance(said, Trouble):
            if said.status != "absent":
                return said
            continue
        try:
            value = float(said)
        except ValueError:
            value = -1.0
        if 0 < value < 1e6:
            return value
        return Trouble("invalid", f"{folder / name}: {said[:40]!r} is no scale")
    return 1.0


def _watts(context: Context, rail: Rail) -> float | Trouble:
    if isinstance(rail.scale, Trouble):
        return rail.scale
    value = number(context, rail.raw, rail.scale * MILLI)
    if not isinstance(value, Trouble) and value < 0:
        return Trouble("invalid", f"{rail.raw}: feeds back ({value:.3f} W)")
    return value
