"""Instants within synchronous steps, and what they make of a round: forward, compute, communication, wait.

What follows the hand-over of the last gradients is communication as long as the fastest rank of that step
needed for it; the rest was waiting for the rank that handed over last.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from edged.work import Split


class Stamps:
    """One rank's, for one order; `stretch` is told every stretch of computing."""

    def __init__(
        self,
        stretch: Callable[[float, float], None] = lambda begin, end: None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._clock = clock
        self._stretch = stretch
        self._began = self._forward = self._handed = 0.0
        self.forward_seconds = 0.0
        self.compute: list[float] = []
        """By step."""
        self.tails: list[float] = []
        """By step, from the hand-over until all gradients were there."""
        self.aside_seconds = 0.0
        """Of other exchanges within the window."""

    def begin(self) -> None:
        """The step's batch is about to be fetched."""
        self._began = self._forward = self._clock()

    def micro_batch(self) -> None:
        """A further micro-batch of the step is about to be fetched."""
        self._forward = self._clock()

    def forward(self) -> None:
        """The loss of the step, or of its micro-batch, is there."""
        self.forward_seconds += self._clock() - self._forward

    def handed(self) -> None:
        """The step's last gradients are about to go out: what follows is not this rank's computing."""
        self._handed = self._clock()
        self.compute.append(self._handed - self._began)
        self._stretch(self._began, self._handed)

    def exchanged(self) -> None:
        """The step's summed gradients are there."""
        self.tails.append(self._clock() - self._handed)

    def aside(self, since: float) -> None:
        """Something else was exchanged since that instant."""
        self.aside_seconds += self._clock() - since

    def now(self) -> float:
        """The present instant."""
        return self._clock()

    def split(self, tails_of_all: Sequence[Sequence[float]], unsteady: int) -> Split:
        """The round's parts; `tails_of_all` are every rank's, `unsteady` leading steps are left out of the
        steady part."""
        exchange = sum(min(column) for column in zip(*tails_of_all, strict=True))
        return Split(
            compute_seconds=sum(self.compute),
            communication_seconds=exchange + self.aside_seconds,
            wait_seconds=max(0.0, sum(self.tails) - exchange),
            steady_seconds=sum(self.compute[unsteady:]),
        )
