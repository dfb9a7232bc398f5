"""Uniform batches, OmniLearn's static and its dynamic ones on the same workers with synchronous gradients.

In virtual time, by `loop`: the decisions are the coordinator's and the ranks' own. Joules are simulated ones
with invented watts.
"""

from collections.abc import Callable, Iterable, Sequence
from itertools import pairwise
from typing import Any, Final

from msgspec import Struct

from coordinator.allocation import controlled
from coordinator.controller import Weights
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.levels import (
    CORES,
    SCHEDULES,
    STEPS_PER_EPOCH,
    WORKER_BATCH,
    Level,
    Schedule,
    Table,
    expected_cut,
    fleet,
)
from coordinator.simulator.loop import Lived, Spent, Work, live
from coordinator.simulator.profiles import Profile

PLANS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "uniform": ("equal", {}),
    "static": ("omnilearn", {"mode": "static"}),
    "dynamic": ("omnilearn", {"mode": "dynamic"}),
}
EPOCHS: Final = 10
FOLLOWED: Final = 0.10
"""A step that is at most so much longer than the shortest possible one has followed the cores: the deadband
and whole samples account for less."""


class Row(Struct, frozen=True):
    """A whole run. Cuts are relative to uniform batches on the same workers: of computing alone (before
    communication), and with exchanges and updates. `followed` has, for each change of cores, the adjustments
    until the steps stayed as short as they can be; None where batches never came to that."""

    level: str
    table: Table
    cores: tuple[int, ...]
    model: str
    batches: str
    epochs: int
    samples: int
    compute_seconds: float
    seconds: float
    joules: float
    wait_share: float
    adjustments: int
    global_batch: tuple[int, int]
    cut: float
    cut_with_communication: float
    expected_cut: float | None = None
    followed: tuple[int | None, ...] = ()


def fixed(level: Level, profile: Profile, table: Table = "BSP", epochs: int = EPOCHS) -> tuple[Row, ...]:
    """One row a plan; the cores stay those of the level."""
    cores = CORES[table][level]
    return _rows(level, table, profile, Schedule.still(level, epochs), expected_cut(cores))


def changing(profile: Profile, table: Table = "BSP") -> tuple[Row, ...]:
    """One row a plan; the cores change by epoch as the released code has it for that network."""
    return _rows("schedule", table, profile, SCHEDULES[profile.name], None)


def _rows(
    level: str, table: Table, profile: Profile, schedule: Schedule, expected: float | None
) -> tuple[Row, ...]:
    cores = CORES[table][schedule.level(0)]

    def workers(epoch: int) -> FleetFile:
        return fleet(CORES[table][schedule.level(epoch)], profile, level)

    uniform: tuple[float, float] | None = None
    rows = []
    for name, (policy, options) in PLANS.items():
        lived = play(policy, options, workers, schedule.epochs)
        together = [one.together for one in lived if one.together is not None]
        compute = sum(sum(one.step_seconds) for one in together)
        seconds = sum(one.wall_seconds for one in lived)
        uniform = uniform or (compute, seconds)
        batches = [n for one in together for n in one.step_samples]
        rows.append(
            Row(
                level,
                table,
                cores,
                profile.name,
                name,
                schedule.epochs,
                sum(batches),
                compute,
                seconds,
                metered(one.joules for one in lived),
                sum(one.wait_seconds for one in lived) / (seconds * len(cores)),
                sum(len(one.changed_after) for one in together) + _moves(lived),
                (min(batches), max(batches)),
                1 - compute / uniform[0],
                1 - seconds / uniform[1],
                expected,
                tuple(
                    _followed(lived[phase.epoch : until], profile, CORES[table][phase.level])
                    for phase, until in schedule.changes
                ),
            )
        )
    return tuple(rows)


def play(
    policy: str, options: dict[str, Any], workers: Callable[[int], FleetFile], epochs: int
) -> list[Lived]:
    """Every epoch of a run, whose workers may be others from epoch to epoch (counted from 0)."""
    first = workers(0)
    control = controlled(policy, options, Weights.of(0.0), "ddp", "none")
    control.resources = {board.id: float(board.cores or 0) for board in first.board}
    members = tuple(board.id for board in first.board)
    work = Work(
        first.budget,
        first.batch_of("ddp"),
        step_communication_seconds=first.step_communication_seconds,
    )
    return list(live(control, dict.fromkeys(range(1, epochs + 1), members), work, _Workers(workers)))


def metered(joules: Iterable[float | None]) -> float:
    """Their sum. Raises ValueError where some are not known: every worker of a level has its watts."""
    known = list(joules)
    if None in known:
        raise ValueError("a worker has no joules")
    return sum(value for value in known if value is not None)


class _Workers:
    """Their seconds and watts in the epoch that goes on."""

    def __init__(self, workers: Callable[[int], FleetFile]) -> None:
        self._workers = workers

    def spend(self, round: int, board: str, samples: int, at_seconds: float) -> Spent:
        """See loop.Costs."""
        spec = next(b for b in self._workers(round - 1).board if b.id == board)
        return Spent(samples / spec.samples_per_second, spec.active_watts, spec.waiting_watts)


def _moves(lived: Sequence[Lived]) -> int:
    return sum(after.shares != before.shares for before, after in pairwise(lived))


def _followed(lived: Sequence[Lived], profile: Profile, cores: tuple[int, ...]) -> int | None:
    """Adjustments after which all steps to come were as short as these cores allow."""
    shortest = WORKER_BATCH * len(cores) * profile.seconds_per_sample(sum(cores))
    steps = [seconds for one in lived if one.together for seconds in one.together.step_seconds]
    late = [number for number, seconds in enumerate(steps) if seconds > (1 + FOLLOWED) * shortest]
    if not late:
        return 0
    if late[-1] == len(steps) - 1:
        return None
    inside = [
        STEPS_PER_EPOCH * epoch + step
        for epoch, one in enumerate(lived)
        if one.together
        for step in one.together.changed_after
    ]
    between = [
        STEPS_PER_EPOCH * epoch - 1
        for epoch in range(1, len(lived))
        if lived[epoch].shares != lived[epoch - 1].shares
    ]
    return sum(step <= late[-1] for step in {*inside, *between})
