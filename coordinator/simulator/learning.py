"""What `world` asks of real training under virtual time; `training` is the one that there is."""

from typing import Any, Protocol

from msgspec import Struct

from coordinator import events as ev
from edged.messages import Train


class Learnt(Struct, frozen=True):
    """What training an order really came to: sums over its samples."""

    loss_sum: float
    sums: dict[str, float] = {}


class Training(Protocol):
    """What happens to models while virtual time passes; without it only time and joules pass."""

    def train(self, order: Train) -> Learnt:
        """Local steps of one order."""

    def train_together(self, orders: list[Train]) -> dict[str, Learnt]:
        """The common steps of synchronous ranks, by order."""

    def fold(self, fold: ev.Fold) -> None:
        """Merge into the next version."""

    def apply(self, apply: ev.Apply) -> None:
        """Make the next version out of one update."""

    def measure(self, version: str) -> dict[str, Any]:
        """Held-out figures of a version."""
