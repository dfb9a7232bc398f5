"""Periodic model averaging, the board's half: local steps from the merged model, the new weights are the
update.

Local batch fixed, batch sizes of an order differ by at most one, each step follows the mean loss of its batch
(ARCHITECTURE 5a). Averaging is the coordinator's.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from edged import optimizers
from edged.regimes import Lesson, Outcome, TrainingError
from edged.schedule import even_batches, indices, subseed

if TYPE_CHECKING:
    from edged.bench import Bench

NAME = "pma"
SUMMARY = "models are averaged at the end of each round, weighted by samples"


def train(lesson: Lesson, bench: Bench, /) -> Outcome:
    """See edged.regimes.Regime. Raises TrainingError at the first loss that is not finite."""
    import torch

    order, task, data, model = lesson.order, lesson.task, lesson.data, lesson.model
    chosen = indices(order.pieces, order.seed, order.pool_samples)
    sizes = list(order.batches) if order.batches is not None else even_batches(len(chosen), order.batch)
    if sum(sizes) != len(chosen):
        raise TrainingError(f"the order's batches hold {sum(sizes)} samples, its pieces {len(chosen)}")
    torch.manual_seed(subseed(order.seed, "dropout", bench.board, order.round))
    optimizer = bench.optimizer(order, model, lesson.carried)
    model.train()
    loss_sum = 0.0
    sums: dict[str, float] = {}
    done = 0
    bench.begin()
    for number, size in enumerate(sizes, start=1):
        batch = task.batch(data, chosen[done : done + size])
        optimizer.zero_grad(set_to_none=True)
        loss, others = task.loss_sum(model, batch)
        value = float(loss.detach())
        if not math.isfinite(value):
            raise TrainingError(f"the loss is {value} at step {number} of {len(sizes)}")
        torch.autograd.backward(loss / max(size, 1))
        optimizer.step()
        done += size
        loss_sum += value
        for name, other in others.items():
            sums[name] = sums.get(name, 0.0) + other
        bench.step(done, size)
    bench.end()
    tensors = dict(model.state_dict())
    if order.optimizer_state == "average":
        tensors |= optimizers.tensors(optimizer, model)
    return Outcome(tensors, loss_sum, sums, len(sizes), done)
