"""The one speed factor of all emulated boards, from training steps that as many processes make at once.

The machine's own work may take at most 40 % of the fastest board's step (ARCHITECTURE 10). Processor time is
looked at first, because it knows little of what else the machine does meanwhile.
"""

from collections.abc import Mapping, Sequence
from statistics import median
from typing import Final

import msgspec
from msgspec import Struct

from coordinator.demo.children import Children
from coordinator.demo.plan import WANTED_SECONDS, Plan, estimate_seconds, fitting
from coordinator.demo.steps import Steps, Timed, Try
from edged.pace import NATIVE_SHARE

FREE_SECONDS: Final = 0.8
PACED_SECONDS: Final = 2.0
MARGIN: Final = 1.3
"""Broker, coordinator and agents want the processor, too."""
MOST: Final = 0.9
"""So many of the paced steps are to be done well in time; the others may have met a busy moment of this
machine, which says little about the minutes that follow."""
WELL_IN_TIME: Final = 0.8
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
        typical = median(found.wall_seconds) / step_seconds
        most = quantile(found.wall_seconds, MOST) / step_seconds
        factor = max(factor, typical / NATIVE_SHARE, most / WELL_IN_TIME)
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
    """One measuring process, among the `children`, that is as many as there are boards."""

    NAME = "steps"

    def __init__(self, children: Children, plan: Plan) -> None:
        self._children, self._relative, self._batch = children, dict(plan.relative), plan.batch
        arguments = [plan.task, plan.task_folder, plan.pool_path, str(plan.batch), str(len(plan.relative))]
        self._process = children.start(self.NAME, ["-m", "coordinator.demo.steps", *arguments], talks=True)

    def measure(self) -> Measured:
        """The scale for this fleet on this machine now. Ends the process. Raises ChildError."""
        self._hear()
        fastest = max(self._relative, key=lambda board: self._relative[board])
        free = self._try(FREE_SECONDS, None)
        cpu = [seconds for steps in free.values() for seconds in steps.cpu_seconds]
        guess = MARGIN * first_guess(cpu, self._relative[fastest], self._batch)
        paced = self._try(PACED_SECONDS, guess)
        found = corrected(guess, self._relative, paced, self._batch)
        self._children.end(self.NAME)
        return Measured(found, median(paced[fastest].wall_seconds))

    def _try(self, seconds: float, scale: float | None) -> dict[str, Steps]:
        """Steps of each board, all at once; `scale` None: at the machine's own speed."""
        paces = tuple(None if scale is None else scale / speed for speed in self._relative.values())
        pipe = self._process.stdin
        assert pipe is not None
        try:
            pipe.write(msgspec.json.encode(Try(seconds, paces)).decode() + "\n")
            pipe.flush()
        except BrokenPipeError:
            self._ended()
        return dict(zip(self._relative, self._hear().processes, strict=True))

    def _hear(self) -> Timed:
        pipe = self._process.stdout
        assert pipe is not None
        line = pipe.readline()
        if not line:
            self._ended()
        return msgspec.json.decode(line, type=Timed)

    def _ended(self) -> None:
        self._process.wait()
        self._children.check()
