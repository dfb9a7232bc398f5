"""`python -m coordinator.demo.steps TASK FOLDER POOL BATCH PROCESSES`: training steps of a task, timed.

It loads torch once and forks, then all processes train at once. One JSON line in (`Try`) gives one out
(`Timed`), after a first `Timed` that says that it is ready. Only here the demo touches torch.
"""

import multiprocessing
import sys
import time
from collections.abc import Callable
from multiprocessing.connection import Connection
from pathlib import Path

import msgspec
from msgspec import Struct

from edged.pace import Pace

WARM_UP_STEPS = 3


class Try(Struct, frozen=True):
    """Train for so long; each process at its pace, or with None at the machine's own speed."""

    seconds: float
    seconds_per_sample: tuple[float | None, ...]


class Steps(Struct, frozen=True):
    """Wall and processor seconds of each step's own work, without its padding."""

    wall_seconds: tuple[float, ...] = ()
    cpu_seconds: tuple[float, ...] = ()


class Timed(Struct, frozen=True):
    """Of each process, in order."""

    processes: tuple[Steps, ...] = ()


def main(task: str, folder: str, pool: str, batch: str, processes: str) -> None:
    """Serve until the input ends."""
    size = int(batch)
    step = _step_of(task, folder, pool, size)
    fork = multiprocessing.get_context("fork")
    pipes = []
    for _ in range(int(processes)):
        here, there = fork.Pipe()
        fork.Process(target=_work, args=(there, step, size), daemon=True).start()
        pipes.append(here)
    for pipe in pipes:
        pipe.recv_bytes()
    _tell(Timed())
    for line in sys.stdin:
        asked = msgspec.json.decode(line, type=Try)
        for pipe, pace in zip(pipes, asked.seconds_per_sample, strict=True):
            pipe.send_bytes(msgspec.json.encode((asked.seconds, pace)))
        _tell(Timed(tuple(msgspec.json.decode(pipe.recv_bytes(), type=Steps) for pipe in pipes)))


def _step_of(name: str, folder: str, pool: str, size: int) -> Callable[[int], None]:
    import numpy as np
    import torch

    from edged import tasks

    torch.set_num_threads(1)
    task = tasks.find(name, [Path(folder)])
    options = tasks.options_of(task, {})
    model = task.model(options, 1)
    data = task.load(tasks.BUILTIN if pool == str(tasks.BUILTIN) else Path(pool), options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)

    def step(number: int) -> None:
        chosen = (np.arange(size) + number * size) % data.samples
        optimizer.zero_grad()
        loss, _ = task.loss_sum(model, task.batch(data, chosen))
        torch.autograd.backward(loss)
        optimizer.step()

    return step


def _work(pipe: Connection, step: Callable[[int], None], size: int) -> None:
    for number in range(WARM_UP_STEPS):
        step(number)
    pipe.send_bytes(b"ready")
    while True:
        seconds, seconds_per_sample = msgspec.json.decode(pipe.recv_bytes(), type=tuple[float, float | None])
        wall, cpu = list[float](), list[float]()
        pace, until = Pace(seconds_per_sample), time.monotonic() + seconds
        pace.begin()
        while time.monotonic() < until or not wall:
            began, used = time.monotonic(), time.thread_time()
            step(len(wall))
            wall.append(time.monotonic() - began)
            cpu.append(time.thread_time() - used)
            pace.step(size)
        pipe.send_bytes(msgspec.json.encode(Steps(tuple(wall), tuple(cpu))))


def _tell(timed: Timed) -> None:
    sys.stdout.write(msgspec.json.encode(timed).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
