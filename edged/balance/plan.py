"""Which places of an epoch a rank trains in which step: the global batch exact, sizes by speed. Pure.

Step s owns the same places whatever the sizes are, so a change of sizes moves no sample into another step.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

from msgspec import Struct

from edged.dealing import offset
from edged.stepwise import batches


class Terms(Struct, frozen=True):
    """What epochs are dealt by: `batch` samples a step over all ranks, of them `b_min` to `b_max` for each.

    Raises ValueError where no step can be dealt by them, naming the bound and the way out.
    """

    samples: int
    batch: int
    world: int = 1
    b_min: int = 1
    b_max: int | None = None
    drop_last: bool = False

    def __post_init__(self) -> None:
        if self.batch < 1:
            raise ValueError(f"batch_size = {self.batch}: it must be at least 1")
        if self.b_min < 1:
            raise ValueError(
                f"b_min = {self.b_min}: every rank needs a sample in every step, the mean loss of none is NaN"
            )
        if self.b_max is not None and self.b_max < self.b_min:
            raise ValueError(f"b_min = {self.b_min} is above b_max = {self.b_max}")
        if self.batch < self.least:
            raise ValueError(
                f"batch_size = {self.batch} does not reach over {self.world} ranks with at least "
                f"{self.b_min} each: batch_size counts the samples of a step over all ranks"
            )
        if self.samples < (self.batch if self.drop_last else self.least):
            raise ValueError(f"a data set of {self.samples} samples does not fill one step of {self.batch}")
        largest = max(self.total(0), self.total(self.steps - 1))
        if self.b_max is not None and self.b_max * self.world < largest:
            raise ValueError(
                f"b_max = {self.b_max} on {self.world} ranks leaves no room for a step of {largest} samples"
            )

    @property
    def least(self) -> int:
        """Samples of the smallest step that can be dealt."""
        return self.b_min * self.world

    @property
    def steps(self) -> int:
        """Of an epoch, the same on all ranks."""
        whole, rest = divmod(self.samples, self.batch)
        return whole if self.drop_last or (rest < self.least and whole) else whole + 1

    def total(self, step: int) -> int:
        """B_s: `batch`; the last step has what is left, or that besides where it would not reach all."""
        if step < self.steps - 1 or self.drop_last:
            return self.batch
        return self.samples - step * self.batch


class Plan:
    """One epoch. Until ranks have speeds the sizes are equal."""

    def __init__(self, terms: Terms, speeds: Sequence[float] = ()) -> None:
        self.terms = terms
        self._starts = [0]
        self._speeds = [tuple(speeds) or (1.0,) * terms.world]
        self._known: tuple[tuple[float, ...], int, list[int]] | None = None

    def change(self, step: int, speeds: Sequence[float]) -> None:
        """From that step on sizes follow these speeds; steps before it stay as they are."""
        if step < self._starts[-1]:
            raise ValueError(f"sizes change from step {self._starts[-1]} on already, not from {step} on")
        self._starts.append(step)
        self._speeds.append(tuple(speeds))

    def sizes(self, step: int) -> list[int]:
        """Of every rank; in all exactly the step's global batch."""
        speeds, total = self._speeds[bisect_right(self._starts, step) - 1], self.terms.total(step)
        if self._known is None or self._known[:2] != (speeds, total):
            terms, world = self.terms, self.terms.world
            upper = None if terms.b_max is None else [terms.b_max] * world
            self._known = speeds, total, batches(speeds, total, [terms.b_min] * world, upper)
        return list(self._known[2])

    def places(self, step: int, rank: int) -> slice:
        """The rank's part of the epoch's order."""
        sizes = self.sizes(step)
        start = step * self.terms.batch + offset(sizes, rank)
        return slice(start, start + sizes[rank])

    def weight(self, step: int, rank: int) -> float:
        """b_k K / B: by it a rank's mean gradient becomes its part of the mean over the global batch, once
        DDP has taken the mean over the ranks (ALGORITHMS 5.3)."""
        sizes = self.sizes(step)
        return sizes[rank] * len(sizes) / sum(sizes)
