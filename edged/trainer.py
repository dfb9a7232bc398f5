"""The training child: `python -m edged.trainer`, started and supervised by the agent; it alone imports torch.

Jobs come on stdin, words go to stdout (`work`). It stays over rounds, so that torch, data and model are
loaded once, and ends when stdin closes or the agent dies. No network, no meter, no decisions.
"""

from __future__ import annotations

import copy
import ctypes
import math
import os
import resource
import signal
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from queue import SimpleQueue
from typing import IO, TYPE_CHECKING, Any

import msgspec

from edged import compiler, regimes, tasks, weights
from edged.bench import Bench, CancelledError, Memory
from edged.optimizers import parted
from edged.pace import Pace, measured
from edged.schedule import subseed
from edged.work import Asked, Cancel, Failed, Finished, Job, Meet, Prepared, Ready, Word

if TYPE_CHECKING:
    import torch

    from edged.messages import Train
    from edged.tasks import Data, Task

OOM_SCORE = 800
CALIBRATION_STEPS = 4
_PR_SET_PDEATHSIG = 1


class Trainer:
    """Trains jobs one after another; keeps the loaded task, pool and model of the last one."""

    def __init__(
        self,
        tell: Callable[[Word], None],
        cancelled: Callable[[str], bool],
        meet: Callable[[str], Meet] | None = None,
    ) -> None:
        self._tell = tell
        self._cancelled = cancelled
        self._meet = meet
        self._memory = Memory()
        self._loaded: tuple[object, Task, Any, Data, torch.nn.Module] | None = None
        self._pace_seconds: float | None = None

    def train(self, job: Job) -> Word:
        """The last word on the job: Finished or Failed. What a user's task raises is a reason, not an end."""
        try:
            return self._train(job)
        except CancelledError:
            return Failed(job.order.order, "cancelled")
        except MemoryError:
            return Failed(job.order.order, "out of memory")
        except regimes.PeerError as error:
            return Failed(job.order.order, _reason(error), error.blames)
        except (Exception, SystemExit) as error:
            return Failed(job.order.order, _reason(error))

    def _train(self, job: Job) -> Word:
        order = job.order
        task, options, data, model = self._load(job)
        state, carried = parted(weights.load_torch(Path(job.model)))
        model.load_state_dict(state)
        seconds_per_sample = self._seconds_per_sample(job, task, data, model) if job.emulate else None
        self._tell(Prepared(order.order, seconds_per_sample))
        bench = Bench(
            board=job.board,
            order=order.order,
            pace=Pace(seconds_per_sample),
            memory=self._memory,
            tell=self._tell,
            cancelled=self._cancelled,
            meet=self._meet,
            address=job.address,
            kept=Path(job.kept) if job.kept else None,
            micro_batch=job.micro_batch,
        )
        lesson = regimes.Lesson(order, task, options, data, model, carried)
        outcome = regimes.find(order.regime).train(lesson, bench)
        figures = _finite({"loss_sum": outcome.loss_sum, **outcome.sums})
        weights.save(Path(job.update), outcome.tensors)
        return Finished(
            order=order.order,
            at_seconds=bench.ended_seconds,
            samples=outcome.samples,
            steps=outcome.steps,
            loss_sum=figures.pop("loss_sum"),
            metrics=figures,
            steady_samples=bench.steady_samples,
            steady_at_seconds=bench.steady_seconds,
            peak_memory_bytes=resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024,
            behind_pace_steps=bench.behind_pace_steps,
            split=outcome.split,
            synchronous=outcome.synchronous,
        )

    def _load(self, job: Job) -> tuple[Task, Any, Data, torch.nn.Module]:
        order = job.order
        key = (order.task, order.task_hash, msgspec.json.encode(order.options), job.pool, order.fingerprint)
        if self._loaded is None or self._loaded[0] != key:
            self._loaded = None  # two pools at once may be more than the board has
            folders = [Path(folder) for folder in job.folders]
            task = tasks.find(order.task, folders)
            options = tasks.options_of(task, order.options)
            data = task.load(Path(job.pool), options)
            self._loaded = (key, task, options, data, task.model(options, subseed(order.seed, "init")))
        _, task, options, data, model = self._loaded
        if data.samples != order.pool_samples:
            text = f"pool {order.pool!r} has {data.samples} samples here, not {order.pool_samples}"
            raise tasks.PoolError(text)
        return task, options, data, model

    def _seconds_per_sample(self, job: Job, task: Task, data: Data, model: torch.nn.Module) -> float:
        """The emulated board's pace: the agent's, or one measured here once and kept."""
        if job.seconds_per_sample is not None:
            return job.seconds_per_sample
        if self._pace_seconds is None:
            self._pace_seconds = _measure(job.order, task, data, model)
        return self._pace_seconds


def _measure(order: Train, task: Task, data: Data, model: torch.nn.Module) -> float:
    """Times some steps on a copy of the model; the first warms up and does not count."""
    import numpy as np
    import torch

    scratch = copy.deepcopy(model)
    optimizer = torch.optim.SGD(scratch.parameters(), lr=0.0)
    size = min(order.batch, data.samples)
    batch = task.batch(data, np.arange(size, dtype=np.int64))
    times = []
    for _ in range(CALIBRATION_STEPS):
        began = time.monotonic()
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(task.loss_sum(scratch, batch)[0])
        optimizer.step()
        times.append(time.monotonic() - began)
    return measured(times[1:], size)


def _finite(figures: dict[str, Any]) -> dict[str, float]:
    """A user's task may give anything; what cannot be said in a report fails the order by name."""
    found = {}
    for name, value in figures.items():
        found[name] = float(value)
        if not math.isfinite(found[name]):
            raise regimes.TrainingError(f"the task's figure {name!r} is {found[name]}")
    return found


def _reason(error: BaseException) -> str:
    """One line for the operator; an error of a user's task names its type."""
    text = " ".join(str(error).split())
    plain = isinstance(
        error, regimes.TrainingError | tasks.TaskError | tasks.PoolError | weights.WeightsError
    )
    return (text if plain else f"{type(error).__name__}: {text}")[:1000]


def _torch(threads: int | None) -> str:
    """Imports torch, which takes seconds to minutes on a board; its version."""
    # The store's client complains of hosts without names in every group; boards are reached by number.
    os.environ.setdefault("TORCH_CPP_LOG_LEVEL", "ERROR")
    import torch

    compiler.defer()
    if threads:
        torch.set_num_threads(threads)
    return str(torch.__version__)


class _Inbox:
    """Reads stdin in a thread: jobs queue up, a cancel is known at once, the end of stdin ends the
    process.
    """

    def __init__(self, source: IO[bytes]) -> None:
        self.jobs: SimpleQueue[Job] = SimpleQueue()
        self._cancelled: set[str] = set()
        self._meets: SimpleQueue[Meet | Cancel] = SimpleQueue()
        threading.Thread(target=self._read, args=(source,), daemon=True).start()

    def cancelled(self, order: str) -> bool:
        return order in self._cancelled

    def meet(self, order: str) -> Meet:
        """Waits for the others' readiness. Raises CancelledError."""
        while True:
            asked = self._meets.get()
            if isinstance(asked, Meet) and asked.order == order:
                return asked
            if self.cancelled(order):
                raise CancelledError

    def _read(self, source: IO[bytes]) -> None:
        for line in source:
            asked = msgspec.json.decode(line, type=Asked)
            if isinstance(asked, Cancel):
                self._cancelled.add(asked.order)
                self._meets.put(asked)
            elif isinstance(asked, Meet):
                self._meets.put(asked)
            else:
                self.jobs.put(asked)
        os._exit(0)  # the agent is gone or wants no more; a step in flight is of no use to anyone


def die_with_the_agent(parent: int, oom_score: int = OOM_SCORE) -> None:
    """Where stdin cannot tell (a grandchild holds it), the kernel does; a child of memory pressure goes
    first.
    """
    ctypes.CDLL(None, use_errno=True).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL)
    if os.getppid() != parent:
        os._exit(0)
    try:
        Path("/proc/self/oom_score_adj").write_text(str(oom_score))
    except OSError as error:
        sys.stderr.write(f"edged.trainer: oom_score_adj stays as it is: {error}\n")


def main(parent: int) -> None:
    """Serve the agent with that process id until stdin closes."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # Ctrl-C is the agent's to answer
    die_with_the_agent(parent)
    # A task's prints must not get between the words, and it has no business reading jobs.
    source, sink = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb", buffering=0)
    os.dup2(2, 1)
    os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

    def tell(word: Word) -> None:
        sink.write(msgspec.json.encode(word) + b"\n")

    inbox = _Inbox(source)
    job = inbox.jobs.get()
    try:
        tell(Ready(_torch(job.threads)))
    except (ImportError, OSError) as error:
        reason = f"torch cannot be imported: {error}; `edged doctor` says which build fits this board"
        while True:
            tell(Failed(job.order.order, reason[:1000]))
            job = inbox.jobs.get()
    trainer = Trainer(tell, inbox.cancelled, inbox.meet)
    while True:
        tell(trainer.train(job))
        job = inbox.jobs.get()


if __name__ == "__main__":
    main(int(sys.argv[1]))
