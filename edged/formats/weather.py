"""Any file that the Climate Data Store hands out, as one series: told apart by content, not by suffix."""

from __future__ import annotations

import zlib
from collections.abc import Sequence
from pathlib import Path

from edged.formats import archives, netcdf, series
from edged.formats.archives import Member
from edged.formats.series import Series
from edged.tasks._contract import PoolError

_MAX_UNPACKED = 1 << 30


def read(source: Path, variables: Sequence[str], place: tuple[float, float] | None) -> tuple[Series, str]:
    """The variables at one place over all files of a folder, an archive or a file; and the formats met."""
    parts: list[Series] = []
    formats: set[str] = set()
    for member in archives.members(source, _is_data):
        part, kind = _one(member, variables, place)
        parts.append(part)
        formats.add(kind)
    if not parts:
        raise PoolError(f"{source}: no .nc or .csv file in it")
    return series.merge(parts, variables, str(source)), " and ".join(sorted(formats))


def _is_data(name: str) -> bool:
    return name.lower().endswith((".nc", ".csv", ".csv.gz", ".nc4", ".grib", ".grb", ".zip"))


def _one(member: Member, variables: Sequence[str], place: tuple[float, float] | None) -> tuple[Series, str]:
    content = member.read()
    if content[:2] == b"\x1f\x8b":
        content = _unpacked(member.shown, content)
    start, member = content[:4], Member(member.name, member.shown, len(content), lambda: content)
    if start == b"GRIB":
        raise PoolError(
            f"{member.shown}: GRIB; convert it to NetCDF first, e.g. `cdo -f nc4 copy in.grib out.nc`,"
            " or download it as NetCDF"
        )
    if start == b"PK\x03\x04":
        raise PoolError(f"{member.shown}: a zip inside; unpack it and name the folder")
    if netcdf.is_netcdf(start):
        return netcdf.read(member, variables, place), "NetCDF3" if start[:3] == b"CDF" else "NetCDF4"
    if b"\0" in content[:1024]:
        raise PoolError(f"{member.shown}: neither NetCDF nor CSV (it begins {content[:8]!r})")
    return series.from_csv(member, variables, place), "CSV"


def _unpacked(shown: str, content: bytes) -> bytes:
    try:
        decoder = zlib.decompressobj(wbits=31)
        unpacked = decoder.decompress(content, _MAX_UNPACKED)
    except zlib.error as error:
        raise PoolError(f"{shown}: not a sound gzip file: {error}") from None
    if decoder.unconsumed_tail:
        raise PoolError(f"{shown}: grows beyond {_MAX_UNPACKED} bytes, refused")
    if not decoder.eof:
        raise PoolError(f"{shown}: truncated gzip file")
    return unpacked
