"""Weights as safetensors files: written the same byte for byte, and distrusted when read.

The header is read by this file alone (stdlib), so that a hostile file is refused before any library sees it.
Shapes and dtypes are compared with what is expected; nothing here averages or trains.
"""

from __future__ import annotations

import json
import math
import os
import struct
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, NoReturn

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

MAX_HEADER_BYTES = 8 << 20
MAX_DIMENSIONS = 8
MAX_NAME_CHARACTERS = 256
DTYPES = {"F64": 8, "F32": 4, "F16": 2, "I64": 8, "I32": 4, "I16": 2, "I8": 1, "U8": 1, "BOOL": 1}
"""Allowed dtypes and the bytes of one element."""
NUMPY = {
    "F64": "<f8",
    "F32": "<f4",
    "F16": "<f2",
    "I64": "<i8",
    "I32": "<i4",
    "I16": "<i2",
    "I8": "i1",
    "U8": "u1",
    "BOOL": "?",
}
"""How numpy reads the little-endian elements of each."""
_CHUNK_ELEMENTS = 1 << 20

Schema = dict[str, tuple[str, tuple[int, ...]]]
"""Tensor name -> (dtype, shape), sorted by name."""


class WeightsError(ValueError):
    """A weights file that is not what it should be; the text names the file and the tensor."""


class Entry(NamedTuple):
    """Where a tensor lies: `begin` and `end` are bytes from the start of the file."""

    dtype: str
    shape: tuple[int, ...]
    begin: int
    end: int


def save(path: Path, tensors: Mapping[str, Any], durable: bool = False) -> None:
    """Writes torch tensors or numpy arrays; equal tensors give equal bytes, whatever the mapping's order.

    The file appears whole or not at all; `durable` also waits until the disk has it.
    """
    from safetensors import SafetensorError
    from safetensors.numpy import save_file

    arrays = {name: _plain(name, tensors[name], path) for name in sorted(tensors)}
    temporary = path.with_name(f".{path.name}.{os.getpid()}.tmp")
    try:
        try:
            save_file(arrays, temporary)
        except SafetensorError as error:
            raise WeightsError(f"{path}: cannot be written: {error}") from None
        if durable:
            _sync(temporary)
        temporary.replace(path)
        if durable:
            _sync(path.parent)
    except BaseException:
        with suppress(FileNotFoundError):
            temporary.unlink()
        raise


def read_header(path: Path) -> dict[str, Entry]:
    """The tensors of a file, sorted by name. Raises WeightsError where they leave a gap in it or overlap."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            prefix = file.read(8)
            if len(prefix) < 8:
                _fail(path, f"{size} bytes are too few for a safetensors file")
            (length,) = struct.unpack("<Q", prefix)
            if length > min(MAX_HEADER_BYTES, size - 8):
                _fail(
                    path, f"a header of {length} bytes does not fit (file {size}, limit {MAX_HEADER_BYTES})"
                )
            text = file.read(length)
    except OSError as error:
        _fail(path, f"cannot be read: {error.strerror}")
    entries = {
        name: _entry(path, name, value, 8 + length)
        for name, value in _parse(path, text).items()
        if name != "__metadata__"
    }
    at = 8 + length
    for name, entry in sorted(entries.items(), key=lambda item: (item[1].begin, item[1].end)):
        if entry.begin != at:
            _fail(path, f"tensor {name!r} begins at byte {entry.begin}, expected {at} (no gap, no overlap)")
        at = entry.end
    if at != size:
        _fail(path, f"the tensors end at byte {at}, the file at {size}")
    return dict(sorted(entries.items()))


def schema(path: Path) -> Schema:
    """Names, dtypes and shapes of a file."""
    return {name: (entry.dtype, entry.shape) for name, entry in read_header(path).items()}


def check(
    path: Path, expected: Mapping[str, tuple[str, tuple[int, ...]]], norm_bound: float | None = None
) -> None:
    """Raises WeightsError naming the first tensor with another name, shape or dtype than expected, with a
    value that is not finite, or with an L2 norm above `norm_bound`. Memory: one chunk of one tensor."""
    import numpy as np

    entries = read_header(path)
    missing, extra = sorted(expected.keys() - entries.keys()), sorted(entries.keys() - expected.keys())
    if missing or extra:
        _fail(path, f"tensor {(missing or extra)[0]!r} is {'missing' if missing else 'not in the model'}")
    for name, entry in entries.items():
        dtype, shape = expected[name]
        if entry.dtype != dtype:
            _fail(path, f"tensor {name!r} has dtype {entry.dtype}, expected {dtype}")
        if entry.shape != tuple(shape):
            _fail(path, f"tensor {name!r} has shape {list(entry.shape)}, expected {list(shape)}")
        values = array(path, entry).reshape(-1)
        squares = 0.0
        for start in range(0, len(values), _CHUNK_ELEMENTS):
            chunk = values[start : start + _CHUNK_ELEMENTS]
            if entry.dtype == "BOOL" and (chunk.view(np.uint8) > 1).any():
                _fail(path, f"tensor {name!r} has a boolean that is neither 0 nor 1")
            if entry.dtype.startswith("F"):
                if not np.isfinite(chunk).all():
                    _fail(path, f"tensor {name!r} has a value that is not finite")
                with np.errstate(over="ignore"):
                    squares += float(np.square(chunk, dtype=np.float64).sum())
        if norm_bound is not None and math.sqrt(squares) > norm_bound:
            _fail(path, f"tensor {name!r} has norm {math.sqrt(squares):.6g}, more than {norm_bound:.6g}")


def array(path: Path, entry: Entry) -> NDArray[Any]:
    """One tensor as a read-only map of the file; the pages go when the array goes."""
    import numpy as np

    dtype = np.dtype(NUMPY[entry.dtype])
    if entry.end == entry.begin:
        return np.empty(entry.shape, dtype)
    return np.memmap(path, dtype, "r", offset=entry.begin, shape=entry.shape).view(np.ndarray)


def arrays(path: Path) -> Iterator[tuple[str, NDArray[Any]]]:
    """Every tensor in order of name, one at a time, mapped. Raises WeightsError as `read_header` does."""
    for name, entry in read_header(path).items():
        yield name, array(path, entry)


def load_torch(path: Path) -> dict[str, torch.Tensor]:
    """A state dict that is the caller's own (writable). Raises WeightsError as `read_header` does."""
    from safetensors import SafetensorError
    from safetensors.torch import load_file

    read_header(path)
    try:
        return load_file(path)
    except SafetensorError as error:
        _fail(path, str(error))


def _parse(path: Path, text: bytes) -> dict[str, Any]:
    def pairs(items: list[tuple[str, Any]]) -> dict[str, Any]:
        names = [name for name, _ in items]
        if len(set(names)) != len(names):
            raise ValueError("a name occurs twice")
        return dict(items)

    try:
        header = json.loads(text.decode("utf-8"), object_pairs_hook=pairs)
    except (ValueError, RecursionError) as error:
        _fail(path, f"the header is not JSON: {error}")
    if not isinstance(header, dict):
        _fail(path, "the header is not a JSON object")
    notes = header.get("__metadata__", {})
    if not isinstance(notes, dict) or not all(isinstance(note, str) for note in notes.values()):
        _fail(path, "__metadata__ is not a map of texts")
    return header


def _entry(path: Path, name: str, value: Any, base: int) -> Entry:
    shown = repr(name[:MAX_NAME_CHARACTERS])
    if len(name) > MAX_NAME_CHARACTERS or not name.isprintable():
        _fail(path, f"tensor {shown}: a name has at most {MAX_NAME_CHARACTERS} printable characters")
    if not isinstance(value, dict) or value.keys() != {"dtype", "shape", "data_offsets"}:
        _fail(path, f"tensor {shown}: expected dtype, shape and data_offsets")
    dtype, shape, offsets = value["dtype"], value["shape"], value["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        _fail(path, f"tensor {shown}: dtype {str(dtype)[:20]!r} is not one of {', '.join(DTYPES)}")
    if not _naturals(shape) or len(shape) > MAX_DIMENSIONS:
        _fail(path, f"tensor {shown}: shape is not a list of at most {MAX_DIMENSIONS} sizes")
    if not _naturals(offsets) or len(offsets) != 2:
        _fail(path, f"tensor {shown}: data_offsets are not two positions")
    begin, end = offsets
    if end - begin != math.prod(shape) * DTYPES[dtype]:
        _fail(path, f"tensor {shown}: {end - begin} bytes do not hold {dtype} of shape {shape}")
    return Entry(dtype, tuple(shape), base + begin, base + end)


def _naturals(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and 0 <= item < 1 << 48 for item in value)


def _plain(name: str, tensor: Any, path: Path | None) -> NDArray[Any]:
    import numpy as np

    try:
        value = tensor.detach().cpu().numpy() if hasattr(tensor, "detach") else tensor
    except TypeError as error:
        raise WeightsError(f"{path or 'weights'}: tensor {name!r}: {error}") from None
    # Not ascontiguousarray, which would make a scalar a vector.
    array = np.asarray(value, order="C")
    if _code(array.dtype) not in NUMPY.values():
        allowed = ", ".join(DTYPES)
        raise WeightsError(f"{path or 'weights'}: tensor {name!r} is {array.dtype}, allowed are {allowed}")
    return array


def _code(dtype: np.dtype[Any]) -> str:
    return dtype.newbyteorder("<").str.replace("|", "").replace("b1", "?")


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _fail(path: Path, what: str) -> NoReturn:
    raise WeightsError(f"{path.name}: {what}")
