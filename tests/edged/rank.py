"""Ranks as processes of their own, forked from one that has torch: commands in and answers out as JSON lines.

`python rank.py` takes pipes over the socket at its stdin, and makes a rank with each pair of them. A rank
runs the real regime on a small made-up task in float64 (or float32) and tells every step's gradient.
"""

import importlib
import os
import signal
import socket
import sys
from pathlib import Path
from typing import Any, cast

import msgspec
import numpy as np
import torch
from msgspec import Struct

from edged import optimizers
from edged.bench import Bench, Memory
from edged.groups import Readiness
from edged.messages import Train
from edged.pace import Pace
from edged.regimes import Lesson, PeerError, TrainingError, ddp
from edged.tasks import Data, Task
from edged.work import Meet, Word

INPUTS, OUTPUTS, SAMPLES = 6, 3, 400


class Toy:
    """A task: a small stable net with GroupNorm, squared error."""

    def __init__(self, dtype: str, hidden: int = 8) -> None:
        self.dtype, self.hidden = getattr(torch, dtype), hidden

    def data(self) -> Data:
        generator = np.random.RandomState(5)
        inputs = generator.standard_normal((SAMPLES, INPUTS))
        targets = np.tanh(inputs @ generator.standard_normal((INPUTS, OUTPUTS)))
        return Data(inputs, targets, inputs[:0], targets[:0])

    def model(self, options: Any, seed: int) -> torch.nn.Module:
        torch.manual_seed(seed)
        layers = torch.nn.Sequential(
            torch.nn.Linear(INPUTS, self.hidden),
            torch.nn.GroupNorm(2, self.hidden),
            torch.nn.Tanh(),
            torch.nn.Linear(self.hidden, self.hidden),
            torch.nn.Tanh(),
            torch.nn.Linear(self.hidden, OUTPUTS),
        )
        return layers.to(self.dtype)

    def batch(self, data: Data, indices: Any) -> tuple[torch.Tensor, ...]:
        return (
            torch.from_numpy(data.inputs[indices]).to(self.dtype),
            torch.from_numpy(data.targets[indices]).to(self.dtype),
        )

    def loss_sum(
        self, model: torch.nn.Module, batch: tuple[torch.Tensor, ...]
    ) -> tuple[torch.Tensor, dict[str, float]]:
        loss = ((model(batch[0]) - batch[1]) ** 2).sum()
        return loss, {"error": float(loss.detach())}


def gradient(model: torch.nn.Module) -> list[float]:
    """All gradients in one row."""
    rows = [p.grad.reshape(-1) for p in model.parameters() if p.grad is not None]
    return [float(value) for value in torch.cat(rows)]


class Ask(Struct, frozen=True):
    """A command. `die_after` ends the process by force after so many steps."""

    do: str
    order: Train | None = None
    meet: Meet | None = None
    board: str = ""
    dtype: str = "float64"
    hidden: int = 8
    sizes: tuple[int, ...] = ()
    hook: bool = True
    die_after: int = 0
    hang_after: int = 0
    kept: str = ""
    seconds_per_sample: float | None = None
    carried: bool = False
    micro_batch: int | None = None


class Answer(Struct, frozen=True, omit_defaults=True):
    """What came of it."""

    readiness: Readiness | None = None
    gradients: list[list[float]] = []
    curve: tuple[float, ...] = ()
    weights: list[float] = []
    loss_sum: float = 0.0
    samples: int = 0
    deviation: float = 0.0
    checksum: str = ""
    forward_seconds: float = 0.0
    compute_seconds: float = 0.0
    wait_seconds: float = 0.0
    communication_seconds: float = 0.0
    behind: int = 0
    error: str = ""
    blames: tuple[str, ...] | None = None


def say(answer: Answer) -> None:
    sys.stdout.write(msgspec.json.encode(answer).decode() + "\n")
    sys.stdout.flush()


def hear() -> Ask:
    line = sys.stdin.readline()
    return msgspec.json.decode(line, type=Ask) if line else Ask("end")


class Recorder(Bench):
    """A bench that keeps each step's gradient, and dies or hangs where it is told to."""

    def __init__(self, ask: Ask, memory: Memory, model: torch.nn.Module) -> None:
        assert ask.order is not None
        super().__init__(
            board=ask.board,
            order=ask.order.order,
            pace=Pace(ask.seconds_per_sample),
            memory=memory,
            tell=self.tell,
            cancelled=lambda order: False,
            meet=self.wait,
            address="127.0.0.1",
            kept=Path(ask.kept) if ask.kept else None,
            micro_batch=ask.micro_batch,
        )
        self.ask, self.model, self.gradients = ask, model, cast("list[list[float]]", [])

    def tell(self, word: Word) -> None:
        readiness = getattr(word, "readiness", None)
        if readiness is not None:
            say(Answer(readiness=readiness))

    def wait(self, order: str) -> Meet:
        found = hear().meet
        assert found is not None
        return found

    def stepped(self, done: int, samples: int) -> None:
        self.gradients.append(gradient(self.model))
        if len(self.gradients) == self.ask.die_after:
            os.kill(os.getpid(), 9)
        if len(self.gradients) == self.ask.hang_after:
            hear()
        super().stepped(done, samples)


class Rank:
    """What the process keeps between commands, as the training child does."""

    def __init__(self) -> None:
        self.memory = Memory()
        self.state: dict[str, torch.Tensor] = {}
        self.models: dict[str, torch.nn.Module] = {}

    def train(self, ask: Ask) -> Answer:
        assert ask.order is not None
        task = Toy(ask.dtype, ask.hidden)
        key = f"{ask.dtype}/{ask.hidden}"
        model = self.models.setdefault(key, task.model(None, 1))
        before, carried = (
            optimizers.parted(self.state) if ask.carried else (task.model(None, 1).state_dict(), {})
        )
        model.load_state_dict(before)
        bench = Recorder(ask, self.memory, model)
        lesson = Lesson(ask.order, cast("Task", task), None, task.data(), model, carried)
        try:
            found = ddp.train(lesson, bench)
        except PeerError as error:
            return Answer(error=str(error), blames=error.blames)
        except TrainingError as error:
            return Answer(error=str(error))
        assert found.split is not None
        assert found.synchronous is not None
        self.state = {name: value.clone() for name, value in found.tensors.items()}
        weights = torch.cat([value.reshape(-1).double() for value in model.state_dict().values()])
        return Answer(
            gradients=bench.gradients,
            curve=found.curve,
            weights=[float(value) for value in weights],
            loss_sum=found.loss_sum,
            samples=found.samples,
            deviation=found.synchronous.deviation,
            checksum=found.synchronous.checksum,
            forward_seconds=found.synchronous.forward_seconds,
            compute_seconds=found.split.compute_seconds,
            wait_seconds=found.split.wait_seconds,
            communication_seconds=found.split.communication_seconds,
            behind=bench.behind_pace_steps,
        )

    def step(self, ask: Ask) -> Answer:
        """One step's gradient with batches of any sizes, through the regime's hook or plain DDP's mean."""
        group = self.memory.group
        assert group is not None
        task = Toy(ask.dtype, ask.hidden)
        model = task.model(None, 1)
        first, size, total = sum(ask.sizes[: group.rank]), ask.sizes[group.rank], sum(ask.sizes)
        batch = task.batch(task.data(), np.arange(first, first + size))
        if ask.hook:
            loss, _ = task.loss_sum(group.wrap(model), batch)
            group.backward(loss / total, lambda: None)
        else:
            plain = torch.nn.parallel.DistributedDataParallel(model, broadcast_buffers=False)
            loss, _ = task.loss_sum(plain, batch)
            (loss * group.world / total).backward()  # type: ignore[no-untyped-call]
        return Answer(gradients=[gradient(model)])


def main() -> None:
    """One rank at stdin and stdout."""
    torch.set_num_threads(1)
    rank = Rank()
    while (ask := hear()).do != "end":
        if ask.do == "train":
            say(rank.train(ask))
        elif ask.do == "step":
            say(rank.step(ask))


def serve(asks: socket.socket) -> None:
    """Make ranks, until nobody asks any more."""
    importlib.import_module(
        "torch._dynamo"
    )  # a rank's first step would, and it takes as long as torch itself
    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    while True:
        _, pipes, _, _ = socket.recv_fds(asks, 1, 2)
        if len(pipes) < 2:
            return
        pid = os.fork()
        if pid == 0:
            asks.close()
            for number, pipe in enumerate(pipes):
                os.dup2(pipe, number)
                os.close(pipe)
            main()
            os._exit(0)
        for pipe in pipes:
            os.close(pipe)
        asks.sendall(pid.to_bytes(8, "little"))


if __name__ == "__main__":
    serve(socket.socket(fileno=os.dup(0)))
