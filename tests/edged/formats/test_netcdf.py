"""NetCDF as the Climate Data Store has served it over the years, made small here, and its traps."""

import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged.formats import weather
from edged.tasks import PoolError

netcdf4 = pytest.importorskip("netCDF4", reason="NetCDF needs the extra edged[data]")

HOURS = 12


def _write(
    path: Path,
    generation: int,
    names: tuple[str, ...] = ("t2m",),
    versions: list[str] | None = None,
    version_axis: bool = False,
) -> None:
    """Generation 3: packed int16 over `time`; generation 4: float32 over `valid_time`."""
    kind = "NETCDF4" if generation == 4 else "NETCDF3_64BIT_OFFSET"
    with netcdf4.Dataset(path, "w", format=kind) as file:
        axis = "valid_time" if generation == 4 else "time"
        for name, size in ((axis, HOURS), ("latitude", 2), ("longitude", 3)):
            file.createDimension(name, size)
        times = file.createVariable(axis, "i8" if generation == 4 else "i4", (axis,))
        times.units = "seconds since 1970-01-01" if generation == 4 else "hours since 1900-01-01 00:00:00.0"
        start = 1_483_228_800 // 3600 if generation == 4 else 1_025_616  # 2017-01-01
        times[:] = (start + np.arange(HOURS)) * (3600 if generation == 4 else 1)
        file.createVariable("latitude", "f4", ("latitude",))[:] = [52.75, 52.5]
        file.createVariable("longitude", "f4", ("longitude",))[:] = [13.0, 13.25, 13.5]
        dimensions: tuple[str, ...] = (axis, "latitude", "longitude")
        if version_axis:
            file.createDimension("expver", 2)
            dimensions = (axis, "expver", "latitude", "longitude")
        if versions is not None:
            file.createVariable("expver", str, (axis,))[:] = np.array(versions, dtype=object)
        for name in names:
            packed: dict[str, Any] = {} if generation == 4 else {"fill_value": -32767}
            variable = file.createVariable(name, "f4" if generation == 4 else "i2", dimensions, **packed)
            if generation == 3:
                variable.scale_factor, variable.add_offset = 0.01, 280.0
            values = 275 + np.arange(HOURS)[:, None, None] + np.zeros((2, 3)) + np.arange(3) / 10
            variable[:] = np.stack([values, values], axis=1) if version_axis else values


@pytest.mark.parametrize(("generation", "kind"), [(3, "NetCDF3"), (4, "NetCDF4")])
def test_both_generations_give_the_same_series(generation: int, kind: str, tmp_path: Path) -> None:
    _write(tmp_path / "file.nc", generation)
    found, formats = weather.read(tmp_path / "file.nc", ("t2m",), (52.5, 13.3))
    assert formats == kind
    assert found.where == "latitude 52.5, longitude 13.25"
    assert found.seconds.tolist() == [1_483_228_800 + 3600 * hour for hour in range(HOURS)]
    assert found.columns["t2m"] == pytest.approx(275.1 + np.arange(HOURS), abs=0.006)


def test_a_zip_that_calls_itself_nc_is_read_over_its_members(tmp_path: Path) -> None:
    _write(tmp_path / "instant.nc", 4, ("t2m", "u10"))
    _write(tmp_path / "accum.nc", 4, ("ssrd",))
    with zipfile.ZipFile(tmp_path / "download.nc", "w") as archive:
        for name in ("instant", "accum"):
            archive.write(tmp_path / f"{name}.nc", f"data_stream-oper_stepType-{name}.nc")
    found, _ = weather.read(tmp_path / "download.nc", ("ssrd", "t2m"), None)
    assert list(found.columns) == ["ssrd", "t2m"]
    with pytest.raises(PoolError, match="no variable 'sp', there are ssrd, t2m, u10"):
        weather.read(tmp_path / "download.nc", ("sp",), None)


def test_longitudes_may_run_either_way(tmp_path: Path) -> None:
    _write(tmp_path / "file.nc", 4)
    found, _ = weather.read(tmp_path / "file.nc", ("t2m",), (52.5, 373.25))
    assert found.where.endswith("longitude 13.25")
    with pytest.raises(PoolError, match=r"no longitude near -13, it has 13 to 13\.5"):
        weather.read(tmp_path / "file.nc", ("t2m",), (52.5, -13))


def test_a_missing_value_is_not_a_number_and_not_minus_32767(tmp_path: Path) -> None:
    _write(tmp_path / "file.nc", 3)
    with netcdf4.Dataset(tmp_path / "file.nc", "a") as file:
        file.variables["t2m"].set_auto_maskandscale(False)
        file.variables["t2m"][4] = -32767
    found, _ = weather.read(tmp_path / "file.nc", ("t2m",), None)
    assert np.isnan(found.columns["t2m"]).tolist() == [hour == 4 for hour in range(HOURS)]


def test_final_and_preliminary_data_are_not_mixed(tmp_path: Path) -> None:
    _write(tmp_path / "new.nc", 4, versions=["0001"] * 8 + ["0005"] * 4)
    with pytest.raises(PoolError, match=r"new.nc: mixed expver \(0001, 0005\)"):
        weather.read(tmp_path / "new.nc", ("t2m",), None)
    _write(tmp_path / "old.nc", 3, version_axis=True)
    with pytest.raises(PoolError, match=r"old.nc: mixed expver \(ERA5 and preliminary ERA5T\)"):
        weather.read(tmp_path / "old.nc", ("t2m",), None)
    _write(tmp_path / "final.nc", 4, versions=["0001"] * HOURS)
    weather.read(tmp_path / "final.nc", ("t2m",), None)


def test_a_truncated_file_is_named(tmp_path: Path) -> None:
    _write(tmp_path / "file.nc", 4)
    content = (tmp_path / "file.nc").read_bytes()
    (tmp_path / "file.nc").write_bytes(content[: len(content) // 2])
    with pytest.raises(PoolError, match=r"file.nc: not a sound NetCDF file"):
        weather.read(tmp_path / "file.nc", ("t2m",), None)
