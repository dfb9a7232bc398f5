"""Made-up classes of points: no files, any size of model. For trying links, shares and large models, not for
claims about learning. Its pool is `path = "builtin/synthetic"`.
"""

from __future__ import annotations

import hashlib
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edged.schedule import permutation
from edged.tasks import _classification
from edged.tasks._contract import BUILTIN, Data, Defaults, OtherPoolError, PoolInfo

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "synthetic"
SUMMARY = "made-up classes of points, no files needed; a perceptron of any size"
DEFAULTS = Defaults(batch=32, learning_rate=0.02, optimizer="sgd", momentum=0.9)
HELPERS = ("_classification.py", "_contract.py", "../schedule.py")

POOL = BUILTIN / "synthetic"
SAMPLES, TEST_SAMPLES = 8192, 2048
FEATURES, CLASSES = 32, 10

loss_sum = _classification.loss_sum


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`width` 128 gives 22 thousand parameters (90 kB), 3136 gives 10 million (40 MB)."""

    width: int = 128

    def __post_init__(self) -> None:
        if not 4 <= self.width <= 20_000:
            raise ValueError(f"width is {self.width}, expected 4 to 20000")


def model(options: Options, seed: int) -> torch.nn.Module:
    """Two hidden layers with LayerNorm."""
    from torch import nn

    width = options.width
    with _classification.seeded(seed):
        return nn.Sequential(
            nn.Linear(FEATURES, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, width),
            nn.LayerNorm(width),
            nn.ReLU(),
            nn.Linear(width, CLASSES),
        )


def inspect(folder: Path | None) -> PoolInfo:
    """Always there. The fingerprint is of the recipe, which says all about the numbers."""
    _expect_builtin(folder)
    recipe = f"{NAME} 1 {SAMPLES} {TEST_SAMPLES} {FEATURES} {CLASSES}"
    return PoolInfo(
        samples=SAMPLES,
        test_samples=TEST_SAMPLES,
        fingerprint=hashlib.sha256(recipe.encode()).hexdigest(),
        format="computed",
        split=f"{SAMPLES} to train, {TEST_SAMPLES} held out",
        origin="made up by a hash; not real data",
    )


def load(folder: Path | None, options: Options) -> Data:
    """Points float32 (n, 32) around their class's centre, labels int64 (n,); the same on every machine."""
    import numpy as np

    _expect_builtin(folder)
    total = SAMPLES + TEST_SAMPLES
    # Ranks of a hash are evenly spread integers: exact on every ISA, as a library's normal numbers are not.
    spread = permutation(1, 0, total * FEATURES).reshape(total, FEATURES)
    centres = permutation(2, 0, CLASSES * FEATURES).reshape(CLASSES, FEATURES)
    labels = permutation(3, 0, total) % CLASSES
    points = (spread / (total * FEATURES) - 0.5) * 2 + (centres / (CLASSES * FEATURES) - 0.5)[labels]
    points = points.astype(np.float32)
    return Data(points[:SAMPLES], labels[:SAMPLES], points[SAMPLES:], labels[SAMPLES:])


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Points and labels."""
    return _tensors(data.inputs[indices], data.targets[indices])


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out loss (nats) and accuracy."""
    return _classification.held_out_means(model, data, _tensors, max_samples)


def _tensors(points: NDArray[np.generic], labels: NDArray[np.generic]) -> Batch:
    import torch

    return torch.from_numpy(points), torch.from_numpy(labels)


def _expect_builtin(folder: Path | None) -> None:
    if folder is not None and folder != POOL:
        raise OtherPoolError(f'{folder}: made-up data has no files; its pool is path = "{POOL}"')
