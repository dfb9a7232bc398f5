"""Small files of /sys and /proc, read so that every trouble is a status with a reason."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

from probes import Context, Sample, Status

DIGITS = 24  # no kernel counter is longer
MOST_BYTES = 1 << 16  # /proc/stat has a line for each core, of some 70 bytes


class Trouble(NamedTuple):
    """Why there is no value."""

    status: Status
    reason: str


def read_bytes(path: Path) -> bytes:
    """The first 64 KiB of a file: open, read, close. Raises OSError."""
    handle = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
    try:
        return os.read(handle, MOST_BYTES)
    finally:
        os.close(handle)


def text(context: Context, path: Path) -> str | Trouble:
    """The stripped text of a file."""
    try:
        return context.read_bytes(path).decode("ascii", "replace").strip()
    except OSError as error:
        return trouble(error, shown(context, path))


def shown(context: Context, path: Path) -> Path:
    """The path as the board itself knows it: without the root below which its files lie."""
    return Path("/") / path.relative_to(context.root) if path.is_relative_to(context.root) else path


def trouble(error: OSError, path: Path) -> Trouble:
    """EACCES, EPERM: `denied`; a missing file or device: `absent`; a driver's failure: `invalid`."""
    name = errno.errorcode.get(error.errno or 0, "error")
    if isinstance(error, TimeoutError):
        return Trouble("stale", f"{path}: the read does not come back")
    if isinstance(error, PermissionError):
        return Trouble("denied", f"{path}: not permitted")
    if error.errno in (errno.ENOENT, errno.ENOTDIR, errno.ENODEV, errno.ENXIO):
        return Trouble("absent", f"{path}: not there ({name})")
    return Trouble("invalid", f"{path}: {name}")


def number(context: Context, path: Path, unit: float = 1.0) -> float | Trouble:
    """A whole number in a file, times the unit of its ABI (1e-6 for micro)."""
    found = text(context, path)
    if isinstance(found, Trouble):
        return found
    value = whole(found)
    if value is None:
        said = repr(found[:40]) if found else "an empty file"
        return Trouble("invalid", f"{shown(context, path)}: {said} is no number")
    return value * unit


def whole(found: str) -> int | None:
    """A decimal integer of sane length; None for anything else (underscores, hex, words)."""
    digits = found[1:] if found[:1] in "+-" else found
    return int(found) if digits.isascii() and digits.isdigit() and len(digits) <= DIGITS else None


def entries(path: Path) -> list[str]:
    """Names in a folder, sorted; empty where it cannot be listed."""
    try:
        return sorted(os.listdir(path))  # noqa: PTH208 -- names only, and a vanishing folder is no error
    except OSError:
        return []


def sample(context: Context, channel_id: str, read: Callable[[], float | Trouble]) -> Sample:
    """One reading with its instant: the middle of the read, which is where the value was true."""
    before = context.clock.monotonic()
    value = read()
    after = context.clock.monotonic()
    at, boot = (before + after) / 2, context.clock.boottime()
    if isinstance(value, Trouble):
        return Sample(channel_id, at, boot, None, value.status, value.reason)
    return Sample(channel_id, at, boot, value, delay_seconds=after - before)
