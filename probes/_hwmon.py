"""Finds hwmon chips wherever they show, with names that do not move at boot. Reads no values."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from probes import Context
from probes._files import Trouble, entries, text

I2C = re.compile(r"\d+-[0-9a-f]{4}")


class Chip(NamedTuple):
    """One hwmon folder. `place` is its bus address (`1-0040`), or its name where it has none."""

    path: Path
    name: str
    place: str


def chips(context: Context) -> list[Chip]:
    """Every hwmon folder once, whether it is reached by class, device or driver."""
    found: dict[str, Chip] = {}
    for path in _folders(context):
        real = os.path.realpath(path)
        if real in found:
            continue
        said = text(context, path / "name")
        name = "" if isinstance(said, Trouble) else said
        found[real] = Chip(path, name, address_of(path) or name)
    ordered = sorted(found.values(), key=lambda chip: (chip.place, chip.path.name))
    named: dict[str, int] = {}
    unique = []
    for chip in ordered:
        named[chip.place] = named.get(chip.place, 0) + 1
        number = named[chip.place]
        unique.append(chip if number == 1 else chip._replace(place=f"{chip.place}.{number}"))
    return unique


def channels_of(chip: Chip, kind: str, ending: str) -> list[int]:
    """The numbers K of files like power{K}_input."""
    pattern = re.compile(rf"{kind}(\d+)_{ending}")
    matches = (pattern.fullmatch(name) for name in entries(chip.path))
    return sorted(int(match.group(1)) for match in matches if match is not None)


def label(context: Context, chip: Chip, *names: str) -> str:
    """The first label file that says something; empty where none does."""
    for name in names:
        said = text(context, chip.path / f"{name}_label")
        if not isinstance(said, Trouble) and said:
            return said
    return ""


def word(said: str) -> str:
    """A label fit for an id."""
    return re.sub(r"[^A-Za-z0-9_.+-]", "_", said)[:40]


def _folders(context: Context) -> Iterator[Path]:
    top = context.path("/sys/class/hwmon")
    for name in entries(top):
        yield top / name
    devices = context.path("/sys/bus/i2c/devices")
    for device in entries(devices):
        for name in entries(devices / device / "hwmon"):
            yield devices / device / "hwmon" / name
    drivers = context.path("/sys/bus/i2c/drivers")
    for driver in entries(drivers):
        for device in entries(drivers / driver):
            if I2C.fullmatch(device):
                for name in entries(drivers / driver / device / "hwmon"):
                    yield drivers / driver / device / "hwmon" / name


def address_of(path: Path) -> str:
    """The last I2C address on the way to a folder or to its device; empty where there is none."""
    for way in (os.path.realpath(path), os.path.realpath(path / "device")):
        found = [part for part in Path(way).parts if I2C.fullmatch(part)]
        if found:
            return found[-1]
    return ""
