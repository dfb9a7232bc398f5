"""Recorded runs out of the simulator, as values and in a store, for tests of what looks back."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.comparison import Recorded
from coordinator.simulator.actor import HASH
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.world import World
from coordinator.store import Row, Store
from edged.controls import RunSettings

BOARDS = (
    VirtualBoard("fast", samples_per_second=100, active_watts=5, waiting_watts=3),
    VirtualBoard("slow", samples_per_second=25, active_watts=3, waiting_watts=2),
)
SETTINGS = RunSettings("digits", "digits", 200, 4, batch=10, learning_rate=0.1)

Record = Callable[..., Recorded]


@pytest.fixture
def record() -> Record:
    """record(name, boards=..., **settings): a run of two virtual boards, 200 samples and 4 rounds."""

    def make(name: str, boards: tuple[VirtualBoard, ...] = BOARDS, **changes: Any) -> Recorded:
        settings = msgspec.structs.replace(SETTINGS, **changes)
        rows = World(boards, settings, 1000).run().rows
        run = {
            "run": name,
            "settings": msgspec.to_builtins(settings),
            "task_hash": HASH,
            "complete": True,
            "reason": "",
        }
        evaluations = tuple(
            {"run": name, "round": row["round"], "accuracy": 0.5 + 0.1 * row["round"], "loss": 1.0}
            for row in rows["round"]
        )
        return Recorded(
            run,
            tuple(rows["round"]),
            tuple(rows["board_round"]),
            tuple(rows["closed"]),
            evaluations,
            tuple(rows["decision"]),
        )

    return make


@pytest.fixture
def store(tmp_path: Path) -> Callable[..., Path]:
    """store(recorded, ...): the folder of a store that holds these runs."""

    def make(*runs: Recorded) -> Path:
        folder = tmp_path / "store"
        kept = Store(folder)
        for run in runs:
            kept.add_run(run.name, msgspec.convert(run.settings, RunSettings), HASH)
            tables = {
                "round": run.rounds,
                "board_round": run.boards,
                "closed": run.closed,
                "evaluation": run.evaluations,
                "decision": run.decisions,
            }
            kept.save([Row(run.name, table, row) for table, rows in tables.items() for row in rows])
            kept.end_run(run.name, "all samples are accepted", True)
        kept.close()
        return folder

    return make
