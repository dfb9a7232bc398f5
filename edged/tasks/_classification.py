"""Cross-entropy and accuracy, for the tasks that tell classes apart, and seeded weights for any task."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from edged.tasks._contract import TaskError

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch, Data

    LossSum = Callable[[torch.nn.Module, Batch], tuple[torch.Tensor, dict[str, float]]]

CHUNK = 256
"""Samples of one forward pass without gradients: bounds memory, changes no figure."""


@contextmanager
def seeded(seed: int) -> Iterator[None]:
    """Initial weights by torch's generator, which other users of it do not notice.

    Torch promises the same numbers on one build only; that is enough, because the coordinator sends the
    initial weights to all boards and no board ever trains from its own.
    """
    import torch

    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        yield


def loss_sum(model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, dict[str, float]]:
    """Cross-entropy summed over the batch (nats), and how many the model told right."""
    import torch

    *inputs, targets = batch
    logits = model(*inputs)
    loss = torch.nn.functional.cross_entropy(logits, targets, reduction="sum")
    return loss, {"correct": float((logits.detach().argmax(dim=1) == targets).sum())}


def held_out_sums(
    model: torch.nn.Module,
    batches: Callable[[NDArray[np.int64]], Batch],
    samples: int,
    max_samples: int | None,
    loss: LossSum,
) -> dict[str, float]:
    """Sums over the held-out samples: `loss`, `samples` and what `loss` adds up beside.

    Fewer than all are taken evenly over all, because the ends of a test set may differ in difficulty
    (the two halves of MNIST's do).
    """
    import numpy as np
    import torch

    if samples < 1:
        raise TaskError("the pool has no held-out samples to evaluate on")
    count = samples if max_samples is None else max(1, min(samples, max_samples))
    chosen = np.arange(count, dtype=np.int64) * samples // count
    sums = {"loss": 0.0, "samples": float(count)}
    was_training = model.training
    model.eval()
    try:
        with torch.no_grad():
            for start in range(0, count, CHUNK):
                value, others = loss(model, batches(chosen[start : start + CHUNK]))
                sums["loss"] += float(value)
                for name, other in others.items():
                    sums[name] = sums.get(name, 0.0) + other
    finally:
        model.train(was_training)
    return sums


def held_out_means(
    model: torch.nn.Module,
    data: Data,
    tensors: Callable[[NDArray[np.generic], NDArray[np.generic]], Batch],
    max_samples: int | None,
) -> dict[str, float]:
    """A classifier's held-out `loss`, `accuracy` and the `samples` they are the means of.

    `tensors` makes a batch of inputs and targets as the pool has them.
    """

    def batches(chosen: NDArray[np.int64]) -> Batch:
        return tensors(data.test_inputs[chosen], data.test_targets[chosen])

    sums = held_out_sums(model, batches, len(data.test_inputs), max_samples, loss_sum)
    count = sums["samples"]
    return {"loss": sums["loss"] / count, "accuracy": sums["correct"] / count, "samples": count}
