"""OmniLearn's heterogeneity levels: how many cores four workers have, fixed or changing by epoch.

The tables of cores and the schedules are those of the released code (ALGORITHMS 2.4); what a sample costs is
`profiles`'. Here are values only.
"""

from collections.abc import Sequence
from typing import Final, Literal

from msgspec import Struct

from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.profiles import CORE_WATTS, WORKER_WATTS, Profile

Table = Literal["BSP", "ASP"]
Level = Literal["hl1", "hl2", "hl4", "hl8"]

CORES: Final[dict[Table, dict[Level, tuple[int, ...]]]] = {
    "BSP": {
        "hl1": (12, 12, 12, 12),
        "hl2": (12, 12, 8, 16),
        "hl4": (9, 9, 6, 24),
        "hl8": (6, 6, 4, 32),
    },
    "ASP": {
        "hl1": (10, 10, 10, 10),
        "hl2": (8, 8, 8, 16),
        "hl4": (10, 10, 4, 16),
        "hl8": (4, 4, 4, 28),
    },
}
"""Of 48 cores; in the table for asynchronous training 8 of them are the parameter server's, and its HL8 is a
ratio of 7."""

LEVELS: Final[tuple[Level, ...]] = ("hl1", "hl2", "hl4", "hl8")

WORKER_BATCH: Final = 32
"""Of each worker, before any adjustment."""
STEPS_PER_EPOCH: Final = 100
"""An epoch is so many steps here; the data sets' own are longer."""


class Phase(Struct, frozen=True):
    """From that epoch on the workers have the cores of that level."""

    epoch: int
    level: Level


class Schedule(Struct, frozen=True):
    """A run whose level changes, as the released code has it for a network."""

    epochs: int
    phases: tuple[Phase, ...]

    def level(self, epoch: int) -> Level:
        """The level in an epoch, counted from 0."""
        return [phase.level for phase in self.phases if phase.epoch <= epoch][-1]

    @property
    def changes(self) -> tuple[tuple[Phase, int], ...]:
        """Each phase but the first, with the epoch at which it is over."""
        ends = [phase.epoch for phase in self.phases[2:]] + [self.epochs]
        return tuple(zip(self.phases[1:], ends, strict=False))

    @staticmethod
    def still(level: Level, epochs: int) -> "Schedule":
        """One without changes."""
        return Schedule(epochs, (Phase(0, level),))


def _stretched(step: int, epochs: int) -> Schedule:
    """Up to HL8 and down again; HL8 lasts two steps."""
    order: tuple[Level, ...] = ("hl1", "hl2", "hl4", "hl8", "hl4", "hl2", "hl1")
    starts = (0, 1, 2, 3, 5, 6, 7)
    return Schedule(
        epochs, tuple(Phase(step * start, level) for start, level in zip(starts, order, strict=True))
    )


SCHEDULES: Final[dict[str, Schedule]] = {
    "resnet18": _stretched(5, 45),
    "resnet50": _stretched(25, 200),
    "alexnet": _stretched(20, 160),
    "vgg11": _stretched(4, 35),
}
"""The one for ResNet18 is given epoch by epoch; the others are said to have its shape, with steps of 25, 20
and 4 epochs."""


def expected_cut(cores: Sequence[int]) -> float:
    """1 - c_min / mean(c): how much of the time ideal batches save of uniform ones' before communication."""
    return 1 - min(cores) * len(cores) / sum(cores)


def fleet(cores: Sequence[int], profile: Profile, name: str) -> FleetFile:
    """The workers as virtual boards. A round is an epoch; an exchange and the update follow each step."""
    boards = tuple(
        VirtualBoard(
            f"worker-{number}",
            samples_per_second=1 / profile.seconds_per_sample(count),
            active_watts=WORKER_WATTS + CORE_WATTS * count,
            waiting_watts=WORKER_WATTS,
            cores=count,
        )
        for number, count in enumerate(cores)
    )
    batch = WORKER_BATCH * len(cores)
    return FleetFile(
        name,
        boards,
        budget=STEPS_PER_EPOCH * batch,
        batch=WORKER_BATCH,
        global_batch=batch,
        step_communication_seconds=profile.exchange_seconds(len(cores)) + profile.update_seconds,
    )
