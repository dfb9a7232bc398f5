"""Servers that take lines as a test wants it, and rows as the store has them."""

from collections.abc import Callable
from typing import Any

from coordinator.telemetry.generations import Verdict
from edged.messages import EnergyChannel, Power

STORED = Verdict("stored")


class Taker:
    """Answers each batch by `judge` and keeps what it stored, in order."""

    def __init__(self, judge: Callable[[list[str]], Verdict] = lambda lines: STORED) -> None:
        self.judge = judge
        self.stored: list[str] = []
        self.posts = 0

    def write(self, lines: list[str]) -> Verdict:
        self.posts += 1
        verdict = self.judge(lines)
        if verdict.kind == "stored":
            self.stored += lines
        return verdict


SETTINGS = {"regime": "pma", "policy": "adaptive", "batch": 8, "rounds": 3, "budget": 300}
CHANNELS = (
    EnergyChannel("pmic", "board", "calibrated", headline=True),
    EnergyChannel("cpu", "package", "measured"),
)


def power(board: str = "pi5", watts: float = 5.5) -> Power:
    return Power(
        board,
        "boot",
        headline="pmic",
        basis="calibrated",
        watts={"pmic": watts, "cpu": 3.0},
        joules={"pmic": 100.0, "cpu": 50.0},
        temperature_celsius=61.0,
        throttled=("soft-temperature",),
        sampler_cpu_seconds=0.25,
    )


def board_row(board: str = "pi5", number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "run": "r1",
        "round": number,
        "board": board,
        "status": "accepted",
        "reason": "",
        "samples": 100,
        "steps": 13,
        "seconds": 2.0,
        "joules": 10.0,
        "joules_reason": "",
        "basis": "calibrated",
        "scope": "board",
        "uncertainty_joules": 0.5,
        "coverage": 0.98,
        "flags": [],
        "seconds_per_sample": 0.02,
        "joules_per_sample": 0.1,
        "cost": 1.0,
        "loss": 0.7,
        "behind_pace_steps": 0,
        "peak_memory_bytes": 1000,
        **changes,
    }


def round_row(number: int = 1, **changes: Any) -> dict[str, Any]:
    return {
        "run": "r1",
        "round": number,
        "ordered": 200,
        "accepted": 200,
        "returned": 0,
        "outstanding": 0,
        "accepted_in_all": 200 * number,
        "makespan_seconds": 4.0,
        "longest": "pi4",
        "wall_seconds": 5.0,
        "compute_joules_by_basis": {"calibrated": 20.0},
        "joules_unknown_of": [],
        "policy": "adaptive",
        "w_t": 0.75,
        "w_e": 0.25,
        "shares": {"pi4": 100, "pi5": 100},
        "costs": {},
        "reason": "by cost",
        **changes,
    }


def closed_row(board: str = "pi5", number: int = 1, wait_joules: float | None = 3.0) -> dict[str, Any]:
    parts = {part: {"seconds": 0.0, "joules": 0.0} for part in ("communication", "lost", "overhead")}
    return {
        "run": "r1",
        "round": number,
        "board": board,
        "order": f"r1.{number}.{board}.1",
        "basis": "calibrated",
        "scope": "board",
        "flags": [],
        "parts": {
            **parts,
            "compute": {"seconds": 2.0, "joules": 10.0},
            "wait": {"seconds": 2.0, "joules": wait_joules},
        },
    }
