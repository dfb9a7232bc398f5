"""Weather series out of NetCDF files as the Climate Data Store has served them: NetCDF3 with `time`, NetCDF4
with `valid_time`, and the zip of several that is named `.nc`. Needs netCDF4; for `prepare` on a PC only.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from edged.formats.archives import Member
from edged.formats.series import TIMES, Series, nearest
from edged.tasks._contract import PoolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

MAGICS = (b"CDF\x01", b"CDF\x02", b"CDF\x05", b"\x89HDF")
MAX_VALUES = 1 << 31


def is_netcdf(start: bytes) -> bool:
    """Whether these are the first bytes of a NetCDF file of any generation."""
    return start[:4] in MAGICS


def read(member: Member, variables: Sequence[str], place: tuple[float, float] | None) -> Series:
    """Those of the variables that are in the file, at the grid point nearest to `place` (latitude, longitude;
    None: the grid's middle). Raises PoolError where final and preliminary data are mixed.
    """
    import numpy as np

    file = _open(member.shown, member.read())
    try:
        has = tuple(name for name in file.variables if name not in _AXES and file.variables[name].ndim >= 1)
        times, columns, where = np.empty(0, np.int64), {}, ""
        for name in variables:
            if name in has:
                times, columns[name], where = _column(member.shown, file, name, place)
    finally:
        file.close()
    return Series(times, columns, where, has)


_AXES = {*TIMES, "latitude", "longitude", "expver", "number"}


def _open(shown: str, content: bytes) -> Any:
    try:
        import netCDF4
    except ImportError:
        raise PoolError(f"{shown}: NetCDF needs netCDF4: pip install 'edged[data]'") from None
    try:
        return netCDF4.Dataset("memory", memory=content)
    except (OSError, ValueError, RuntimeError) as error:
        raise PoolError(f"{shown}: not a sound NetCDF file: {error}") from None


def _column(
    shown: str, file: Any, name: str, place: tuple[float, float] | None
) -> tuple[NDArray[np.int64], NDArray[np.float64], str]:
    import numpy as np

    variable = file.variables[name]
    if variable.size > MAX_VALUES:
        raise PoolError(f"{shown}: {name} has {variable.size} values, too many to read at once")
    axis = next((axis for axis in TIMES if axis in variable.dimensions), None)
    if axis is None:
        raise PoolError(f"{shown}: {name} has no time axis (dimensions {', '.join(variable.dimensions)})")
    _expect_one_version(shown, file)
    choice: list[Any] = []
    spots: list[str] = []
    for dimension in variable.dimensions:
        if dimension == axis:
            choice.append(slice(None))
        elif dimension in ("latitude", "longitude"):
            values = np.asarray(file.variables[dimension][:], np.float64)
            wanted = float(values[len(values) // 2]) if place is None else place[dimension == "longitude"]
            index = nearest(shown, dimension, values, wanted)
            choice.append(index)
            spots.append(f"{dimension} {values[index]:.6g}")
        elif len(file.dimensions[dimension]) == 1:
            choice.append(0)
        else:
            raise PoolError(f"{shown}: {name} has an axis {dimension!r} of {len(file.dimensions[dimension])}")
    try:
        values = np.ma.filled(variable[tuple(choice)].astype(np.float64), np.nan)
        stamps = _seconds(shown, file.variables[axis])
    except (OSError, RuntimeError) as error:
        raise PoolError(f"{shown}: {name} cannot be read: {error}") from None
    return stamps, values, ", ".join(spots)


def _expect_one_version(shown: str, file: Any) -> None:
    """ERA5T (preliminary, expver 5) differs from ERA5 (expver 1) where it is corrected later."""
    if "expver" in file.dimensions and len(file.dimensions["expver"]) > 1:
        raise PoolError(f"{shown}: mixed expver (ERA5 and preliminary ERA5T); ask for final months only")
    if "expver" in file.variables and file.variables["expver"].ndim == 1:
        versions = sorted({str(version) for version in file.variables["expver"][:]})
        if len(versions) > 1:
            raise PoolError(f"{shown}: mixed expver ({', '.join(versions)}); ask for final months only")


def _seconds(shown: str, times: Any) -> NDArray[np.int64]:
    import numpy as np
    from cftime import num2date

    try:
        calendar = getattr(times, "calendar", "standard")
        dates = num2date(times[:], times.units, calendar, only_use_cftime_datetimes=False)
    except (AttributeError, ValueError) as error:
        raise PoolError(f"{shown}: its times cannot be told: {error}") from None
    return np.array([np.datetime64(date.isoformat(), "s") for date in np.atleast_1d(dates)]).astype(np.int64)
