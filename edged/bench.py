"""What a regime has at hand in the training child: stamps of the compute window, pace, cancellation,
optimizer.

It tells the agent how far training is; it does not train and does not meter.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from edged.pace import Pace
from edged.work import Begun, Stepped, Word

if TYPE_CHECKING:
    import torch

    from edged.messages import Train

UNSTEADY_STEPS = 2
"""A new process warms up caches and allocators in its first steps; the controller is not charged for them."""
TELL_SECONDS = 0.5


class CancelledError(Exception):
    """The agent took the order back."""


class Memory:
    """What the child keeps from one order to the next: how many steps it has made, and optimizer states."""

    def __init__(self) -> None:
        self.steps = 0
        self.optimizers: dict[str, dict[str, Any]] = {}


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
    ) -> None:
        self.board = board
        self.began_seconds = self.ended_seconds = self.steady_seconds = 0.0
        self.steady_samples = 0
        self._order = order
        self._pace = pace
        self._memory = memory
        self._tell = tell
        self._cancelled = cancelled
        self._clock = clock
        self._told = 0.0
        self._kept: tuple[str, torch.optim.Optimizer] | None = None

    @property
    def behind_pace_steps(self) -> int:
        """Steps whose own work took longer than the emulated board would have."""
        return self._pace.behind_steps

    def optimizer(self, order: Train, model: torch.nn.Module) -> torch.optim.Optimizer:
        """The order's optimizer over the model; with `keep` in the state in which this run last left it
        here.
        """
        import torch

        parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
        made: torch.optim.Optimizer
        if order.optimizer == "sgd":
            made = torch.optim.SGD(
                parameters, lr=order.learning_rate, momentum=order.momentum, weight_decay=order.weight_decay
            )
        else:
            kind = torch.optim.AdamW if order.optimizer == "adamw" else torch.optim.Adam
            made = kind(parameters, lr=order.learning_rate, weight_decay=order.weight_decay)
        kept = self._memory.optimizers.get(order.run) if order.optimizer_state == "keep" else None
        if kept is not None:
            # The learning rate is the order's, the rest is as it was left.
            made.load_state_dict({"state": kept["state"], "param_groups": made.state_dict()["param_groups"]})
        if order.optimizer_state == "keep":
            self._kept = (order.run, made)
        return made

    def begin(self) -> None:
        """The compute window opens."""
        self._cancel_check()
        self._pace.begin()
        self.began_seconds = self.steady_seconds = self._clock()
        self._tell(Begun(self._order, self.began_seconds))

    def step(self, done: int, samples: int) -> None:
        """An optimizer step over so many samples is computed; `done` are all of the order so far."""
        self._pace.step(samples)
        self._memory.steps += 1
        now = self._clock()
        if self._memory.steps <= UNSTEADY_STEPS:
            self.steady_seconds = now
        else:
            self.steady_samples += samples
        if now - self._told >= TELL_SECONDS:
            self._told = now
            self._tell(Stepped(self._order, done))
        self._cancel_check()

    def end(self) -> None:
        """The compute window closes. Only now is an optimizer's state kept: a lost order leaves the
        older one.
        """
        self.ended_seconds = self._clock()
        if self._kept is not None:
            run, optimizer = self._kept
            self._memory.optimizers = {run: optimizer.state_dict()}

    def _cancel_check(self) -> None:
        if self._cancelled(self._order):
            raise CancelledError
