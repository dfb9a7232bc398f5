"""A small pool for each shipped task, prepared from a made-up set in the task's official format."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import tasks
from edged.formats import prepared
from edged.tasks import BUILTIN

WriteIdx = Callable[..., None]
PoolOf = Callable[[str], Path]


@pytest.fixture
def write_idx() -> WriteIdx:
    """Writes an images and a labels file of MNIST's format into a folder, gzip or plain."""

    def write(folder: Path, part: str, count: int, packed: bool = True) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        labels = np.arange(count, dtype=np.uint8) % 10
        images = _noise((count, 28, 28)) // 16
        # The class can be read off the picture: a bright bar at its own height.
        for place, digit in enumerate(labels):
            images[place, 2 * digit + 4 : 2 * digit + 6, 4:24] = 200
        files = {
            f"{part}-images-idx3-ubyte": struct.pack(">4I", 2051, count, 28, 28) + images.tobytes(),
            f"{part}-labels-idx1-ubyte": struct.pack(">2I", 2049, count) + labels.tobytes(),
        }
        for name, content in files.items():
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
            else:
                (folder / name).write_bytes(content)

    return write


def write_weather(path: Path, hours: int = 400) -> None:
    """A time-series CSV as the Climate Data Store hands it out."""
    rows = ["valid_time,u10,v10,t2m,sp,latitude,longitude"]
    for hour in range(hours):
        stamp = str(np.datetime64("2017-01-01T00:00:00") + np.timedelta64(hour, "h")).replace("T", " ")
        day, week = (np.sin(2 * np.pi * hour / period) for period in (24, 24 * 7))
        rows.append(
            f"{stamp},{3 + week:.3f},{day:.3f},{280 + 5 * day + 3 * week:.3f},{101000 + hour % 7},52.6,13.35"
        )
    path.write_text("\n".join(rows) + "\n")


def write_sentences(path: Path) -> None:
    """Lines as of the UCI set of labelled sentences."""
    moods = ("a fine warm film", 1), ("a dull cold film", 0)
    lines = [f"{text} number {row} indeed .\t{label}" for row in range(60) for text, label in moods]
    path.write_text("\n".join(lines) + "\n")


def write_cifar(folder: Path) -> None:
    """The binary version of CIFAR-10, a few pictures."""
    folder.mkdir()
    for name, count in (("data_batch_1", 30), ("data_batch_2", 20), ("test_batch", 20)):
        labels = np.arange(count, dtype=np.uint8) % 10
        pictures = np.minimum(_noise((count, 3072)) // 8 + 20 * labels[:, None], 255).astype(np.uint8)
        (folder / f"{name}.bin").write_bytes(np.concatenate([labels[:, None], pictures], axis=1).tobytes())


@pytest.fixture
def source_of(tmp_path: Path, write_idx: WriteIdx) -> PoolOf:
    """Made-up official files of the named task."""

    def make(task: str) -> Path:
        source = tmp_path / f"source-{task}"
        if task == "mnist":
            write_idx(source, "t10k", 200)
        elif task == "cifar10":
            write_cifar(source)
        elif task == "era5":
            source = source.with_suffix(".csv")
            write_weather(source)
        elif task == "imdb":
            source = source.with_name("imdb_labelled.txt")
            write_sentences(source)
        return source

    return make


@pytest.fixture
def pool_of(tmp_path: Path, source_of: PoolOf) -> PoolOf:
    """The folder of a small pool for the named task."""

    def make(name: str) -> Path:
        task: Any = tasks.find(name)
        if not hasattr(task, "prepare"):
            return {"digits": BUILTIN, "synthetic": BUILTIN / "synthetic"}[name]
        pool = tmp_path / f"pool-{name}"
        if not pool.exists():
            made = task.prepare(source_of(name), task.Prepare(), lambda what, done, total: None)
            prepared.write(pool, name, made)
        return pool

    return make


def _noise(shape: tuple[int, ...]) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    words = np.arange(int(np.prod(shape)), dtype=np.uint32) * np.uint32(2654435761)
    return (words >> 24).astype(np.uint8).reshape(shape)
