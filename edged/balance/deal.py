"""One pass over an epoch as a rank's DataLoader draws it, and which of the drawn batches the loop is at.

A DataLoader with workers draws ahead of the loop, so the two are not the same.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from threading import get_ident
from typing import TYPE_CHECKING, NamedTuple

from edged.balance.plan import Plan

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray


class Beginning(NamedTuple):
    """What a pass goes by: the epoch's order, who trains what of it, and the step to begin with."""

    plan: Plan
    order: NDArray[np.int64]
    first: int


class Deal(Iterator[list[int]]):
    """Indices of this rank's batches, from the first step that is left of the epoch.

    It begins with the first draw: a DataLoader makes iterators that it never draws from.
    """

    def __init__(self, rank: int, begin: Callable[[Deal], Beginning], fetching: Callable[[], None]) -> None:
        self.reached: int | None = None
        """The step of the newest forward pass."""
        self._rank, self._begin, self._fetching = rank, begin, fetching
        self._beginning: Beginning | None = None
        self._lead: int | None = None  # fetches ahead of the loop, by what the first forward pass finds
        self._fetches = self._thread = 0

    def __next__(self) -> list[int]:
        if self._beginning is None:
            self._beginning, self._thread = self._begin(self), get_ident()
        # Counted past the end, too: a DataLoader with workers asks once for every batch that it hands out.
        step = self._beginning.first + self._fetches
        self._fetches += 1
        self._fetching()
        if step >= self.plan.terms.steps:
            raise StopIteration
        found: list[int] = self._beginning.order[self.plan.places(step, self._rank)].tolist()
        return found

    @property
    def plan(self) -> Plan:
        """Of its epoch; it has to have begun."""
        return self._begun.plan

    @property
    def dealt(self) -> int:
        """Steps whose batches are fixed: handed to the DataLoader."""
        return min(self._begun.first + self._fetches, self.plan.terms.steps)

    @property
    def over(self) -> bool:
        """Whether the end was asked for."""
        return self._begun.first + self._fetches > self.plan.terms.steps

    def reach(self) -> int | None:
        """A forward pass: the step whose batch is in the loop's hands, None after the last one.

        Raises RuntimeError where another thread draws: it might draw while ranks agree on other sizes.
        """
        if self._thread != get_ident():
            raise RuntimeError(
                "the DataLoader is drawn from in another thread than the model is trained in: use its own "
                "workers (num_workers) to fetch ahead"
            )
        if self._lead is None:
            self._lead = max(0, self._fetches - 1)
        first = self._begun.first
        step = first + self._fetches - 1 - self._lead
        if not first <= step < self.plan.terms.steps:
            return None
        self.reached = step
        return step

    @property
    def _begun(self) -> Beginning:
        assert self._beginning is not None
        return self._beginning
