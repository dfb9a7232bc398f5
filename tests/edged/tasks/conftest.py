"""A small pool for each shipped task, made on the fly in the format that the task reads."""

import gzip
import struct
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from edged.tasks import BUILTIN

WriteIdx = Callable[..., None]


@pytest.fixture
def write_idx() -> WriteIdx:
    """Writes an images and a labels file of MNIST's format into a folder, gzip or plain."""

    def write(folder: Path, part: str, count: int, packed: bool = True, labels: int | None = None) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        classes = np.arange(count, dtype=np.uint8) % 10
        images = np.zeros((count, 28, 28), np.uint8)
        # The class can be read off the picture: a bright bar at its own height.
        for place, digit in enumerate(classes):
            images[place, 2 * digit + 4 : 2 * digit + 6, 4:24] = 200
        images += (
            (np.arange(images.size, dtype=np.uint32) * 2654435761 >> 28)
            .astype(np.uint8)
            .reshape(images.shape)
        )
        files = {
            f"{part}-images-idx3-ubyte": struct.pack(">4I", 2051, count, 28, 28) + images.tobytes(),
            f"{part}-labels-idx1-ubyte": struct.pack(">2I", 2049, count if labels is None else labels)
            + (classes if labels is None else np.resize(classes, labels)).tobytes(),
        }
        for name, content in files.items():
            if packed:
                (folder / f"{name}.gz").write_bytes(gzip.compress(content, mtime=0))
            else:
                (folder / name).write_bytes(content)

    return write


@pytest.fixture
def pool_of(tmp_path: Path, write_idx: WriteIdx) -> Callable[[str], Path]:
    """The folder of a small pool for the named task."""

    def make(task: str) -> Path:
        if task == "mnist":
            write_idx(tmp_path / "mnist", "t10k", 200)
            return tmp_path / "mnist"
        return {"digits": BUILTIN}[task]

    return make
