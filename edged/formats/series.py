"""Series of hours at one place: read from CSV in any order of columns, and merged over files."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, NamedTuple

from edged.tasks._contract import PoolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from edged.formats.archives import Member

TIMES = ("valid_time", "time")
MAX_CSV_BYTES = 1 << 30
MAX_DEGREES = 0.5
"""Farther from every grid point than this, a place is not in the data (ERA5's grid is 0.25 degrees)."""


class Series(NamedTuple):
    """Values by name over `seconds` since 1970 (UTC), NaN where missing; `has`: all names in the file."""

    seconds: NDArray[np.int64]
    columns: Mapping[str, NDArray[np.float64]]
    where: str
    has: tuple[str, ...]


def from_csv(member: Member, variables: Sequence[str], place: tuple[float, float] | None) -> Series:
    """Those of the variables that are in a time-series CSV; of several places the one nearest to `place`
    (latitude, longitude; None: the first)."""
    import numpy as np

    rows = _rows(member)
    header = [name.strip() for name in next(rows, [])]
    time = next((name for name in TIMES if name in header), None)
    if time is None:
        raise PoolError(f"{member.shown}: no header with {' or '.join(TIMES)}, it begins {header[:4]}")
    places = [name for name in ("latitude", "longitude") if name in header]
    has = tuple(name for name in header if name not in {time, *places})
    names = [name for name in variables if name in has]
    at = [header.index(name) for name in (*names, *places)]
    stamps: list[np.datetime64] = []
    values: list[list[float]] = []
    for number, row in enumerate(rows, start=2):
        try:
            if row:
                stamps.append(np.datetime64(row[header.index(time)].strip().removesuffix("Z"), "s"))
                values.append([float(row[index]) if row[index].strip() else np.nan for index in at])
        except (ValueError, IndexError) as error:
            raise PoolError(f"{member.shown}: line {number}: {error}") from None
    if not values:
        raise PoolError(f"{member.shown}: a header and no rows")
    table, seconds = np.array(values, np.float64), np.array(stamps, "datetime64[s]").astype(np.int64)
    spots = []
    for index, name in enumerate(places, start=len(names)):
        wanted = table[0, index] if place is None else place[name == "longitude"]
        spot = table[nearest(member.shown, name, table[:, index], wanted), index]
        chosen = table[:, index] == spot
        table, seconds = table[chosen], seconds[chosen]
        spots.append(f"{name} {spot:.6g}")
    return Series(seconds, {name: table[:, i] for i, name in enumerate(names)}, ", ".join(spots), has)


def merge(parts: Sequence[Series], variables: Sequence[str], shown: str) -> Series:
    """One series over all times, sorted. Raises PoolError where a variable is in no part (naming those that
    are), or where two parts tell different values for one hour."""
    import numpy as np

    has = sorted({name for part in parts for name in part.has})
    missing = [name for name in variables if not any(name in part.columns for part in parts)]
    if missing:
        raise PoolError(f"{shown}: no variable {missing[0]!r}, there are {', '.join(has) or 'none'}")
    seconds = np.unique(np.concatenate([part.seconds for part in parts if part.columns]))
    columns = {name: np.full(len(seconds), np.nan) for name in variables}
    for part in parts:
        at = np.searchsorted(seconds, part.seconds)
        if len(np.unique(part.seconds)) != len(part.seconds):
            raise PoolError(f"{shown}: an hour occurs twice")
        for name, values in part.columns.items():
            before = columns[name][at]
            if (np.isfinite(before) & np.isfinite(values) & (before != values)).any():
                raise PoolError(f"{shown}: two files tell different values of {name} for the same hour")
            columns[name][at] = np.where(np.isfinite(values), values, before)
    where = next((part.where for part in parts if part.where), "")
    return Series(seconds, columns, where, tuple(has))


def nearest(shown: str, axis: str, values: NDArray[np.float64], wanted: float) -> int:
    """Position of the value nearest to `wanted`; longitudes may run 0..360 or -180..180."""
    import numpy as np

    apart = np.abs(values - wanted)
    if axis == "longitude":
        apart = np.abs((values - wanted + 180) % 360 - 180)
    index = int(apart.argmin())
    if apart[index] > MAX_DEGREES:
        raise PoolError(f"{shown}: no {axis} near {wanted:g}, it has {values.min():g} to {values.max():g}")
    return index


def _rows(member: Member) -> Iterator[list[str]]:
    if member.size > MAX_CSV_BYTES:
        raise PoolError(f"{member.shown}: {member.size} bytes, more than the {MAX_CSV_BYTES} of a series")
    try:
        yield from csv.reader(io.StringIO(member.read().decode("utf-8-sig")))
    except UnicodeDecodeError as error:
        raise PoolError(f"{member.shown}: not UTF-8 text at byte {error.start}") from None
    except csv.Error as error:
        raise PoolError(f"{member.shown}: not a CSV file: {error}") from None
