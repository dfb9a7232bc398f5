"""The one speed factor of all emulated boards, from training steps that as many processes make at once.

The machine's own work may take at most 40 % of the fastest board's step, and hardly ever more than a whole
one (ARCHITECTURE 10).
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct

from coordinator.demo.children import Children
from coordinator.demo.plan import WANTED_SECONDS, Plan, estimate_seconds, fitting
from coordinator.demo.steps import Steps, Try
from edged.pace import NATIVE_SHARE

FREE_SECONDS: Final = 0.8
PACED_SECONDS: Final = 2.0
MARGIN: Final = 1.3
"""Broker, coordinator and agents want the processor, too."""
LATE_SHARE: Final = 0.995
"""So many of the steps are to be done in time."""
IN_TIME: Final = 0.8
SLACKS: Final = (2.0, 1.5, 1.0)
SHORTEST_ROUND_SECONDS: Final = 2.5
"""Of the equal policy: shorter ones would show little of the fleet but its overhead."""


class Measured(Struct, frozen=True):
    """The smallest scale that this machine can keep, and the native seconds of the fastest board's steps."""

    seconds_per_sample: float
    native_seconds_per_step: float


class Scale(Struct, frozen=True):
    """`seconds_per_sample` of a board of relative speed 1 (a Raspberry Pi 4), and what follows from it."""

    seconds_per_sample: float
    budget: int
    native_seconds_per_step: float
    native_share: float
    """Of the fastest board's step, measured with all boards at once."""


def first_guess(cpu_seconds: Sequence[float], fastest: float, batch: int) -> float:
    """Scale at which the median step's own work is NATIVE_SHARE of the fastest board's step."""
    return median(cpu_seconds) * fastest / (batch * NATIVE_SHARE)


def corrected(scale: float, relative: Mapping[str, float], steps: Mapping[str, Steps], batch: int) -> float:
    """The guess made larger where paced steps took longer beside each other than they may."""
    factor = 1.0
    for board, found in steps.items():
        step_seconds = batch * scale / relative[board]
        mean = sum(found.wall_seconds) / len(found.wall_seconds) / step_seconds
        late = quantile(found.wall_seconds, LATE_SHARE) / step_seconds
        factor = max(factor, mean / NATIVE_SHARE, late / IN_TIME)
    return scale * factor


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that this share of all does not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


def settled(plan: Plan, measured: Measured) -> Scale:
    """Scale and budget of the demo, so that it ends in time.

    The scale is larger than measured where there is time for it, because then a busy moment of this machine
    makes no step late; and where equal rounds would be too short to see.
    """
    found, budget = measured.seconds_per_sample, 0
    for slack in SLACKS:
        found = slack * measured.seconds_per_sample
        budget = fitting(plan, found)
        if estimate_seconds(plan, budget, found) <= WANTED_SECONDS:
            break
    slowest = budget / len(plan.relative) / min(plan.relative.values())
    found = max(found, SHORTEST_ROUND_SECONDS / slowest)
    step_seconds = plan.batch * found / max(plan.relative.values())
    native = measured.native_seconds_per_step
    return Scale(found, budget, native, native / step_seconds)


class Bench:
    """One measuring process for each board, among the `children`."""

    def __init__(self, children: Children, plan: Plan) -> None:
        self._children, self._relative, self._batch = children, dict(plan.relative), plan.batch
        arguments = ["-m", "coordinator.demo.steps", plan.task, plan.task_folder, plan.pool_path]
        self._lines = {
            board: children.start(f"steps-{board}", [*arguments, str(plan.batch)], talks=True)
            for board in plan.relative
        }

    def measure(self) -> Measured:
        """The scale for this fleet on this machine now. Ends the processes. Raises ChildError."""
        for board in self._relative:
            self._hear(board)
        free = self._all({board: Try(FREE_SECONDS) for board in self._relative})
        fastest = max(self._relative.values())
        cpu = [seconds for steps in free.values() for seconds in steps.cpu_seconds]
        guess = MARGIN * first_guess(cpu, fastest, self._batch)
        paced = self._all(
            {board: Try(PACED_SECONDS, guess / speed) for board, speed in self._relative.items()}
        )
        found = corrected(guess, self._relative, paced, self._batch)
        self._children.end(*(f"steps-{board}" for board in self._relative))
        fastest_board = max(self._relative, key=lambda board: self._relative[board])
        wall = paced[fastest_board].wall_seconds
        return Measured(found, sum(wall) / len(wall))

    def _all(self, asked: Mapping[str, Try]) -> dict[str, Steps]:
        for board, what in asked.items():
            pipe = self._lines[board].stdin
            assert pipe is not None
            try:
                pipe.write(msgspec.json.encode(what).decode() + "\n")
                pipe.flush()
            except BrokenPipeError:
                self._children.check()
                raise
        return {board: self._hear(board) for board in asked}

    def _hear(self, board: str) -> Steps:
        pipe = self._lines[board].stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            self._lines[board].wait()
            self._children.check()
        return msgspec.json.decode(line, type=Steps)
