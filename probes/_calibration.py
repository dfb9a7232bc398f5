"""PURE. A channel scaled to what a better meter once said of the same board: factor, offset, date.

The scaled channel stands beside the raw one, which stays as it was. Measures nothing.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import sqrt
from statistics import fmean
from typing import Protocol

from probes import Channel, Status
from probes._energy import Level
from probes._settings import SettingError, number, scope, word

TABLE = "calibration"
SPREAD = 0.1  # of the mean: a load that varies less tells no slope from an offset


class Source(Protocol):
    """What is scaled: a series."""

    channel: Channel
    status: Status
    reason: str

    def level(self, at: float) -> Level | None: ...

    def watts(self) -> float | None: ...

    def known_joules(self) -> float | None: ...

    def covered_seconds(self) -> float: ...


@dataclass(frozen=True, slots=True)
class Calibration:
    """watts = factor x raw + offset_watts; the uncertainty holds the fit's spread and the meter's own."""

    channel_id: str
    factor: float
    offset_watts: float
    relative_uncertainty: float
    date: str
    against: str
    scope: str = "wall"


class Scaled:
    """A series seen through a calibration."""

    def __init__(self, raw: Source, calibration: Calibration) -> None:
        self._raw = raw
        self._by = calibration
        self.channel = channel(raw.channel, calibration)

    @property
    def status(self) -> Status:
        return self._raw.status

    @property
    def reason(self) -> str:
        return self._raw.reason

    def level(self, at: float) -> Level | None:
        raw = self._raw.level(at)
        if raw is None:
            return None
        factor, offset = self._by.factor, self._by.offset_watts
        return replace(
            raw,
            known_joules=factor * raw.known_joules + offset * raw.covered_seconds,
            filled_joules=factor * raw.filled_joules,
            sampling_variance=factor**2 * raw.sampling_variance,
        )

    def watts(self) -> float | None:
        raw = self._raw.watts()
        return None if raw is None else self._by.factor * raw + self._by.offset_watts

    def known_joules(self) -> float | None:
        raw = self._raw.known_joules()
        return (
            None
            if raw is None
            else self._by.factor * raw + self._by.offset_watts * self._raw.covered_seconds()
        )


def channel(raw: Channel, by: Calibration) -> Channel:
    """The scaled channel: another scope, `calibrated`, named after the raw one."""
    step = None if raw.resolution_joules is None else by.factor * raw.resolution_joules
    return replace(
        raw,
        id=f"{raw.id}@calibrated",
        scope=scope({"scope": by.scope}, TABLE, "wall"),
        basis="calibrated",
        relative_uncertainty=max(by.relative_uncertainty, raw.relative_uncertainty),
        source=f"{by.factor:g} x {raw.id} + {by.offset_watts:g} W, by {by.against} on {by.date}",
        resolution_joules=step,
        parent=None,
        contains=(raw.id,),
        twin=None,
        may_mirror=None,
        headline=True,
        note="",
        range_joules=None,
        max_watts=None,
    )


def parse(options: Mapping[str, Mapping[str, object]]) -> dict[str, Calibration]:
    """The `[energy.calibration."CHANNEL"]` tables. Raises SettingError."""
    found = {}
    for name, table in options.get(TABLE, {}).items():
        where = f'{TABLE}."{name}"'
        if not isinstance(table, Mapping):
            raise SettingError(f"energy.{where} is no table")
        offset = table.get("offset_watts", 0.0)
        if isinstance(offset, bool) or not isinstance(offset, (int, float)):
            raise SettingError(f"energy.{where}.offset_watts: {offset!r} is no number")
        found[name] = Calibration(
            channel_id=name,
            factor=number(table, where, "factor"),
            offset_watts=float(offset),
            relative_uncertainty=number(table, where, "relative_uncertainty", 0.05),
            date=word(table, where, "date"),
            against=word(table, where, "against", "a better meter"),
            scope=scope(table, where),
        )
    return found


def fit(raw_watts: Sequence[float], reference_watts: Sequence[float]) -> tuple[float, float, float]:
    """(factor, offset in watts, relative spread of what is left) of the reference's means over the raw ones.

    A slope and an offset by least squares where the load varied enough to tell them apart, else the factor
    alone. Raises ValueError where there is nothing to fit.
    """
    if len(raw_watts) < 2 or len(raw_watts) != len(reference_watts):
        raise ValueError("two or more pairs of watts are needed")
    raw, reference = fmean(raw_watts), fmean(reference_watts)
    if raw <= 0 or reference <= 0:
        raise ValueError("both meters must show watts")
    spread = sum((one - raw) ** 2 for one in raw_watts)
    factor, offset = reference / raw, 0.0
    if sqrt(spread / len(raw_watts)) > SPREAD * raw:
        pairs = zip(raw_watts, reference_watts, strict=True)
        slope = sum((x - raw) * (y - reference) for x, y in pairs) / spread
        if slope > 0:
            factor, offset = slope, reference - slope * raw
    left = [y - factor * x - offset for x, y in zip(raw_watts, reference_watts, strict=True)]
    return factor, offset, sqrt(fmean(one**2 for one in left)) / reference
