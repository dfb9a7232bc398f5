"""What the demo does, settled before anything starts: boards, data, budget, folder; and how long it takes."""

import errno
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from msgspec import Struct

from edged import boards, tasks
from edged.topics import VALID_ID

KINDS: Final = (
    "rpi4",
    "rpi5",
    "visionfive2",
    "n100",
    "orangepi5",
    "p550",
    "jetson-nano",
    "rpi3bplus",
    "rock5c",
    "milkv-jupiter",
    "jetson-orin-nano",
)
"""Boards of edged/boards.toml in the order in which they join the demo."""
FLEET: Final = "demo"
MOST_BOARDS: Final = 32
BUDGET_A_BOARD: Final = 180
"""Of the default budget: with four boards half of the digits."""
WANTED_SECONDS: Final = 75.0
"""For both runs, so that the demo with its preparation ends within two minutes."""


class PlanError(ValueError):
    """The demo cannot be done so; the text says what and what to do."""


class Plan(Struct, frozen=True):
    """`boards` maps ids to kinds, `relative` to speeds (Raspberry Pi 4: 1); `pool_path` may be `builtin`."""

    task: str
    task_folder: str
    pool: str
    pool_path: str
    samples: int
    boards: dict[str, str]
    relative: dict[str, float]
    rounds: int
    budget: int | None
    batch: int
    w_e: float
    seed: int
    folder: Path


def plan(
    *,
    task: str,
    pool: str,
    board_count: int,
    rounds: int,
    budget: int | None,
    w_e: float,
    seed: int,
    out: Path | None,
) -> Plan:
    """Check everything that can be checked without torch, then make the folder. Raises PlanError."""
    task_folder = str(tasks.FOLDER)
    if task.endswith(".py"):
        path = Path(task).resolve()
        task, task_folder = path.stem, str(path.parent)
    name, _, where = pool.partition("=")
    where = where or str(tasks.BUILTIN)
    if not VALID_ID.match(name):
        raise PlanError(f"--pool {name!r}: a pool's name has a-z, 0-9, - and _ only")
    try:
        found = tasks.find(task, [Path(task_folder)])
        info = found.inspect(tasks.BUILTIN if where == str(tasks.BUILTIN) else Path(where))
    except (tasks.TaskError, tasks.PoolError) as error:
        raise PlanError(f"{error}; --pool NAME=FOLDER names other data") from None
    if not 2 <= board_count <= MOST_BOARDS:
        raise PlanError(f"--boards {board_count}: from 2 to {MOST_BOARDS}")
    chosen = named(board_count)
    table = boards.load()
    batch = found.DEFAULTS.batch
    least = batch * board_count
    if budget is not None and budget < least:
        raise PlanError(
            f"--budget {budget}: {board_count} boards need a batch of {batch} each, {least} at least"
        )
    return Plan(
        task=task,
        task_folder=task_folder,
        pool=name,
        pool_path=where if where == str(tasks.BUILTIN) else str(Path(where).resolve()),
        samples=info.samples,
        boards=chosen,
        relative={board: table.speed(kind).relative for board, kind in chosen.items()},
        rounds=rounds,
        budget=budget,
        batch=batch,
        w_e=w_e,
        seed=seed,
        folder=folder(out),
    )


def named(count: int, kinds: Sequence[str] = KINDS) -> dict[str, str]:
    """Board ids and their kinds; a second one of a kind has a 2 behind its name."""
    return {
        kind if turn == 0 else f"{kind}-{turn + 1}": kind
        for turn, kind in ((index // len(kinds), kinds[index % len(kinds)]) for index in range(count))
    }


def fitting(plan: Plan, seconds_per_sample: float) -> int:
    """The given budget, else the largest up to BUDGET_A_BOARD with which the demo takes WANTED_SECONDS.

    With less than two batches a board there would be little to deal.
    """
    if plan.budget is not None:
        return plan.budget
    most = min(BUDGET_A_BOARD * len(plan.boards), plan.samples)
    least = min(2 * plan.batch * len(plan.boards), most)
    for budget in range(most, least, -len(plan.boards)):
        if estimate_seconds(plan, budget, seconds_per_sample) <= WANTED_SECONDS:
            return budget
    return least


def estimate_seconds(
    plan: Plan, budget: int, seconds_per_sample: float, overhead_seconds: float = 0.3
) -> float:
    """How long both runs take if nothing goes wrong: equal by its slowest board, adaptive by all speeds.

    Adaptive has a first round of equal shares.
    """
    speeds = plan.relative.values()
    equal = budget / len(plan.relative) / min(speeds) * seconds_per_sample
    adaptive = max(budget / sum(speeds), plan.batch / min(speeds)) * seconds_per_sample
    return (plan.rounds + 1) * equal + (plan.rounds - 1) * adaptive + 2 * plan.rounds * overhead_seconds


def folder(given: Path | None) -> Path:
    """A new folder of this demo: below --out, else ./out, else a temporary one. Raises PlanError."""
    stamp = time.strftime("demo-%Y%m%d-%H%M%S")
    base = given if given is not None else Path("out")
    try:
        return _made(base, stamp)
    except OSError as error:
        if given is not None:
            raise PlanError(f"--out {given}: {error.strerror}; give a folder that you may write") from None
    import tempfile

    return Path(tempfile.mkdtemp(prefix="edged-demo-"))


def _made(base: Path, stamp: str) -> Path:
    for attempt in range(100):
        path = base / (stamp if not attempt else f"{stamp}-{attempt + 1}")
        try:
            path.mkdir(parents=True)
        except FileExistsError:
            if not base.is_dir():
                raise
        else:
            return path.resolve()
    raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(base))
