"""Uniform and equalised batches on the same workers with asynchronous updates, beside synchronous runs.

In virtual time, by `world`: all runs stop at the same number of samples. Joules are simulated ones with
invented watts.
"""

from typing import Any, Final

from msgspec import Struct, structs

from coordinator.simulator import synchronous
from coordinator.simulator.experiments import PATIENCE_SECONDS
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.learning import Training
from coordinator.simulator.levels import CORES, WORKER_BATCH, Level, Table, fleet
from coordinator.simulator.profiles import Profile
from coordinator.simulator.synchronous import PLANS, metered
from coordinator.simulator.tally import joules_of
from coordinator.simulator.world import World
from coordinator.updates import Updates, updates
from edged.controls import AsynchronousSettings, RunSettings
from edged.messages import PARTS

EPOCHS: Final = 2
PERIODS_PER_EPOCH: Final = 5
"""A period is 20 mean batches of every worker, as ranks adjust theirs every 20 steps."""


class Row(Struct, frozen=True):
    """A whole run. What is of asynchronous updates alone is None of a synchronous run."""

    level: Level
    table: Table
    cores: tuple[int, ...]
    model: str
    regime: str
    batches: str
    seed: int
    samples: int
    seconds: float
    joules: float
    wait_share: float
    scale: str | None = None
    rule: str | None = None
    last_batches: tuple[int, ...] = ()
    updates: tuple[int, ...] = ()
    """By worker."""
    update_spread: float | None = None
    """Most minus fewest updates of a worker, over the mean."""
    staleness: dict[int, int] = {}
    """Versions an update was old -> so many updates."""
    staleness_by_worker: dict[str, dict[int, int]] = {}
    staleness_mean: float | None = None
    staleness_spread: float | None = None
    """Standard deviation, in versions."""
    staleness_quantiles: tuple[int, ...] = ()


def rows(
    level: Level, profile: Profile, *, epochs: int = EPOCHS, seed: int = 1, noise: float = 0.0
) -> tuple[Row, ...]:
    """One row a plan, then the synchronous runs of as many samples on the same cores."""
    found = [_row(level, profile, name, epochs=epochs, seed=seed, noise=noise) for name in PLANS]
    return (*found, *_synchronous(level, profile, epochs, seed))


def workers(level: Level, profile: Profile, noise: float = 0.0) -> FleetFile:
    """The workers of the table for asynchronous training: the model comes before a batch and the gradient
    goes after it; the server's update is part of its way."""
    made = fleet(CORES["ASP"][level], profile, level)
    boards = tuple(
        structs.replace(
            board,
            download_seconds=profile.transfer_seconds,
            upload_seconds=profile.transfer_seconds + profile.update_seconds,
            noise=noise,
            watts_noise=0.0,
        )
        for board in made.board
    )
    return structs.replace(made, board=boards)


def settings(
    plan: str, workers: FleetFile, epochs: int, seed: int, chosen: AsynchronousSettings, **others: Any
) -> RunSettings:
    """What a run of the plan would be started with; a period is a part of an epoch."""
    policy, options = PLANS[plan]
    return structs.replace(
        RunSettings(
            "virtual",
            "virtual",
            workers.budget // PERIODS_PER_EPOCH,
            epochs * PERIODS_PER_EPOCH,
            "asp",
            policy,
            options,
            batch=WORKER_BATCH,
            learning_rate=0.1,
            evaluate=False,
            seed=seed,
            asynchronous=chosen,
            deadline_floor_seconds=PATIENCE_SECONDS,
            deadline_limit_seconds=PATIENCE_SECONDS,
        ),
        **others,
    )


def play(
    workers: FleetFile, settings: RunSettings, training: Training | None = None
) -> tuple[World, Updates]:
    """The whole run, and its updates. Raises ValueError where it cannot go on."""
    world = World(workers.board, settings, workers.samples, settings.seed, training=training).run()
    if world.finished is None or not world.finished.complete:
        raise ValueError(f"the run stands still: {world.rounds.state.reason}")
    return world, updates(world.rows["push"], [board.id for board in workers.board])


def _row(level: Level, profile: Profile, plan: str, *, epochs: int, seed: int, noise: float) -> Row:
    boards = workers(level, profile, noise)
    # Models of the papers are above what is sensible to send for every batch; here nothing is sent.
    world, found = play(boards, settings(plan, boards, epochs, seed, AsynchronousSettings(allow_large=True)))
    closed = [row["parts"] for row in world.rows["closed"]]
    spent = sum(parts[part]["seconds"] for parts in closed for part in PARTS)
    last = world.rows["round"][-1]
    return Row(
        level,
        "ASP",
        CORES["ASP"][level],
        profile.name,
        "asp",
        plan,
        seed,
        int(last["accepted_in_all"]),
        world.now,
        metered(joules_of(closed, part) for part in PARTS),
        sum(parts["wait"]["seconds"] for parts in closed) / spent,
        last["scale"],
        last["rule"],
        tuple(last["batches"][board.id] for board in boards.board),
        tuple(found.counts.values()),
        found.count_spread,
        found.all_ages,
        found.ages,
        found.staleness_mean,
        found.staleness_spread,
        found.quantiles(),
    )


def _synchronous(level: Level, profile: Profile, epochs: int, seed: int) -> tuple[Row, ...]:
    return tuple(
        Row(
            level,
            row.table,
            row.cores,
            row.model,
            "ddp",
            row.batches,
            seed,
            row.samples,
            row.seconds,
            row.joules,
            row.wait_share,
        )
        for row in synchronous.fixed(level, profile, "ASP", epochs)
        if row.batches != "static"
    )
