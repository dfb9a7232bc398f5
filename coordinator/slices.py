"""Weights files a slice at a time: read, and written durably, without ever holding a whole tensor.

What is computed in between is `aggregate`'s and `application`'s.
"""

import hashlib
import json
import math
import os
import struct
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinator.checkpoints import sync_folder
from edged import weights
from edged.messages import Manifest
from edged.weights import DTYPES, Entry, WeightsError

if TYPE_CHECKING:
    from numpy.typing import NDArray

SLICE_ELEMENTS: Final = 1 << 20

NUMPY: Final = {**weights.NUMPY, "BOOL": "u1"}
"""As `edged.weights` has them, but truth values as the bytes that they are."""


def widest_first(entries: Mapping[str, Entry]) -> list[str]:
    """Names in the order of a file in which every tensor is aligned."""
    return sorted(entries, key=lambda name: (-DTYPES[entries[name].dtype], name))


def whole(path: Path) -> Iterator[bytes]:
    """The file's bytes, a slice at a time."""
    with path.open("rb") as file:
        while part := file.read(SLICE_ELEMENTS):
            yield part


def header(names: Sequence[str], entries: Mapping[str, Entry]) -> bytes:
    """The beginning of a weights file with these tensors in this order."""
    table, at = {}, 0
    for name in names:
        entry = entries[name]
        size = entry.end - entry.begin
        table[name] = {"dtype": entry.dtype, "shape": list(entry.shape), "data_offsets": [at, at + size]}
        at += size
    text = json.dumps(table, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    return struct.pack("<Q", len(text)) + text


def slices(path: Path, entry: Entry) -> "Iterator[NDArray[Any]]":
    """A tensor's values, flat, a slice at a time."""
    for start in range(0, math.prod(entry.shape), SLICE_ELEMENTS):
        yield piece(path, entry, start, SLICE_ELEMENTS)


def piece(path: Path, entry: Entry, start: int, elements: int) -> "NDArray[Any]":
    """So many values of a tensor from `start` on. Raises WeightsError where the file has become shorter."""
    # Read, not mapped: the pages of a map count as memory of this process until the whole map goes.
    import numpy as np

    count = min(elements, math.prod(entry.shape) - start)
    offset = entry.begin + start * DTYPES[entry.dtype]
    part = np.fromfile(path, NUMPY[entry.dtype], count, offset=offset)
    if len(part) != count:
        raise WeightsError(f"{path.name}: became shorter while it was read")
    return part


def write(target: Path, parts: Iterable[bytes], chunk_bytes: int) -> Manifest:
    """Write the file from its parts: whole or not at all, durable on return. Raises OSError."""
    digest, length = hashlib.sha256(), 0
    temporary = target.with_name(f".{target.name}.tmp")
    try:
        with temporary.open("wb") as file:
            for part in parts:
                file.write(part)
                digest.update(part)
                length += len(part)
            file.flush()
            os.fsync(file.fileno())
        temporary.replace(target)
        sync_folder(target.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise
    return Manifest(length, chunk_bytes, digest.hexdigest())
