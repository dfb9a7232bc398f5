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

from edged.groups import Synchronous
from edged.work import Split

if TYPE_CHECKING:
    import torch

    from edged.bench import Bench
    from edged.messages import Train
    from edged.tasks import Data, Task


class TrainingError(RuntimeError):
    """An order that cannot be trained to the end; the text says what went wrong, and at which step."""


class PeerError(TrainingError):
    """Training together ended for a fault of others; `blames` names them as far as this rank can tell."""

    def __init__(self, text: str, blames: tuple[str, ...]) -> None:
        super().__init__(text)
        self.blames = blames


class Outcome(Struct, frozen=True):
    """A trained order: the update's tensors (what they mean is the regime's), and sums over its samples.

    With synchronous steps `split` says where the window went, and `curve` has the mean loss of every step.
    """

    tensors: Mapping[str, Any]
    loss_sum: float
    sums: Mapping[str, float]
    steps: int
    samples: int
    split: Split | None = None
    synchronous: Synchronous | None = None
    curve: tuple[float, ...] = ()


class Lesson(Struct, frozen=True):
    """What is to be trained: `model` holds the weights of the order's version, `data` the whole pool,
    `carried` the state of the optimizer that came with the weights."""

    order: Train
    task: Task
    options: Any
    data: Data
    model: torch.nn.Module
    carried: Mapping[str, Any] = {}


class Regime(Protocol):
    """The contract of a regime module."""

    NAME: str
    """The name in orders: the file's name without `.py`, with hyphens."""
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
        sorted(
            found.name.replace("_", "-")
            for found in pkgutil.iter_modules(__path__)
            if not found.name.startswith("_")
        )
    )


def find(name: str) -> Regime:
    """The regime of that name. Raises LookupError with the names there are."""
    if name not in names():
        raise LookupError(f"no regime named {name!r}; there are: {', '.join(names())}")
    return cast("Regime", importlib.import_module(f"{__name__}.{name.replace('-', '_')}"))
