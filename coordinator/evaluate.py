"""The coordinator's other process: makes first models and measures held-out figures, outside the rounds.

`python -m coordinator.evaluate` answers one JSON line on standard output for each on standard input, in
order, and ends with its input. Torch and task files are loaded here only; one thread, low priority.
"""

import contextlib
import math
import os
import sys
import time
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from edged import tasks, weights
from edged.messages import Manifest
from edged.optimizers import parted
from edged.schedule import subseed
from edged.transfers import describe

NICE = 10


class Prepare(Struct, frozen=True, tag_field="do", tag="prepare"):
    """Find the task, check its options, look at the pool (path None: none), write version 0 to `target`."""

    id: int
    task: str
    folders: tuple[str, ...]
    options: dict[str, Any]
    pool: str
    path: str | None
    seed: int
    target: str
    chunk_bytes: int


class Measure(Struct, frozen=True, tag_field="do", tag="measure"):
    """Held-out figures of the model file."""

    id: int
    task: str
    folders: tuple[str, ...]
    options: dict[str, Any]
    pool: str
    path: str | None
    model: str
    max_samples: int | None = None


Question = Prepare | Measure


class Foundation(Struct, frozen=True):
    """What a run needs to know of its task before it begins. Fingerprint and samples are None without a copy
    of the pool here."""

    name: str
    source: str
    task_hash: str
    defaults: tasks.Defaults
    manifest: Manifest
    fingerprint: str | None
    pool_samples: int | None
    pool_error: str = ""


class Answer(Struct, frozen=True):
    """To the question of this id: one of the results, or why there is none. A figure that is not finite, as
    of a model that diverged, is None."""

    id: int
    foundation: Foundation | None = None
    figures: dict[str, float | None] | None = None
    seconds: float = 0.0
    error: str = ""


class Bench:
    """Answers questions; keeps the last pool loaded, because the next question is about the same run."""

    def __init__(self) -> None:
        self._key: tuple[str, str, bytes] | None = None
        self._loaded: tuple[tasks.Task, Any, tasks.Data] | None = None

    def answer(self, question: Question) -> Answer:
        """Never raises: foreign code's faults are the answer's error."""
        began = time.monotonic()
        try:
            if isinstance(question, Prepare):
                return Answer(question.id, foundation=prepare(question))
            figures = self._measure(question)
            return Answer(question.id, figures=figures, seconds=time.monotonic() - began)
        except (tasks.TaskError, tasks.PoolError, weights.WeightsError, MissingPoolError) as error:
            return Answer(question.id, error=str(error))
        except Exception as error:
            return Answer(question.id, error=f"task {question.task}: {type(error).__name__}: {error}")

    def _measure(self, question: Measure) -> dict[str, float | None]:
        key = (question.task, question.path or "", msgspec.json.encode(question.options))
        if self._key != key or self._loaded is None:
            self._loaded = self._key = None
            task, options = _task(question)
            folder, _ = _pool(task, question)
            self._loaded, self._key = (task, options, task.load(folder, options)), key
        task, options, data = self._loaded
        model = task.model(options, 0)
        state, _ = parted(weights.load_torch(Path(question.model)))
        model.load_state_dict(state)
        found = task.evaluate(model, data, question.max_samples)
        return {name: float(value) if math.isfinite(value) else None for name, value in found.items()}


class MissingPoolError(ValueError):
    """There is no copy of the pool on this machine."""


def prepare(question: Prepare) -> Foundation:
    """Raises TaskError, PoolError, WeightsError, OSError, or whatever a user's task raises."""
    task, options = _task(question)
    folders = [Path(folder) for folder in question.folders]
    fingerprint = samples = None
    pool_error = ""
    try:
        _, info = _pool(task, question)
        fingerprint, samples = info.fingerprint, info.samples
    except (MissingPoolError, tasks.PoolError) as error:
        pool_error = str(error)
    target = Path(question.target)
    target.parent.mkdir(parents=True, exist_ok=True)
    model = task.model(options, subseed(question.seed, "init"))
    weights.save(target, model.state_dict(), durable=True)
    return Foundation(
        name=task.NAME,
        source=str(tasks.source_of(question.task, folders)),
        task_hash=tasks.task_hash(question.task, folders),
        defaults=task.DEFAULTS,
        manifest=describe(target, question.chunk_bytes),
        fingerprint=fingerprint,
        pool_samples=samples,
        pool_error=pool_error,
    )


def _task(question: Question) -> tuple[tasks.Task, Any]:
    task = tasks.find(question.task, [Path(folder) for folder in question.folders])
    return task, tasks.options_of(task, question.options)


def _pool(task: tasks.Task, question: Question) -> tuple[Path, tasks.PoolInfo]:
    if question.path is not None:
        folder = Path(question.path)
        return folder, task.inspect(folder)
    try:
        # Data that ships with a task is on every machine that has the task.
        return tasks.BUILTIN, task.inspect(tasks.BUILTIN)
    except tasks.PoolError:
        raise MissingPoolError(
            f"no copy of pool {question.pool} here ([data.{question.pool}] path in the coordinator's config)"
        ) from None


def serve(lines: Iterable[bytes], write: Callable[[bytes], object]) -> None:
    """Answer until the input ends."""
    bench = Bench()
    decoder = msgspec.json.Decoder(Question)
    for line in lines:
        write(msgspec.json.encode(bench.answer(decoder.decode(line))) + b"\n")


def main() -> None:
    """Serve on standard input and output, which a task's own prints must not reach."""
    with contextlib.suppress(OSError):
        os.nice(NICE)
    out = os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    for name in ("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"):
        os.environ.setdefault(name, "1")
    import torch

    torch.set_num_threads(1)
    serve(sys.stdin.buffer, out.write)


if __name__ == "__main__":
    main()
