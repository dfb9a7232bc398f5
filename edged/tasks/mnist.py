"""MNIST: handwritten digits of 28x28 from the official IDX files (gzip or plain), and a small CNN.

With train and t10k files the official split holds; with one of the two, a shuffled split of it. Shuffled,
because the halves of t10k differ in difficulty. Other data in the same format is allowed, and said.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING, Literal

import msgspec

from edged.formats import idx, prepared
from edged.schedule import permutation
from edged.tasks import _classification, _vision
from edged.tasks._contract import (
    BUILTIN,
    Data,
    Defaults,
    OtherPoolError,
    PoolError,
    PoolInfo,
    Prepared,
    Progress,
)

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "mnist"
SUMMARY = "handwritten digits of 28x28 pixels from MNIST's IDX files; a small CNN"
DEFAULTS = Defaults(batch=32, learning_rate=0.02, optimizer="sgd", momentum=0.9)
HELPERS = (
    "_classification.py",
    "_contract.py",
    "_vision.py",
    "../formats/idx.py",
    "../formats/prepared.py",
    "../schedule.py",
)

SPLIT_SEED = 28
HELD_OUT_SHARE = 5
"""Where only one part is there, one in five samples is held out."""
MEAN, DEVIATION = 0.1307, 0.3081
"""Of the official training images, in 0..1 (measured by everybody who normalises MNIST)."""
OFFICIAL_MD5 = {
    "train": ("6bbc9ace898e44ae57da46a324031adb", "a25bea736e30d166cdddb491f175f624"),
    "t10k": ("2646ac647ad5339dbf082846283269ea", "27ae3e4e09519cfbb04c329615203637"),
}

loss_sum = _classification.loss_sum


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`width` scales the cnn: 8 channels give 52 thousand parameters; `norm` is the other models'."""

    model: Literal["cnn", "resnet18", "resnet50", "alexnet", "vgg11"] = "cnn"
    width: int = 8
    norm: _vision.Norm = "group"

    def __post_init__(self) -> None:
        if not (4 <= self.width <= 256 and self.width % 4 == 0):
            raise ValueError(f"width is {self.width}, expected a multiple of 4 from 4 to 256")


class Prepare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to choose: the split is that of `inspect`."""


def model(options: Options, seed: int) -> torch.nn.Module:
    """`cnn`: two convolutions with GroupNorm and pooling, then two linear layers; or a published network."""
    from torch import nn

    width = options.width
    with _classification.seeded(seed):
        if options.model != "cnn":
            return _vision.build(options.model, 1, 10, options.norm)
        return nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * 49, 64),
            nn.ReLU(),
            nn.Linear(64, 10),
        )


def inspect(folder: Path | None) -> PoolInfo:
    """Reads the files once: sizes, labels in 0..9, official or not by the checksums of their content."""
    folder = _folder(folder)
    if prepared.is_pool(folder):
        return prepared.inspect(folder, NAME)
    found = idx.pairs(folder)
    digest = hashlib.sha256()
    official: list[bool] = []
    sizes: dict[str, int] = {}
    for part, pair in found.items():
        images, labels = idx.read(pair.images, idx.IMAGES_MAGIC), idx.read(pair.labels, idx.LABELS_MAGIC)
        _expect_fitting(pair, images.shape, labels.shape, labels.greatest)
        digest.update(f"{part} {images.sha256} {labels.sha256}\n".encode())
        official.append((images.md5, labels.md5) == OFFICIAL_MD5[part])
        sizes[part] = images.shape[0]
    if len(sizes) == 2:
        samples, held_out, split = sizes["train"], sizes["t10k"], "official: train files and t10k files"
    else:
        (part,), (count,) = sizes, sizes.values()
        held_out = _held_out(part, count, found)
        samples = count - held_out
        split = f"{part} only, shuffled by hash: {samples} to train and {held_out} held out"
    origin = "the official MNIST files" if all(official) else "other data than MNIST, in its format"
    return PoolInfo(samples, held_out, digest.hexdigest(), "idx", split, origin)


def load(folder: Path | None, options: Options) -> Data:
    """Images as uint8 (n, 28, 28), mapped where the files are plain and the split official; labels int64."""
    import numpy as np

    folder = _folder(folder)
    if prepared.is_pool(folder):
        return prepared.load(folder, NAME)
    found = idx.pairs(folder)
    parts = {}
    for part, pair in found.items():
        images = idx.array(pair.images, idx.IMAGES_MAGIC)
        labels = idx.array(pair.labels, idx.LABELS_MAGIC).astype(np.int64)
        _expect_fitting(pair, images.shape, labels.shape, int(labels.max()))
        parts[part] = images, labels
    if len(parts) == 2:
        return Data(*parts["train"], *parts["t10k"])
    ((part, (images, labels)),) = parts.items()
    held_out = _held_out(part, len(images), found)
    order = permutation(SPLIT_SEED, 0, len(images))
    train, test = order[held_out:], order[:held_out]
    return Data(images[train], labels[train], images[test], labels[test])


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Images float32 (n, 1, 28, 28) of mean 0 and deviation 1, and labels."""
    return _tensors(data.inputs[indices], data.targets[indices])


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out loss (nats) and accuracy."""
    return _classification.held_out_means(model, data, _tensors, max_samples)


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """A mapped pool of the IDX files (boards read those as they are, too) or the hub's parquet files."""
    from edged.formats import parquet

    progress("reading", 0, 0)
    if parquet.is_parquet(source):
        arrays = parquet.classified(source, ("image", "label"), (28, 28), "L")
        return Prepared(arrays, "parquet", "official: train and test files", source.name)
    info, data = inspect(source), load(source, Options())
    arrays = {
        "inputs": data.inputs,
        "targets": data.targets,
        "test_inputs": data.test_inputs,
        "test_targets": data.test_targets,
    }
    return Prepared(arrays, info.format, info.split, info.origin)


def _tensors(images: NDArray[np.generic], labels: NDArray[np.generic]) -> Batch:
    import torch

    pixels = torch.from_numpy(images).unsqueeze(1).float()
    return pixels.sub_(255 * MEAN).div_(255 * DEVIATION), torch.from_numpy(labels)


def _folder(folder: Path | None) -> Path:
    if folder is None or folder.parts[:1] == BUILTIN.parts:
        raise OtherPoolError(f"{NAME} needs a folder with MNIST's files; nothing of it ships with edged")
    if not folder.is_dir():
        raise PoolError(f"{folder}: no such folder")
    return folder


def _expect_fitting(pair: idx.Pair, images: tuple[int, ...], labels: tuple[int, ...], greatest: int) -> None:
    if images[1:] != (28, 28):
        raise PoolError(f"{pair.images}: images of {images[1]} x {images[2]}, expected 28 x 28")
    if images[0] != labels[0]:
        raise PoolError(f"{pair.labels}: {labels[0]} labels for {images[0]} images in {pair.images.name}")
    if greatest > 9:
        raise PoolError(f"{pair.labels}: holds label {greatest}, expected 0 to 9")


def _held_out(part: str, count: int, found: dict[str, idx.Pair]) -> int:
    if count < HELD_OUT_SHARE:
        raise PoolError(
            f"{found[part].images}: {count} images are too few to hold out one in {HELD_OUT_SHARE}"
        )
    return count // HELD_OUT_SHARE
