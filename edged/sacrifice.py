"""The sacrificial child: `python -m edged.sacrifice`, doubles a batch until it no longer fits into memory.

One trial comes on stdin, each size that was computed goes out at once, so that the last one stands whatever
ends this process. What it may still take of the memory is bounded, so that it dies before others suffer.
"""

from __future__ import annotations

import os
import resource
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from edged import optimizers, tasks
from edged.sizing import Faulty, Fits, Full, Trial, Word, control_groups
from edged.trainer import die_with_the_agent

if TYPE_CHECKING:
    import torch

    from edged.tasks import Data, Task

OOM_SCORE = 1000
MARGIN = 0.8
"""Part of the free memory that may be used: training has exchanges and the rest of the machine beside it."""
LONGEST_SECONDS = 10.0
"""Of a step: a larger one would bring no speed that micro-batches of this size do not have."""


def sizes(known: int, upto: int) -> Iterator[int]:
    """Doubled from what is known on, at last `upto` itself."""
    size = known * 2 or 1
    while size < upto:
        yield size
        size *= 2
    if known < upto:
        yield upto


def bound(data_bytes: int, free_bytes: int, inherited_bytes: int) -> int:
    """Of the private memory of this process: what it has now, and a part of what is free."""
    free = free_bytes
    if inherited_bytes > 0:
        free = min(free, inherited_bytes - data_bytes)
    return data_bytes + max(0, int(MARGIN * free))


def attempt(trial: Trial, tell: Callable[[Word], None]) -> None:
    """Say each size that fits. Raises MemoryError at the first that does not, and whatever a task raises."""
    order = trial.order
    task = tasks.find(order.task, [Path(folder) for folder in trial.folders])
    options = tasks.options_of(task, order.options)
    data = task.load(Path(trial.pool), options)
    model = task.model(options, 1)
    model.train()
    # What training holds beside: gradients as they are exchanged.
    buckets = [parameter.detach().clone() for parameter in model.parameters()]
    optimizer = optimizers.make(order, model)
    _set_bound()
    for size in sizes(trial.known, trial.upto):
        began = time.monotonic()
        try:
            _step(task, data, model, optimizer, size)
        except RuntimeError as error:
            if not of_memory(error):
                raise
            raise MemoryError from error
        tell(Fits(size))
        if time.monotonic() - began > LONGEST_SECONDS:
            tell(Full())
            break
    del buckets


def of_memory(error: RuntimeError) -> bool:
    """Whether torch means that memory is short: it has no error of its own for the CPU's."""
    text = str(error).lower()
    return any(words in text for words in ("not enough memory", "can't allocate", "cannot allocate"))


def _step(
    task: Task, data: Data, model: torch.nn.Module, optimizer: torch.optim.Optimizer, size: int
) -> None:
    import numpy as np

    chosen = np.linspace(0, data.samples - 1, size).astype(np.int64)
    optimizer.zero_grad(set_to_none=True)
    loss, _ = task.loss_sum(model, task.batch(data, chosen))
    (loss / size).backward()  # type: ignore[no-untyped-call]
    optimizer.step()


def _set_bound() -> None:
    lines = dict(
        line.split(":", 1) for line in Path("/proc/self/status").read_text().splitlines() if ":" in line
    )
    memory = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    free = [_kibibytes(memory["MemAvailable"]), *(limit - used for limit, used in control_groups())]
    soft, hard = resource.getrlimit(resource.RLIMIT_DATA)
    limit = bound(_kibibytes(lines["VmData"]), min(free), soft)
    resource.setrlimit(resource.RLIMIT_DATA, (limit, hard))


def _kibibytes(text: str) -> int:
    return int(text.split(maxsplit=1)[0]) * 1024


def main(parent: int) -> None:
    """Serve the agent with that process id."""
    die_with_the_agent(parent, OOM_SCORE)
    sink = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)  # a task's prints are no words

    def tell(word: Word) -> None:
        sink.write(msgspec.json.encode(word) + b"\n")

    trial = msgspec.json.decode(sys.stdin.buffer.read(), type=Trial)
    try:
        import torch

        if trial.threads:
            torch.set_num_threads(trial.threads)
        attempt(trial, tell)
    except MemoryError:
        tell(Full())
    except (Exception, SystemExit) as error:  # whatever a user's task raises
        tell(Faulty(f"{type(error).__name__}: {error}"[:1000]))


if __name__ == "__main__":
    main(int(sys.argv[1]))
