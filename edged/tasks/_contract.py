"""The contract of a task module, and the values it exchanges; how tasks are found stands in `_discovery`."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Protocol

import msgspec

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray


BUILTIN = Path("builtin")
"""The path of a pool that ships with edged: the digits; `builtin/<task>` is another task's."""


class TaskError(ValueError):
    """A task that cannot be found or used; the text says which, why and what there is instead."""


class PoolError(ValueError):
    """Data of this task that cannot be used: the text names the file and what was expected."""


class OtherPoolError(PoolError):
    """Data that is not this task's at all (another task may know it)."""


class Defaults(msgspec.Struct, frozen=True):
    """The learning set-up that a run takes where the operator names no other."""

    batch: int
    learning_rate: float
    optimizer: Literal["sgd", "adam", "adamw"] = "sgd"
    momentum: float = 0.0
    weight_decay: float = 0.0


class PoolInfo(msgspec.Struct, frozen=True):
    """What `inspect` learned about a folder without loading it.

    `fingerprint` is a SHA-256 of the data, not of the task: tasks that read one folder alike give the same.
    """

    samples: int
    test_samples: int
    fingerprint: str
    format: str
    split: str
    origin: str = ""


class Data(msgspec.Struct, frozen=True):
    """A loaded pool: first axis samples; arrays may be read-only maps of files. `facts` are a task's own
    constants (vocabulary size, normalisation)."""

    inputs: NDArray[np.generic]
    targets: NDArray[np.generic]
    test_inputs: NDArray[np.generic]
    test_targets: NDArray[np.generic]
    facts: Mapping[str, Any] = {}

    @property
    def samples(self) -> int:
        """Samples that boards train on; the permutation of `edged.schedule` has this size."""
        return len(self.inputs)


class Prepared(msgspec.Struct, frozen=True):
    """What a task's `prepare` made of official files, ready to be written as a pool.

    `arrays` has `inputs`, `targets`, `test_inputs`, `test_targets` (first axis samples) and may have others;
    they and the `facts` (JSON values) come back in `Data`.
    """

    arrays: Mapping[str, NDArray[Any]]
    format: str
    split: str
    origin: str
    facts: Mapping[str, Any] = {}


Progress = Callable[[str, int, int], None]
"""Told by long work: what is going on, how much is done, of how much (0: not known)."""

Batch = tuple["torch.Tensor", ...]
"""What `batch` gives and `loss_sum` takes; the first axis is the samples, of which there may be 0 or 1."""


class Task(Protocol):
    """The contract of a task module. `options` is always an instance of its own `Options`."""

    NAME: str
    """The name in orders, equal to the file's name without `.py`."""
    SUMMARY: str
    """One line for `edged tasks list`: what is learned from which data."""
    Options: type[msgspec.Struct]
    """A frozen Struct with a default for each field, as `edged tasks show` prints it."""
    DEFAULTS: Defaults

    def model(self, options: Any, seed: int) -> torch.nn.Module:
        """A new model; equal options and seed give equal weights. GroupNorm or LayerNorm, no BatchNorm: a
        weak board may have a batch of one (ALGORITHMS 5.4)."""
        ...

    def inspect(self, folder: Path | None) -> PoolInfo:
        """Counts and fingerprint of the pool in `folder`; None or a path below `BUILTIN`: what ships with it.

        Needs neither torch nor numpy and takes seconds at most. Raises OtherPoolError where this is not the
        task's data, and PoolError naming the file and what was expected where it is incomplete or wrong.
        """
        ...

    def load(self, folder: Path | None, options: Any) -> Data:
        """The pool as arrays, memory-mapped where the files allow; raises as `inspect` does."""
        ...

    def batch(self, data: Data, indices: NDArray[np.int64], /) -> Batch:
        """The training samples at `indices` (any number, none included) as tensors on the CPU."""
        ...

    def loss_sum(self, model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, dict[str, float]]:
        """The loss summed (not averaged) over the batch, differentiable, 0 for an empty one; and other sums
        over it, such as `correct`."""
        ...

    def evaluate(
        self, model: torch.nn.Module, data: Data, max_samples: int | None = None
    ) -> dict[str, float]:
        """Means over the held-out samples: `loss`, `samples`, `accuracy` for a classifier, and whatever else
        the task reports (with its unit in the name). `max_samples` bounds the time by an even choice."""
        ...


class Preparing(Protocol):
    """What a task module has in addition when its official files are first made into a compact pool.

    `prepare` runs on a PC; its libraries are imported inside it and are no business of a board.
    """

    Prepare: type[msgspec.Struct]
    """Options of `prepare` with a default for each, set by `edged data prepare --set name=value`."""

    def prepare(self, source: Path, options: Any, progress: Progress) -> Prepared:
        """Reads official files (a folder, an archive, a file). Raises PoolError naming what is wrong."""
        ...
