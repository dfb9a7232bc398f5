"""What a regime has at hand in the training child: stamps of the compute window, pace, cancellation,
optimizer.

It tells the agent how far training is; it does not train and does not meter.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from edged import optimizers
from edged.pace import Pace
from edged.work import Begun, Meet, Met, Mustered, Stepped, Word

if TYPE_CHECKING:
    import torch

    from edged.gloo import Gloo
    from edged.groups import Readiness
    from edged.messages import Train

UNSTEADY_STEPS = 2
"""A new process warms up caches and allocators in its first steps; the controller is not charged for them."""
TELL_SECONDS = 0.5


class CancelledError(Exception):
    """The agent took the order back."""


class Memory:
    """What the child keeps from one order to the next: how many steps it has made, optimizer states, the
    process group that it is in, and by run what the ranks' rule has learnt."""

    def __init__(self) -> None:
        self.steps = 0
        self.group: Gloo | None = None
        self.optimizers: dict[str, dict[str, Any]] = {}
        self.learnt: dict[str, dict[str, Any]] = {}


class Bench:
    """For one order."""

    def __init__(
        self,
        *,
        board: str,
        order: str,
        pace: Pace,
        memory: Memory,
        tell: Callable[[Word], None],
        cancelled: Callable[[str], bool],
        clock: Callable[[], float] = time.monotonic,
        meet: Callable[[str], Meet] | None = None,
        address: str = "",
        kept: Path | None = None,
        micro_batch: int | None = None,
    ) -> None:
        self.board = board
        self.memory = memory
        self.address = address
        self.kept = kept
        """Where optimizer states of synchronous groups lie, so that they outlive this process."""
        self.micro_batch = micro_batch
        """So many samples at once fit into memory; None: as many as are needed."""
        self.unsteady_steps = 0
        self.began_seconds = self.ended_seconds = self.steady_seconds = 0.0
        self.steady_samples = 0
        self._order = order
        self._pace = pace
        self._meet = meet
        self._tell = tell
        self._cancelled = cancelled
        self._clock = clock
        self._told = 0.0
        self._done = 0
        self._stretches: list[tuple[float, float]] = []
        self._kept: tuple[str, torch.optim.Optimizer] | None = None

    @property
    def behind_pace_steps(self) -> int:
        """Steps whose own work took longer than the emulated board would have."""
        return self._pace.behind_steps

    def optimizer(
        self, order: Train, model: torch.nn.Module, carried: Mapping[str, Any]
    ) -> torch.optim.Optimizer:
        """The order's optimizer over the model: with `keep` in the state in which this run last left it here,
        with `average` in the one that came with the weights.
        """
        made = optimizers.make(order, model)
        if order.optimizer_state == "average":
            optimizers.restore(made, model, carried)
        if order.optimizer_state == "keep":
            kept = self.memory.optimizers.get(order.run)
            if kept is not None:
                # The learning rate is the order's, the rest is as it was left.
                made.load_state_dict(
                    {"state": kept["state"], "param_groups": made.state_dict()["param_groups"]}
                )
            self._kept = (order.run, made)
        return made

    def meet(self, readiness: Readiness) -> Meet:
        """Say that this rank is ready and wait until all are. Raises CancelledError."""
        assert self._meet is not None
        self._tell(Mustered(self._order, readiness))
        found = self._meet(self._order)
        self._cancel_check()
        return found

    def met(self, group: str) -> None:
        """The order's group stands."""
        self._tell(Met(self._order, group))

    def step_begins(self) -> None:
        """A synchronous step begins now, whenever the last one ended."""
        self._pace.begin()

    def reach(self, samples: int, part: float = 1.0) -> None:
        """Be no faster than the board: this part of the step's computing is done (`Pace.reach`)."""
        self._pace.reach(samples, part)

    def begin(self, by_stretches: bool = False) -> None:
        """The compute window opens; with `by_stretches` it is mixed with waiting, and `stretch` tells."""
        self._cancel_check()
        self._pace.begin()
        self.began_seconds = self.steady_seconds = self._clock()
        self._tell(Begun(self._order, self.began_seconds, by_stretches))

    def stretch(self, begin: float, end: float) -> None:
        """It computed from then till then."""
        self._stretches.append((begin, end))

    def step(self, done: int, samples: int) -> None:
        """An optimizer step over so many samples is computed; `done` are all of the order so far."""
        self._pace.step(samples)
        self.stepped(done, samples)

    def stepped(self, done: int, samples: int) -> None:
        """The same for a step that was paced on its way."""
        self.memory.steps += 1
        self._done = done
        now = self._clock()
        if self.memory.steps <= UNSTEADY_STEPS:
            self.steady_seconds = now
            self.unsteady_steps += 1
        else:
            self.steady_samples += samples
        if now - self._told >= TELL_SECONDS:
            self._told = now
            self._tell_steps(done)
        self._cancel_check()

    def end(self) -> None:
        """The compute window closes. Only now is an optimizer's state kept: a lost order leaves the
        older one.
        """
        self.ended_seconds = self._clock()
        if self._stretches:
            self._tell_steps(self._done)
        if self._kept is not None:
            run, optimizer = self._kept
            self.memory.optimizers = {run: optimizer.state_dict()}

    def _tell_steps(self, done: int) -> None:
        stretches, self._stretches = tuple(self._stretches), []
        self._tell(Stepped(self._order, done, stretches))

    def _cancel_check(self) -> None:
        if self._cancelled(self._order):
            raise CancelledError
