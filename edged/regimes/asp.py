"""Asynchronous updates, the board's half: the mean gradient of one batch, or a model after local training.

The coordinator applies each update as it arrives (ALGORITHMS 2.5, 3.3); nothing here knows how old it is.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

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
    """The whole order is one batch; its mean gradient stands beside whatever of the model has none."""
    import torch

    order, task, model = lesson.order, lesson.task, lesson.model
    chosen = indices(order.pieces, order.seed, order.pool_samples)
    torch.manual_seed(subseed(order.seed, "dropout", bench.board, order.round, order.attempt))
    model.train()
    model.zero_grad(set_to_none=True)
    bench.begin()
    loss, sums = task.loss_sum(model, task.batch(lesson.data, chosen))
    value = float(loss.detach())
    if not math.isfinite(value):
        raise TrainingError(f"the loss is {value}")
    torch.autograd.backward(loss / len(chosen))
    bench.step(len(chosen), len(chosen))
    bench.end()
    tensors = dict(model.state_dict())
    # A parameter with two names has its gradient under both.
    for name, parameter in model.named_parameters(remove_duplicate=False):
        if parameter.grad is not None:
            del tensors[name]
            tensors[GRADIENT + name] = parameter.grad
    return Outcome(tensors, value, dict(sums), 1, len(chosen))
