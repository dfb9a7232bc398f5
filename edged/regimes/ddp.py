"""Synchronous gradients, a rank's half: every step follows the mean gradient over all ranks' samples.

A rank's loss is its sum / B_s and the exchange over gloo a plain sum, so the mean over the global batch is
exact whatever the ranks' batches are (ALGORITHMS 5.3). Who the ranks are is the coordinator's word.
"""

from __future__ import annotations

import hashlib
import math
import sys
from collections.abc import Mapping
from contextlib import nullcontext
from typing import TYPE_CHECKING, Any, cast

import msgspec

from edged import dealing, kept, optimizers
from edged.ceilings import State
from edged.groups import Rendezvous, Synchronous
from edged.muster import muster
from edged.regimes import Lesson, Outcome, TrainingError
from edged.schedule import indices, subseed
from edged.stamps import Stamps
from edged.stepwise import Adjuster

if TYPE_CHECKING:
    import torch

    from edged.bench import Bench
    from edged.gloo import Group

NAME = "ddp"
SUMMARY = "gradients are summed over all boards in every step, over gloo"

FORWARD_PART = 1 / 3
"""Of an emulated board's step."""


def train(lesson: Lesson, bench: Bench, /) -> Outcome:
    """See edged.regimes.Regime. Raises PeerError where another rank is at fault or lost."""
    ranks, wrong = lesson.order.rendezvous, dealing.fault(lesson.order)
    wrong = wrong or _indivisible(lesson, bench.micro_batch)
    if wrong or ranks is None:
        raise TrainingError(wrong)
    try:
        group = muster(lesson.order, ranks, lesson.model, bench)
        return _train(lesson, bench, ranks, group)
    except BaseException:
        if bench.memory.group is not None:
            bench.memory.group.broken = True  # the ranks are out of step for good
        raise


def _train(lesson: Lesson, bench: Bench, ranks: Rendezvous, group: Group) -> Outcome:
    import torch

    order, model = lesson.order, lesson.model
    group.allow(ranks.collective_seconds)
    chosen = indices(order.pieces, order.seed, order.pool_samples)
    torch.manual_seed(subseed(order.seed, "dropout", bench.board, order.round))
    optimizer = _optimizer(lesson, bench, group)
    steps = _Steps(ranks, group, bench.memory.learnt.get(order.run, {}))
    stamps = Stamps(bench.stretch)
    stepper = _Stepper(lesson, bench, group, stamps)
    model.train()
    losses: list[float] = []
    sums: dict[str, float] = {}
    done = 0
    bench.begin(by_stretches=True)
    for step, total in enumerate(steps.totals):
        start, size = steps.mine(step)
        stamps.begin()
        bench.step_begins()
        optimizer.zero_grad(set_to_none=True)
        loss, others = stepper.gradients(chosen[start : start + size], total)
        stamps.exchanged()
        optimizer.step()
        losses.append(loss)
        for name, other in others.items():
            sums[name] = sums.get(name, 0.0) + other
        done += size
        steps.adjust(step, size, stamps)
        bench.stepped(done, size)
    bench.end()
    curve = _curve(losses, steps.totals, group)
    split = stamps.split(group.gather(stamps.tails), bench.unsteady_steps)
    state = optimizers.tensors(optimizer, model)
    tensors: dict[str, torch.Tensor] = dict(model.state_dict())
    everything = [*tensors.values(), *(state[name] for name in sorted(state))]
    deviation = group.take_over(everything)
    bench.memory.learnt = {order.run: steps.learnt}
    if order.optimizer_state == "keep" and bench.kept is not None:
        kept.leave(bench.kept, order.run, order.round, state)
    if order.optimizer_state == "average":
        tensors |= state
    said = Synchronous(
        group=group.name,
        rank=ranks.rank,
        world=ranks.world,
        samples=sum(steps.totals),
        loss_sum=sum(value * total for value, total in zip(curve, steps.totals, strict=True)),
        window_seconds=bench.ended_seconds - bench.began_seconds,
        forward_seconds=stamps.forward_seconds,
        deviation=deviation,
        checksum=checksum(everything),
    )
    return Outcome(tensors, sum(losses), sums, len(curve), done, split, said, curve)


class _Stepper:
    """The gradients of one step: of the whole batch, or of what fits into memory part by part."""

    def __init__(self, lesson: Lesson, bench: Bench, group: Group, stamps: Stamps) -> None:
        self._task, self._data = lesson.task, lesson.data
        self._network = group.wrap(lesson.model)
        self._bench, self._group, self._stamps = bench, group, stamps

    def gradients(self, places: Any, total: int) -> tuple[float, dict[str, float]]:
        """Left in the parameters, summed over all ranks and over `total`: as those of one batch, for they add
        up until the last part hands them over. The loss sum and the task's figures of this rank's samples."""
        bench, stamps, size = self._bench, self._stamps, len(places)
        parts = dealing.cut_evenly(size, bench.micro_batch)
        lost, past = 0.0, 0
        sums: dict[str, float] = {}
        for number, part in enumerate(parts, start=1):
            last = number == len(parts)
            if past:
                stamps.micro_batch()
            with nullcontext() if last else self._group.apart():
                batch = self._task.batch(self._data, places[past : past + part])
                loss, others = self._task.loss_sum(self._network, batch)
                bench.reach(size, (past + part * FORWARD_PART) / size)
                stamps.forward()
                past += part
                if last:
                    self._group.backward(loss / total, lambda: self._hand_over(size))
                else:
                    (loss / total).backward()  # type: ignore[no-untyped-call]
                    bench.reach(size, past / size)
            lost += float(loss.detach())
            for name, other in others.items():
                sums[name] = sums.get(name, 0.0) + other
        return lost, sums

    def _hand_over(self, size: int) -> None:
        self._bench.reach(size)
        self._stamps.handed()


def _indivisible(lesson: Lesson, micro_batch: int | None) -> str:
    """Why batches of this size cannot be trained here; "" where they can, as a whole or in parts."""
    from torch.nn.modules.batchnorm import _BatchNorm

    most = dealing.most_in_a_step(lesson.order)
    if micro_batch is None or most <= micro_batch:
        return ""
    if not any(isinstance(module, _BatchNorm) for module in lesson.model.modules()):
        return ""
    return (
        f"a step may give it {most} samples, {micro_batch} at once fit into its memory, and the model has "
        "BatchNorm, whose figures are of whole batches: a smaller --batch, or a model with GroupNorm"
    )


def checksum(tensors: list[torch.Tensor]) -> str:
    """Of the bytes of all tensors: equal replicas have equal ones."""
    digest = hashlib.sha256()
    for tensor in tensors:
        digest.update(tensor.detach().contiguous().numpy().tobytes())
    return digest.hexdigest()[:16]


def _optimizer(lesson: Lesson, bench: Bench, group: Group) -> torch.optim.Optimizer:
    """With the state that the order says it has: none, the one that came with the weights, or the silo's."""
    order = lesson.order
    made = optimizers.make(order, lesson.model)
    state: dict[str, Any] = {}
    if order.optimizer_state == "average":
        state = dict(lesson.carried)
    elif order.optimizer_state == "keep" and bench.kept is not None:
        state = kept.taken(bench.kept, order.run, order.round, group)
    optimizers.restore(made, lesson.model, state)
    return made


def _curve(losses: list[float], totals: list[int], group: Group) -> tuple[float, ...]:
    """Mean loss of every step over its global batch. The same numbers on every rank, so all end or none."""
    curve = tuple(value / total for value, total in zip(group.sum(losses), totals, strict=True))
    for step, value in enumerate(curve, start=1):
        if not math.isfinite(value):
            raise TrainingError(f"the loss is {value} at step {step} of {len(curve)}")
    return curve


class _Steps:
    """Batch sizes of every step by rank: the schedule's, or what the ranks agree on on their way."""

    def __init__(self, ranks: Rendezvous, group: Group, learnt: Mapping[str, Any]) -> None:
        samples = sum(ranks.shares)
        self.totals = dealing.step_sizes(samples, ranks.steps)
        self._rows = dealing.schedule(ranks.shares, ranks.steps)
        self._rank, self._rule, self._group = ranks.rank, ranks.stepwise, group
        self._adjuster: Adjuster | None = None
        if ranks.stepwise is not None:
            known = _agreed(learnt, group)
            self._adjuster = Adjuster(ranks.stepwise, ranks.shares, ranks.steps, ranks.boards, known)
        self._first = self._seen = self._samples = 0

    @property
    def learnt(self) -> dict[str, Any]:
        """What the ranks' rule is to know in the next round."""
        return self._adjuster.state if self._adjuster else {}

    def mine(self, step: int) -> tuple[int, int]:
        """Where this rank's samples of the step begin within the round, and how many they are."""
        adjuster, total = self._adjuster, self.totals[step]
        changed = adjuster is not None and adjuster.speeds is not None
        sizes = adjuster.sizes(total) if adjuster and changed else [row[step] for row in self._rows]
        start, self._first = self._first + dealing.offset(sizes, self._rank), self._first + total
        return start, sizes[self._rank]

    def adjust(self, step: int, size: int, stamps: Stamps) -> None:
        """After a step: every so many, all ranks hear all compute times, and change alike."""
        self._samples += size
        last = step + 1 == len(self.totals)
        if self._adjuster is None or self._rule is None or last or (step + 1) % self._rule.every:
            return
        began = stamps.now()
        found = self._group.gather([sum(stamps.compute[self._seen :]), float(self._samples)])
        self._adjuster.hear([seconds for seconds, _ in found], [int(samples) for _, samples in found])
        for note in self._adjuster.notes if self._rank == 0 else ():
            sys.stderr.write(f"edged.trainer: step {step + 1}: {note}\n")
        self._seen, self._samples = step + 1, 0
        stamps.aside(began)


def _agreed(learnt: Mapping[str, Any], group: Group) -> dict[str, Any]:
    """What the rank that knows most has from earlier rounds; a new process knows nothing."""
    entries = sum(len(found) for found in learnt.values())
    known = [int(values[0]) for values in group.gather([float(entries)])]
    best = max(known)
    if not best:
        return {}
    data = msgspec.json.encode(learnt)
    return cast("dict[str, Any]", msgspec.json.decode(group.share(data, known.index(best)), type=State))
