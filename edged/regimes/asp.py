"""Asynchronous updates, the board's half: the mean gradient of one batch, or a model after local training.

The coordinator applies each update as it arrives (ALGORITHMS 2.5, 3.3); nothing here knows how old it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edged.dealing import cut_evenly
from edged.optimizers import GRADIENT
from edged.regimes import Lesson, Outcome, TrainingError, pma
from edged.schedule import indices, subseed

if TYPE_CHECKING:
    from edged.bench import Bench

NAME = "asp"
SUMMARY = "each update is applied as it arrives: the gradient of one batch, or a model mixed in"


def train(lesson: Lesson, bench: Bench, /) -> Outcome:
    """See edged.regimes.Regime. Raises TrainingError for a loss that is not finite, or an unknown grain."""
    if lesson.order.grain == "model":
        return pma.train(lesson, bench)
    if lesson.order.grain != "gradient":
        raise TrainingError(f"grain {lesson.order.grain!r} is unknown here; there are: gradient, model")
    return _gradient(lesson, bench)


def _gradient(lesson: Lesson, bench: Bench) -> Outcome:
    """The whole order is one batch, or parts of it whose gradients add up to the same; its mean gradient
    stands beside whatever of the model has none."""
    import torch
    from torch.nn.modules.batchnorm import _BatchNorm

    order, task, model = lesson.order, lesson.task, lesson.model
    chosen = indices(order.pieces, order.seed, order.pool_samples)
    torch.manual_seed(subseed(order.seed, "dropout", bench.board, order.round, order.attempt))
    model.train()
    model.zero_grad(set_to_none=True)
    parts = cut_evenly(len(chosen), bench.micro_batch)
    if len(parts) > 1 and any(isinstance(module, _BatchNorm) for module in model.modules()):
        raise TrainingError(
            f"{bench.micro_batch} samples at once fit into its memory, an order is a batch of {len(chosen)}, "
            "and the model has BatchNorm: a smaller --batch, or a model with GroupNorm"
        )
    loss_sum, done = 0.0, 0
    sums: dict[str, float] = {}
    bench.begin()
    for part in parts:
        loss, others = task.loss_sum(model, task.batch(lesson.data, chosen[done : done + part]))
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(f"the loss is {value}")
        torch.autograd.backward(loss / len(chosen))
        done += part
        loss_sum += value
        for name, other in others.items():
            sums[name] = sums.get(name, 0.0) + other
        bench.step(done, part)
    bench.end()
    tensors = dict(model.state_dict())
    # A parameter with two names has its gradient under both.
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.grad is not None:
            del tensors[name]
            tensors[GRADIENT + name] = parameter.grad
    return Outcome(tensors, loss_sum, sums, 1, len(chosen))
