"""A prepared pool: `.npy` arrays that boards map, and `pool.json` with what they are and their checksums.

Written whole or not at all. Inspecting needs the standard library alone and reads no array.
"""

from __future__ import annotations

import hashlib
import os
import shutil
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from edged.tasks._contract import Data, OtherPoolError, PoolError, PoolInfo, Prepared

if TYPE_CHECKING:
    from numpy.typing import NDArray

NAME = "pool.json"
VERSION = 1
MAX_JSON_BYTES = 64 << 20
NEEDED = ("inputs", "targets", "test_inputs", "test_targets")


class Array(msgspec.Struct, frozen=True):
    """One array of the pool, in the file `<name>.npy`; `bytes` and `sha256` are those of the file."""

    dtype: str
    shape: tuple[int, ...]
    bytes: int
    sha256: str


class Manifest(msgspec.Struct, frozen=True):
    """What `pool.json` holds."""

    version: int
    task: str
    samples: int
    test_samples: int
    fingerprint: str
    format: str
    split: str
    origin: str
    arrays: dict[str, Array]
    facts: dict[str, Any] = {}


def write(folder: Path, task: str, prepared: Prepared) -> Manifest:
    """Writes a new pool. Raises PoolError where the folder exists and is not empty, or the disk is full."""
    expect_free(folder)
    temporary = folder.with_name(f".{folder.name}.{os.getpid()}.tmp")
    try:
        temporary.mkdir(parents=True)
        arrays = {name: _write_array(temporary, name, value) for name, value in prepared.arrays.items()}
        manifest = Manifest(
            version=VERSION,
            task=task,
            samples=arrays["inputs"].shape[0],
            test_samples=arrays["test_inputs"].shape[0],
            fingerprint=_fingerprint(task, arrays, prepared.facts),
            format=prepared.format,
            split=prepared.split,
            origin=prepared.origin,
            arrays=arrays,
            facts=dict(prepared.facts),
        )
        text = msgspec.json.format(msgspec.json.encode(manifest), indent=1)
        (temporary / NAME).write_bytes(text + b"\n")
        if folder.is_dir():
            folder.rmdir()
        temporary.rename(folder)
    except OSError as error:
        raise PoolError(f"{error.filename or folder}: {error.strerror or error}") from None
    finally:
        shutil.rmtree(temporary, ignore_errors=True)
    return manifest


def expect_free(folder: Path) -> None:
    """Raises PoolError unless the folder may be written: it does not exist, or is empty."""
    if folder.exists() and not (folder.is_dir() and not any(folder.iterdir())):
        raise PoolError(f"{folder}: exists already; name a new folder, or remove this one first")


def is_pool(folder: Path) -> bool:
    """Whether the folder claims to be a prepared pool."""
    return (folder / NAME).is_file()


def read(folder: Path, task: str | None = None) -> Manifest:
    """The manifest, after a look at the sizes of the files. OtherPoolError where it is another task's."""
    path = folder / NAME
    try:
        if not path.is_file():
            what = f"no {NAME} in it" if folder.is_dir() else "no such folder"
            kind = OtherPoolError if folder.is_dir() else PoolError
            hint = f"; expected a pool made by `edged data prepare {task} SOURCE -o DIR`" if task else ""
            raise kind(f"{folder}: {what}{hint}")
        if path.stat().st_size > MAX_JSON_BYTES:
            raise PoolError(f"{path}: larger than the {MAX_JSON_BYTES} bytes that it may have")
        manifest = msgspec.json.decode(path.read_bytes(), type=Manifest)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
        raise PoolError(f"{path}: not the description of a pool: {error}") from None
    except OSError as error:
        raise PoolError(f"{path}: {error.strerror}") from None
    if task is not None and manifest.task != task:
        raise OtherPoolError(f"{folder}: a pool of task {manifest.task}, expected {task}")
    _expect_sound(folder, manifest)
    return manifest


def inspect(folder: Path, task: str) -> PoolInfo:
    """The pool as its task's `inspect` tells it."""
    found = read(folder, task)
    return PoolInfo(
        found.samples, found.test_samples, found.fingerprint, found.format, found.split, found.origin
    )


def load(folder: Path, task: str) -> Data:
    """The pool's arrays as read-only maps; arrays beside the four of `Data` are found in its facts."""
    manifest = read(folder, task)
    arrays = {name: _map(folder, name, array) for name, array in manifest.arrays.items()}
    others = {name: value for name, value in arrays.items() if name not in NEEDED}
    return Data(
        inputs=arrays["inputs"],
        targets=arrays["targets"],
        test_inputs=arrays["test_inputs"],
        test_targets=arrays["test_targets"],
        facts={**manifest.facts, **others},
    )


def verify(folder: Path) -> Manifest:
    """Reads every byte. Raises PoolError naming the first file whose content is not what was prepared."""
    manifest = read(folder)
    for name, array in manifest.arrays.items():
        if _sha256(folder / f"{name}.npy") != array.sha256:
            raise PoolError(f"{folder / name}.npy: its content is not what was prepared (SHA-256 differs)")
        _map(folder, name, array)
    return manifest


def _expect_sound(folder: Path, manifest: Manifest) -> None:
    if manifest.version != VERSION:
        raise PoolError(f"{folder / NAME}: version {manifest.version}, this edged reads {VERSION}")
    arrays = manifest.arrays
    missing = [name for name in NEEDED if name not in arrays]
    if missing:
        raise PoolError(f"{folder / NAME}: describes no array {missing[0]!r}")
    for name, array in arrays.items():
        if not name.isidentifier():
            raise PoolError(f"{folder / NAME}: {name[:40]!r} is no name of an array")
        path = folder / f"{name}.npy"
        if not path.is_file():
            raise PoolError(f"{path}: missing, {NAME} tells of it")
        size = path.stat().st_size
        if size != array.bytes:
            raise PoolError(f"{path}: {size} bytes, expected {array.bytes} (truncated or replaced)")
    counts = (("inputs", "targets", manifest.samples), ("test_inputs", "test_targets", manifest.test_samples))
    for inputs, targets, samples in counts:
        if not arrays[inputs].shape[:1] == arrays[targets].shape[:1] == (samples,) or samples < 1:
            raise PoolError(f"{folder / NAME}: {inputs} and {targets} are not {samples} samples each")
    if _fingerprint(manifest.task, arrays, manifest.facts) != manifest.fingerprint:
        raise PoolError(f"{folder / NAME}: its fingerprint is not that of the arrays it tells of (edited?)")


def _fingerprint(task: str, arrays: Mapping[str, Array], facts: Mapping[str, Any]) -> str:
    """Of content alone: where the data came from and how the folder is called do not count."""
    content = {"task": task, "arrays": {name: array.sha256 for name, array in arrays.items()}, "facts": facts}
    return hashlib.sha256(msgspec.json.encode(content, order="sorted")).hexdigest()


def _write_array(folder: Path, name: str, value: NDArray[Any]) -> Array:
    import numpy as np

    path = folder / f"{name}.npy"
    # Little-endian and contiguous, so that equal data are equal bytes and every board can map them.
    array = np.asarray(value, dtype=value.dtype.newbyteorder("<"), order="C")
    np.save(path, array, allow_pickle=False)
    return Array(array.dtype.str, array.shape, path.stat().st_size, _sha256(path))


def _map(folder: Path, name: str, array: Array) -> NDArray[Any]:
    import numpy as np

    path = folder / f"{name}.npy"
    try:
        value = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise PoolError(f"{path}: {error}") from None
    if value.dtype.str != array.dtype or value.shape != array.shape:
        raise PoolError(f"{path}: {value.dtype.str} {value.shape}, expected {array.dtype} {array.shape}")
    return value.view(np.ndarray)  # type: ignore[no-any-return]


def _sha256(path: Path) -> str:
    digest = hashlib.sha256()
    with path.open("rb") as file:
        while chunk := file.read(1 << 20):
            digest.update(chunk)
    return digest.hexdigest()
