"""IDX files (MNIST and its kin), gzip or plain: found in the usual folders, checked, mapped where plain.

Inspecting needs the standard library alone. The official files are known by their content, because mirrors
compress them anew: checksums of .gz files differ.
"""

from __future__ import annotations

import gzip
import hashlib
import math
import struct
import zlib
from pathlib import Path
from typing import IO, TYPE_CHECKING, NamedTuple

from edged.tasks._contract import OtherPoolError, PoolError

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

IMAGES_MAGIC = 2051
LABELS_MAGIC = 2049
MAX_SAMPLES = 10_000_000
SUBFOLDERS = ("", "MNIST/raw", "raw")
"""Flat, or as torchvision lays it out below its root, seen from the root or from `MNIST`."""
_CHUNK_BYTES = 1 << 20


class Pair(NamedTuple):
    """The two files of one part of the set."""

    images: Path
    labels: Path


class Content(NamedTuple):
    """What one file holds: sizes of its axes, checksums of the decompressed bytes, the greatest label."""

    shape: tuple[int, ...]
    md5: str
    sha256: str
    greatest: int


def pairs(folder: Path) -> dict[str, Pair]:
    """The parts `train` and `t10k` in the folder. Raises PoolError where one half of a pair is missing."""
    found: dict[str, Pair] = {}
    for part in ("train", "t10k"):
        for below in SUBFOLDERS:
            images, labels = (
                _existing(folder / below, part, kind) for kind in ("images-idx3", "labels-idx1")
            )
            if images and labels:
                found[part] = Pair(images, labels)
                break
            if images or labels:
                has, kind = images or labels, "labels-idx1" if images else "images-idx3"
                raise PoolError(f"{has}: its other half {part}-{kind}-ubyte[.gz] is missing beside it")
    if not found:
        raise OtherPoolError(f"{folder}: no train- or t10k-images-idx3-ubyte[.gz] in it or in MNIST/raw")
    return found


def read(path: Path, magic: int) -> Content:
    """Goes through a whole file. Raises PoolError naming it and what was expected."""
    md5, sha256 = hashlib.md5(usedforsecurity=False), hashlib.sha256()
    greatest = 0
    with _open(path) as file:
        header, shape = _header(path, file, magic)
        md5.update(header)
        sha256.update(header)
        left = math.prod(shape)
        while left:
            chunk = _some(path, file, min(left, _CHUNK_BYTES))
            if not chunk:
                raise PoolError(f"{path}: truncated, {left} of {math.prod(shape)} bytes are missing")
            md5.update(chunk)
            sha256.update(chunk)
            if magic == LABELS_MAGIC:
                greatest = max(greatest, *chunk)
            left -= len(chunk)
        _expect_end(path, file, shape)
    return Content(shape, md5.hexdigest(), sha256.hexdigest(), greatest)


def array(path: Path, magic: int) -> NDArray[np.uint8]:
    """The samples as uint8: a read-only map of a plain file, decompressed into memory otherwise."""
    import numpy as np

    with _open(path) as file:
        header, shape = _header(path, file, magic)
        if not isinstance(file, gzip.GzipFile):
            if path.stat().st_size != len(header) + math.prod(shape):
                raise PoolError(
                    f"{path}: {path.stat().st_size} bytes, its header tells of {math.prod(shape)}"
                )
            return np.memmap(path, np.uint8, "r", offset=len(header), shape=shape).view(np.ndarray)
        values = np.empty(math.prod(shape), np.uint8)
        at = 0
        while at < len(values):
            chunk = _some(path, file, min(len(values) - at, _CHUNK_BYTES))
            if not chunk:
                raise PoolError(f"{path}: truncated, {len(values) - at} of {len(values)} bytes are missing")
            values[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
            at += len(chunk)
        # Reading past the end also makes gzip compare its checksum.
        _expect_end(path, file, shape)
    return values.reshape(shape)


def _open(path: Path) -> IO[bytes]:
    # By content, not by suffix: browsers and tools drop or keep ".gz" as they like.
    try:
        file = path.open("rb")
    except OSError as error:
        raise PoolError(f"{path}: {error.strerror}") from None
    start = file.read(2)
    file.seek(0)
    if start != b"\x1f\x8b":
        return file
    file.close()
    return gzip.open(path)  # type: ignore[return-value]


def _header(path: Path, file: IO[bytes], magic: int) -> tuple[bytes, tuple[int, ...]]:
    axes = magic % 256
    header = _some(path, file, 4 + 4 * axes)
    if len(header) >= 4:
        (found,) = struct.unpack(">I", header[:4])
        if found != magic:
            kinds = {IMAGES_MAGIC: " (an image file)", LABELS_MAGIC: " (a label file)"}
            raise PoolError(f"{path}: magic {found}{kinds.get(found, '')}, expected {magic}{kinds[magic]}")
    if len(header) < 4 + 4 * axes:
        raise PoolError(f"{path}: truncated in its header")
    shape = struct.unpack(f">{axes}I", header[4:])
    if not 0 < shape[0] <= MAX_SAMPLES or math.prod(shape[1:]) > 1 << 20:
        raise PoolError(f"{path}: its header tells of {' x '.join(map(str, shape))}, which nobody's data has")
    return header, shape


def _expect_end(path: Path, file: IO[bytes], shape: tuple[int, ...]) -> None:
    if _some(path, file, 1):
        raise PoolError(f"{path}: goes on after the {shape[0]} samples that its header tells of")


def _some(path: Path, file: IO[bytes], size: int) -> bytes:
    try:
        return file.read(size)
    except EOFError:
        raise PoolError(f"{path}: truncated gzip file") from None
    except (OSError, zlib.error) as error:
        raise PoolError(f"{path}: not a sound gzip file: {error}") from None


def _existing(folder: Path, part: str, kind: str) -> Path | None:
    # Plain before .gz: it can be mapped. The dot is how some archives spell the first hyphen.
    stems = (f"{part}-{kind}-ubyte", f"{part}-{kind.replace('-', '.', 1)}-ubyte")
    for name in [*stems, *(f"{stem}.gz" for stem in stems)]:
        if (folder / name).is_file():
            return folder / name
    return None
