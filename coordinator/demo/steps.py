"""`python -m coordinator.demo.steps TASK FOLDER POOL BATCH`: makes training steps of a task, timed.

One JSON line in (`Try`) gives one out (`Steps`), after a first `Steps` that says that it is ready. Only here
the demo touches torch.
"""

import sys
import time
from pathlib import Path

import msgspec
from msgspec import Struct

from edged.pace import Pace

WARM_UP_STEPS = 3


class Try(Struct, frozen=True):
    """Train for so long, at the machine's own speed (None) or at this pace."""

    seconds: float
    seconds_per_sample: float | None = None


class Steps(Struct, frozen=True):
    """Wall and processor seconds of each step's own work, without its padding; `behind` of the pace."""

    wall_seconds: tuple[float, ...] = ()
    cpu_seconds: tuple[float, ...] = ()
    behind: int = 0


def main(task_name: str, folder: str, pool: str, batch: str) -> None:
    """Serve until the input ends."""
    import numpy as np
    import torch

    from edged import tasks

    torch.set_num_threads(1)
    task = tasks.find(task_name, [Path(folder)])
    options = tasks.options_of(task, {})
    model = task.model(options, 1)
    data = task.load(None if pool == str(tasks.BUILTIN) else Path(pool), options)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    size = int(batch)

    def step(number: int) -> None:
        chosen = (np.arange(size) + number * size) % data.samples
        optimizer.zero_grad()
        loss, _ = task.loss_sum(model, task.batch(data, chosen))
        loss.backward()  # type: ignore[no-untyped-call]
        optimizer.step()

    for number in range(WARM_UP_STEPS):
        step(number)
    _tell(Steps())
    for line in sys.stdin:
        asked = msgspec.json.decode(line, type=Try)
        pace, wall, cpu = Pace(asked.seconds_per_sample), list[float](), list[float]()
        until = time.monotonic() + asked.seconds
        pace.begin()
        while time.monotonic() < until or not wall:
            began, used = time.monotonic(), time.thread_time()
            step(len(wall))
            wall.append(time.monotonic() - began)
            cpu.append(time.thread_time() - used)
            pace.step(size)
        _tell(Steps(tuple(wall), tuple(cpu), pace.behind_steps))


def _tell(steps: Steps) -> None:
    sys.stdout.write(msgspec.json.encode(steps).decode() + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    main(*sys.argv[1:])
