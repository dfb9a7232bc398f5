"""The 1,797 handwritten digits (8x8) that ship with the package: a real task that needs no files.

Made by `scripts/make-digits`; source and licence stand in `digits.txt`.
"""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edged.schedule import permutation
from edged.tasks import _classification
from edged.tasks._contract import BUILTIN, Data, Defaults, OtherPoolError, PoolError, PoolInfo

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "digits"
SUMMARY = "1,797 real handwritten digits of 8x8 pixels, shipped with edged; a small CNN"
DEFAULTS = Defaults(batch=16, learning_rate=0.03, optimizer="sgd", momentum=0.9)
HELPERS = ("_classification.py", "_contract.py", "../schedule.py")

FILE = Path(__file__).with_name("digits.npz")
SAMPLES = 1797
TEST_SAMPLES = 360
SPLIT_SEED = 1797

loss_sum = _classification.loss_sum


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`width` scales the model: 16 channels give 22 thousand parameters."""

    width: int = 16

    def __post_init__(self) -> None:
        if not (4 <= self.width <= 512 and self.width % 4 == 0):
            raise ValueError(f"width is {self.width}, expected a multiple of 4 from 4 to 512")


def model(options: Options, seed: int) -> torch.nn.Module:
    """Two convolutions with GroupNorm and two linear layers."""
    from torch import nn

    width = options.width
    with _classification.seeded(seed):
        return nn.Sequential(
            nn.Conv2d(1, width, 3, padding=1),
            nn.GroupNorm(4, width),
            nn.ReLU(),
            nn.Conv2d(width, 2 * width, 3, padding=1),
            nn.GroupNorm(4, 2 * width),
            nn.ReLU(),
            nn.MaxPool2d(2),
            nn.Flatten(),
            nn.Linear(2 * width * 16, 32),
            nn.ReLU(),
            nn.Linear(32, 10),
        )


def inspect(folder: Path | None) -> PoolInfo:
    """The shipped data; any real folder is another task's."""
    _expect_builtin(folder)
    digest = hashlib.sha256()
    try:
        with zipfile.ZipFile(FILE) as archive:
            for member in ("images.npy", "labels.npy"):
                digest.update(archive.read(member))
    except (OSError, KeyError, zipfile.BadZipFile) as error:
        raise PoolError(f"{FILE}: {error}; expected the digits that ship with edged: reinstall it") from None
    return PoolInfo(
        samples=SAMPLES - TEST_SAMPLES,
        test_samples=TEST_SAMPLES,
        fingerprint=digest.hexdigest(),
        format="npz",
        split=f"shuffled by hash, {SAMPLES - TEST_SAMPLES} to train and {TEST_SAMPLES} held out",
        origin="scikit-learn's digits (UCI Optdigits, its test set)",
    )


def load(folder: Path | None, options: Options) -> Data:
    """Images as uint8 (n, 8, 8) with values 0 to 16, labels as int64 (n,)."""
    import numpy as np

    _expect_builtin(folder)
    with np.load(FILE, allow_pickle=False) as arrays:
        images, labels = arrays["images"], arrays["labels"].astype(np.int64)
    order = permutation(SPLIT_SEED, 0, SAMPLES)
    train, test = order[TEST_SAMPLES:], order[:TEST_SAMPLES]
    return Data(images[train], labels[train], images[test], labels[test])


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Images float32 (n, 1, 8, 8) in -1..1, and labels."""
    return _tensors(data.inputs[indices], data.targets[indices])


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out loss (nats) and accuracy."""
    return _classification.held_out_means(model, data, _tensors, max_samples)


def _tensors(images: NDArray[np.generic], labels: NDArray[np.generic]) -> Batch:
    import torch

    return torch.from_numpy(images).unsqueeze(1).float() / 8 - 1, torch.from_numpy(labels)


def _expect_builtin(folder: Path | None) -> None:
    if folder is not None and folder != BUILTIN:
        raise OtherPoolError(f'{folder}: the digits ship with edged; their pool is path = "{BUILTIN}"')
