"""The watts and joules of one hwmon chip, by the kernel's ABI: micro for both, milli for V and A."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from probes import Context, Cost, Sample
from probes._chips import pairs
from probes._files import Trouble, number, sample, shown, text
from probes._hwmon import Chip, channels_of, label, word

MILLI = 1e-3
MICRO = 1e-6
FROZEN_JOULES = (
    20.0  # a counter that stands still while its own watts make this much is dead (seen on a P550)
)


class Quantity(NamedTuple):
    """One file of watts or joules, or a voltage and a current to multiply."""

    id: str
    kind: Literal["counter", "power"]
    label: str
    path: Path | None
    volts: Path | None = None  # of the same place; multiplied only where there is no `path`
    amperes: Path | None = None
    enable: Path | None = None
    twin: str | None = None

    def describe(self) -> str:
        if self.path is not None:
            return self.path.name
        return f"{self.volts.name if self.volts else ''} x {self.amperes.name if self.amperes else ''}"

    def read(self, context: Context) -> float | Trouble:
        if self.enable is not None and text(context, self.enable) == "0":
            return Trouble("absent", f"{shown(context, self.enable)}: the sensor is off")
        if self.kind == "counter" and self.path is not None:
            return number(context, self.path, MICRO)
        amperes = number(context, self.amperes, MILLI) if self.amperes is not None else 0.0
        if isinstance(amperes, Trouble):
            if self.path is None:
                return amperes
            amperes = 0.0
        if amperes < 0 and self.amperes is not None:
            # INA219 and INA226 give watts without a sign; the current has it.
            back = f"{amperes:.3f} A flows back, this is no consumption"
            return Trouble("invalid", f"{shown(context, self.amperes)}: {back}")
        if self.path is not None:
            return number(context, self.path, MICRO)
        assert self.volts is not None
        volts = number(context, self.volts, MILLI)
        return volts if isinstance(volts, Trouble) else volts * amperes


def quantities(context: Context, chip: Chip) -> list[Quantity]:
    """What one chip measures; nothing where it has neither watts nor joules nor a known pair."""
    energies = channels_of(chip, "energy", "input")
    found: list[Quantity] = []
    powers: dict[int, str] = {}
    for k in channels_of(chip, "power", "input"):
        powers[k] = "input"
    for k in channels_of(chip, "power", "average"):
        powers.setdefault(k, "average")
    products = [] if powers else [pair for pair in pairs(chip) if _there(chip, *pair)]
    ids = _ids(context, chip, [*energies, *powers, *(amperes for _, amperes in products)])
    for k in energies:
        name = f"{ids[k]}/energy"
        twin = ids[k] if k in powers else None
        said = label(context, chip, f"energy{k}", f"power{k}", f"in{k}")
        found.append(
            Quantity(
                name,
                "counter",
                said,
                chip.path / f"energy{k}_input",
                enable=_enable(chip, "energy", k),
                twin=twin,
            )
        )
    for k, ending in powers.items():
        current = chip.path / f"curr{k}_input"
        twin = f"{ids[k]}/energy" if k in energies else None
        said = label(context, chip, f"power{k}", f"in{k}", f"curr{k}")
        found.append(
            Quantity(
                ids[k],
                "power",
                said,
                chip.path / f"power{k}_{ending}",
                volts=chip.path / f"in{k}_input",
                amperes=current if current.exists() else None,
                enable=_enable(chip, "power", k),
                twin=twin,
            )
        )
    for volts, amperes in products:
        said = label(context, chip, f"in{volts}", f"curr{amperes}")
        found.append(
            Quantity(
                ids[amperes],
                "power",
                said,
                None,
                chip.path / f"in{volts}_input",
                chip.path / f"curr{amperes}_input",
                _enable(chip, "in", volts),
            )
        )
    return [one for one in found if one.label != "NC"]


class Quantities:
    """Reads one chip, and finds out a counter that has died while its watts go on."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, found: Sequence[Quantity]) -> None:
        self._context = context
        self._found = list(found)
        self._spent: dict[
            str, tuple[float, float, float]
        ] = {}  # counter: its value, joules by watts since, when
        self.channel_ids: tuple[str, ...] = tuple(one.id for one in found)

    def read(self) -> list[Sample]:
        samples = {
            one.id: sample(self._context, one.id, partial(one.read, self._context)) for one in self._found
        }
        for one in self._found:
            if one.kind == "counter" and one.twin in samples:
                samples[one.id] = self._judged(samples[one.id], samples[one.twin])
        return list(samples.values())

    def close(self) -> None: ...

    def _judged(self, counter: Sample, watts: Sample) -> Sample:
        if counter.value is None or watts.value is None:
            return counter
        value, spent, at = self._spent.get(counter.channel_id, (-1.0, 0.0, counter.monotonic_seconds))
        if value != counter.value:
            self._spent[counter.channel_id] = (counter.value, 0.0, counter.monotonic_seconds)
            return counter
        spent += watts.value * (counter.monotonic_seconds - at)
        self._spent[counter.channel_id] = (value, spent, counter.monotonic_seconds)
        if spent <= FROZEN_JOULES:
            return counter
        reason = f"the counter stands still while {watts.channel_id} made {spent:.0f} J"
        return Sample(
            counter.channel_id, counter.monotonic_seconds, counter.boottime_seconds, None, "frozen", reason
        )


def _there(chip: Chip, volts: int, amperes: int) -> bool:
    return (chip.path / f"in{volts}_input").exists() and (chip.path / f"curr{amperes}_input").exists()


def _enable(chip: Chip, kind: str, k: int) -> Path | None:
    path = chip.path / f"{kind}{k}_enable"
    return path if path.exists() else None


def _ids(context: Context, chip: Chip, numbers: Sequence[int]) -> dict[int, str]:
    """By label where all labels differ, else by number."""
    labels = {k: label(context, chip, f"power{k}", f"energy{k}", f"in{k}", f"curr{k}") for k in numbers}
    said = [one for one in labels.values() if one]
    unlike = len(set(said)) == len(labels)
    return {k: f"hwmon/{chip.place}/{word(labels[k]) if unlike else f'power{k}'}" for k in labels}
