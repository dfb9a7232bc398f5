"""CIFAR-10: ten kinds of things in colour pictures of 32x32, on a prepared pool; four published networks.

Made by `edged data prepare cifar10 SOURCE -o DIR` of the binary version or the hub's parquet files.
"""

from __future__ import annotations

from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edged.formats import prepared
from edged.tasks import _classification, _vision
from edged.tasks._contract import BUILTIN, Data, Defaults, OtherPoolError, PoolInfo, Prepared, Progress

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "cifar10"
SUMMARY = "ten kinds of things in colour pictures (CIFAR-10); ResNet18/50, AlexNet, VGG11"
DEFAULTS = Defaults(batch=64, learning_rate=0.05, optimizer="sgd", momentum=0.9, weight_decay=5e-4)
HELPERS = ("_classification.py", "_contract.py", "_vision.py", "../formats/prepared.py")

loss_sum = _classification.loss_sum


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`norm` "batch" is for comparing with others; a board with a batch of one fails on it."""

    model: _vision.Name = "resnet18"
    norm: _vision.Norm = "group"


class Prepare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Nothing to choose: the official split holds."""


def model(options: Options, seed: int) -> torch.nn.Module:
    """Pictures float32 (n, 3, 32, 32) to ten logits."""
    with _classification.seeded(seed):
        return _vision.build(options.model, 3, 10, options.norm)


def inspect(folder: Path | None) -> PoolInfo:
    """A prepared pool of this task."""
    return prepared.inspect(_folder(folder), NAME)


def load(folder: Path | None, options: Options) -> Data:
    """Pictures uint8 (n, 3, 32, 32), mapped; labels int64 (n,); `facts` has mean and deviation."""
    return prepared.load(_folder(folder), NAME)


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Pictures float32 of mean 0 and deviation 1 by channel, and labels."""
    return _tensors(data, data.inputs[indices], data.targets[indices])


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out loss (nats) and accuracy."""
    return _classification.held_out_means(model, data, partial(_tensors, data), max_samples)


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """A pool of the official files, normalisation measured on the training pictures."""
    import numpy as np

    from edged.formats import cifar, parquet

    progress("reading", 0, 0)
    if parquet.is_parquet(source):
        kind, arrays = "parquet", parquet.classified(source, ("img", "label"), (32, 32), "RGB")
    else:
        kind, arrays = "CIFAR binary", cifar.read(source)
    train, held_out = arrays["inputs"], len(arrays["test_inputs"])
    facts = {
        "mean": (train.mean(axis=(0, 2, 3), dtype=np.float64) / 255).tolist(),
        "deviation": (train.std(axis=(0, 2, 3), dtype=np.float64) / 255).tolist(),
    }
    split = f"official: {len(train)} to train, {held_out} held out"
    return Prepared(arrays, kind, split, f"{source.name} ({len(train)} + {held_out} pictures)", facts)


def _tensors(data: Data, pictures: NDArray[np.generic], labels: NDArray[np.generic]) -> Batch:
    import torch

    mean, deviation = (
        255 * torch.tensor(data.facts[name]).view(1, 3, 1, 1) for name in ("mean", "deviation")
    )
    pixels = torch.from_numpy(pictures).float()
    return pixels.sub_(mean).div_(deviation.clamp(min=1e-3)), torch.from_numpy(labels)


def _folder(folder: Path | None) -> Path:
    if folder is None or folder.parts[:1] == BUILTIN.parts:
        raise OtherPoolError(f"{NAME} needs a prepared pool; nothing of it ships with edged")
    return folder
