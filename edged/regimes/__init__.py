"""What a synchronisation regime is on a board (one file in this folder), and how it is found by name.

A regime trains one order within the child process and gives back the update. Regime modules import no
torch at the top, so that the agent can list them. The coordinator's half of a regime stands with the
coordinator.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol, cast

from msgspec import Struct

if TYPE_CHECKING:
    import torch

    from edged.bench import Bench
    from edged.messages import Train
    from edged.tasks import Data, Task


class TrainingError(RuntimeError):
    """An order that cannot be trained to the end; the text says what went wrong, and at which step."""


class Outcome(Struct, frozen=True):
    """A trained order: the update's tensors (what they mean is the regime's), and sums over its samples."""

    tensors: Mapping[str, Any]
    loss_sum: float
    sums: Mapping[str, float]
    steps: int
    samples: int


class Lesson(Struct, frozen=True):
    """What is to be trained: `model` holds the weights of the order's version, `data` the whole pool."""

    order: Train
    task: Task
    options: Any
    data: Data
    model: torch.nn.Module


class Regime(Protocol):
    """The contract of a regime module."""

    NAME: str
    """The name in orders, equal to the file's name without `.py`."""
    SUMMARY: str
    """One line: what is synchronised, and when."""

    def train(self, lesson: Lesson, bench: Bench, /) -> Outcome:
        """Train the lesson's model. `bench` opens and closes the compute window and ends every step.

        Raises TrainingError.
        """
        ...


def names() -> tuple[str, ...]:
    """The regimes of this folder; nothing is imported."""
    return tuple(
        sorted(found.name for found in pkgutil.iter_modules(__path__) if not found.name.startswith("_"))
    )


def find(name: str) -> Regime:
    """The regime of that name. Raises LookupError with the names there are."""
    if name not in names():
        raise LookupError(f"no regime named {name!r}; there are: {', '.join(names())}")
    return cast("Regime", importlib.import_module(f"{__name__}.{name}"))
