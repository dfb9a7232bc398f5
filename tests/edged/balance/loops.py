"""Loops of a user that torchrun starts for `test_torchrun.py`: `loops.py <folder> <loop>...`.

A rank leaves what it saw as <folder>/<loop>.<rank>.json. Compute time is virtual: a clock moves by TAUS.
"""

import json
import os
import sys
import warnings
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from copy import deepcopy
from pathlib import Path
from typing import Any, cast

import msgspec
import torch
import torch.distributed as dist
from torch.distributed.algorithms.ddp_comm_hooks.default_hooks import allreduce_hook
from torch.nn.parallel import DistributedDataParallel
from torch.utils.data import DataLoader, Dataset

from edged.balance import BalancedSampler, Balancer, balance
from edged.balance.watch import HostWatch
from edged.schedule import permutation

TAUS = (0.001, 0.002, 0.004)
BATCH = 24
Batch = tuple[torch.Tensor, torch.Tensor, torch.Tensor]


class Points(Dataset[Any]):
    """Samples that are functions of their index."""

    def __init__(self, size: int) -> None:
        self.size = size

    def __len__(self) -> int:
        return self.size

    def __getitem__(self, index: int) -> tuple[torch.Tensor, torch.Tensor, int]:
        if index >= self.size:
            raise IndexError(index)
        x = torch.tensor([index % 7, index % 11, index % 13, 1], dtype=torch.float64) / 10
        return x, torch.sin(x.sum()).reshape(1), index


class Clock:
    """Seconds that pass only when told."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now


def net() -> torch.nn.Module:
    torch.manual_seed(3)
    made = torch.nn.Sequential(torch.nn.Linear(4, 8), torch.nn.Tanh(), torch.nn.Linear(8, 1))
    return made.double()


def loss_of(model: torch.nn.Module, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
    return torch.nn.functional.mse_loss(model(x), y)


def flat(model: torch.nn.Module) -> torch.Tensor:
    return torch.cat([one.grad.flatten() for one in model.parameters() if one.grad is not None])


class Desk:
    """A user's data, model, optimizer and loader, and what is seen of them."""

    def __init__(
        self,
        steps: int,
        rest: int = 0,
        workers: tuple[int, ...] = (0, 0, 0),
        taus: tuple[float, ...] = TAUS,
    ) -> None:
        self.rank = dist.get_rank()
        self.tau = taus[self.rank]
        self.data = Points(steps * BATCH + rest)
        self.model = DistributedDataParallel(net())
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.05, momentum=0.9)
        self.sampler = BalancedSampler(self.data, batch_size=BATCH, seed=5)
        self.loader: DataLoader[Any] = DataLoader(
            self.data,
            batch_sampler=self.sampler,
            num_workers=workers[self.rank],
            prefetch_factor=2 if workers[self.rank] else None,
        )
        self.clock = Clock()
        self.seen: list[list[int]] = []
        self.errors: list[float] = []

    def balance(self) -> Balancer:
        return balance(self.model, self.optimizer, watch=HostWatch(self.clock))

    def batches(self) -> Iterator[Batch]:
        for x, y, index in self.loader:
            self.seen.append(index.tolist())
            yield x, y, index

    def compute(self, x: torch.Tensor, y: torch.Tensor) -> torch.Tensor:
        """The loss, at this rank's speed."""
        loss = loss_of(self.model, x, y)
        self.clock.now += self.tau * len(x)
        return loss

    def backward(self, loss: torch.Tensor) -> None:
        torch.autograd.backward(loss)
        self.clock.now += 100.0  # what comes after the gradients is nobody's compute

    def alone(self, epoch: int, step: int) -> torch.Tensor:
        """The gradient of one process that trains the whole step."""
        model = deepcopy(self.model.module)
        model.zero_grad()
        order = permutation(5, epoch, len(self.data))
        last = step == len(self.sampler) - 1
        chosen = order[step * BATCH : None if last else (step + 1) * BATCH]
        x, y, _ = zip(*(self.data[int(i)] for i in chosen), strict=True)
        torch.autograd.backward(loss_of(model, torch.stack(x), torch.stack(y)))
        return flat(model)

    def compare(self, wanted: torch.Tensor) -> None:
        self.errors.append(float((flat(self.model) - wanted).norm() / wanted.norm()))

    def end(self, balancer: Balancer) -> dict[str, Any]:
        report = balancer.report()
        balancer.close()
        return {"seen": self.seen, "errors": self.errors, "changes": report.changes, "text": str(report)}


def plain(desk: Desk, epochs: int = 1) -> dict[str, Any]:
    balancer = desk.balance()
    for epoch in range(epochs):
        desk.sampler.set_epoch(epoch)
        for step, (x, y, _) in enumerate(desk.batches()):
            desk.optimizer.zero_grad()
            desk.backward(desk.compute(x, y))
            desk.compare(desk.alone(epoch, step))
            desk.optimizer.step()
    return desk.end(balancer)


def speeds() -> dict[str, Any]:
    return plain(Desk(30, rest=7), epochs=2)


def workers() -> dict[str, Any]:
    return plain(Desk(20, rest=2, workers=(2, 1, 0)))


def accumulated() -> dict[str, Any]:
    """Four batches a step under no_sync; sizes change within one, for batches are fetched ahead."""
    desk = Desk(16, workers=(1, 1, 1))
    with desk.balance() as balancer:
        wanted = torch.zeros(0)
        for step, (x, y, _) in enumerate(desk.batches()):
            first, last = step % 4 == 0, step % 4 == 3
            if first:
                desk.optimizer.zero_grad()
                wanted = torch.zeros_like(desk.alone(0, step))
            wanted += desk.alone(0, step) / 4
            with nullcontext() if last else desk.model.no_sync():
                desk.backward(desk.compute(x, y) / 4)
            if last:
                norm = torch.nn.utils.clip_grad_norm_(desk.model.parameters(), 0.01)
                assert norm > 0.01
                desk.compare(wanted * 0.01 / (wanted.norm() + 1e-6))
                desk.optimizer.step()
        return desk.end(balancer)


def scaled() -> dict[str, Any]:
    """A GradScaler, as loops in mixed precision have it, and a communication hook of the user's."""
    desk = Desk(12)
    desk.model.register_comm_hook(None, allreduce_hook)
    balancer, scaler = desk.balance(), torch.amp.GradScaler("cpu")
    for step, (x, y, _) in enumerate(desk.batches()):
        desk.optimizer.zero_grad()
        desk.backward(scaler.scale(desk.compute(x, y)))
        scaler.unscale_(desk.optimizer)
        desk.compare(desk.alone(0, step))
        scaler.step(desk.optimizer)
        scaler.update()
    return desk.end(balancer)


def resumed() -> dict[str, Any]:
    """Left in the midst of an epoch, gone on with from a checkpoint."""
    desk = Desk(20, workers=(2, 0, 0))
    balancer, state = desk.balance(), dict[str, Any]()
    desk.sampler.set_epoch(3)
    for step, (x, y, _) in enumerate(desk.batches()):
        desk.optimizer.zero_grad()
        desk.backward(desk.compute(x, y))
        desk.optimizer.step()
        if step == 13:
            state = json.loads(json.dumps(desk.sampler.state_dict()))
            break
    balancer.close()
    again = Desk(20, workers=(0, 2, 0), taus=(0.003, 0.003, 0.003))
    with balance(again.model, again.optimizer, again.sampler, watch=HostWatch(again.clock)):
        again.sampler.load_state_dict(state)
        states = []
        for epoch in (3, 4):
            again.sampler.set_epoch(epoch)
            next(iter(again.loader))  # a look at the data is no training
            for x, y, _ in again.batches():
                again.optimizer.zero_grad()
                again.backward(again.compute(x, y))
                again.optimizer.step()
            states.append(again.sampler.state_dict())
    return {"state": state, "seen": [desk.seen, again.seen], "length": len(again.loader), "done": states}


def energy() -> dict[str, Any]:
    desk = Desk(8)
    with balance(desk.model, desk.optimizer, joules=True) as balancer:
        for x, y, _ in desk.batches():
            desk.optimizer.zero_grad()
            desk.backward(desk.compute(x, y))
            desk.optimizer.step()
        return {"energy": [one.energy for one in balancer.report().ranks], "text": str(balancer.report())}


def dies() -> dict[str, Any]:
    desk = Desk(20)
    desk.balance()
    for step, (x, y, _) in enumerate(desk.batches()):
        if step == 6 and desk.rank == 1:
            os._exit(3)
        desk.optimizer.zero_grad()
        desk.backward(desk.compute(x, y))
        desk.optimizer.step()
    return {}


def refused(what: Callable[[], object]) -> str:
    try:
        what()
    except (ValueError, TypeError, RuntimeError) as error:
        return f"{type(error).__name__}: {error}"
    return "accepted"


def refusals() -> dict[str, Any]:
    rank, said = dist.get_rank(), dict[str, str]()

    def dealing(size: int = 60, epoch: int = 0, seed: int = 0, step: int = 0) -> None:
        sampler = BalancedSampler(Points(size), 12, seed=seed)
        sampler.set_epoch(epoch)
        sampler.load_state_dict({**sampler.state_dict(), "step": step})
        next(iter(sampler))

    said["length"] = refused(lambda: dealing(size=60 + (rank == 1)))
    said["epoch"] = refused(lambda: dealing(epoch=int(rank == 2)))
    said["seed"] = refused(lambda: dealing(seed=rank))
    said["step"] = refused(lambda: dealing(step=rank))
    said["small"] = refused(lambda: BalancedSampler(Points(60), 2))
    said["agreed"] = refused(dealing)
    desk = Desk(4)
    other, model = net(), cast(Any, desk.model)
    said["bare"] = refused(lambda: balance(desk.model.module, desk.optimizer))
    said["swapped"] = refused(lambda: balance(desk.model, torch.optim.SGD(other.parameters(), lr=1.0)))
    said["optimizer"] = refused(lambda: balance(desk.model, model))
    said["every"] = refused(lambda: balance(desk.model, desk.optimizer, every=0))
    with balance(desk.model, desk.optimizer, desk.sampler):
        said["twice"] = refused(lambda: balance(desk.model, desk.optimizer, desk.sampler).close())
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        sampler = BalancedSampler(Points(60), 12)
        said["passes"] = str([len([*sampler]) for _ in range(3)])
    said["unbalanced"] = "; ".join(str(one.message) for one in caught)
    norm = DistributedDataParallel(torch.nn.BatchNorm1d(4))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        balance(norm, torch.optim.SGD(norm.parameters(), lr=1.0), desk.sampler).close()
    said["norm"] = "; ".join(str(one.message) for one in caught)
    return dict(said)


LOOPS = (speeds, workers, accumulated, scaled, resumed, energy, dies, refusals)

if __name__ == "__main__":
    torch.set_num_threads(1)
    dist.init_process_group("gloo")
    loops = {loop.__name__: loop for loop in LOOPS}
    for name in sys.argv[2:]:
        found = loops[name]()
        (Path(sys.argv[1]) / f"{name}.{dist.get_rank()}.json").write_bytes(msgspec.json.encode(found))
    dist.destroy_process_group()
