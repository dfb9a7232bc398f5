"""Synchronous ranks as real processes, of which one is killed in many rounds: does every round end, whole?

`python benchmarks/kills.py --rounds 100 --kills 20` starts a broker, a coordinator and four emulated boards
on this machine; of half of the victims the daemon is killed, of the others only the training process.
"""

import argparse
import os
import random
import signal
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path
from statistics import median
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from edged.controls import GetBoards
from tests.scenarios.lab import Lab, check_account

BOARDS = ("rpi4", "rpi5", "n100", "orangepi5")
BUDGET, BATCH = 480, 48
SCALE = "0.004"


def child_of(pid: int) -> int | None:
    """The training process of a daemon."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError, IndexError):
            fields = (entry / "stat").read_text().rsplit(")", 1)[1].split()
            if int(fields[1]) == pid and b"edged.trainer" in (entry / "cmdline").read_bytes():
                return int(entry.name)
    return None


def start(lab: Lab, board: str) -> None:
    lab.start_board(board, "--emulate", board, "--speed-scale", SCALE)


def kill(lab: Lab, board: str, generator: random.Random) -> str:
    """End the board's daemon, or only its training process."""
    daemon = lab.processes[board]
    child = child_of(daemon.pid)
    if child is not None and generator.random() < 0.5:
        os.kill(child, signal.SIGKILL)
        return "training process"
    lab.kill(board)
    start(lab, board)
    return "daemon"


def steps(lab: Lab) -> tuple[int, list[str]]:
    """The running round, and who makes steps in it."""
    rows = [row for row in lab.ask(GetBoards()).data["boards"] if row.get("order")]
    numbers = {row["board"]: int(row["order"].split(".")[1]) for row in rows if row["phase"] == "training"}
    number = max(numbers.values(), default=0)
    return number, [board for board, found in numbers.items() if found == number]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=100)
    parser.add_argument("--kills", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    generator = random.Random(given.seed)
    chosen = sorted(generator.sample(range(2, given.rounds), given.kills))
    with tempfile.TemporaryDirectory(prefix="edged-kills-") as folder:
        lab = Lab(Path(folder))
        try:
            report(lab, given.rounds, killed(lab, given.rounds, chosen, generator))
        finally:
            lab.close()


def killed(lab: Lab, rounds: int, chosen: list[int], generator: random.Random) -> tuple[str, list[str]]:
    """The run's name and what was killed."""
    lab.start_coordinator()
    for board in BOARDS:
        start(lab, board)
    run = lab.begin(
        budget=BUDGET,
        batch=BATCH,
        rounds=rounds,
        regime="ddp",
        policy="equal",
        min_boards=len(BOARDS),
        evaluate=False,
    )
    told, todo = [], list(chosen)
    while lab.ended(run) is None:
        number, ranks = steps(lab)
        if todo and number >= todo[0] and ranks:
            time.sleep(generator.random() * 0.6)
            board = generator.choice(ranks)
            told.append(f"round {number}: {board}'s {kill(lab, board, generator)}")
            print(told[-1], flush=True)
            todo.pop(0)
        time.sleep(0.05)
    return run, told


def report(lab: Lab, rounds: int, found: tuple[str, list[str]]) -> None:
    """What came of it; an AssertionError where a sample was lost or counted twice."""
    run, told = found
    check_account(lab, run, BUDGET, rounds)
    rows: list[dict[str, Any]] = lab.rows("round", run)
    attempts = [row["silos"]["all"]["attempts"] for row in rows]
    walls = [row["wall_seconds"] for row in rows]
    again = [wall for wall, count in zip(walls, attempts, strict=True) if count > 1]
    failures = [text for row in rows for text in row["silos"]["all"]["failures"]]
    lost = sum(row["parts"]["lost"]["seconds"] for row in lab.rows("closed", run))
    print(f"{len(rows)} rounds for {rounds} budgets of {BUDGET} samples, {len(told)} kills")
    print(f"every sample accepted once: {sum(row['accepted'] for row in rows)} of {rounds * BUDGET}")
    print(f"rounds done again {len(again)}, most attempts {max(attempts)}, seconds lost {lost:.1f}")
    print(f"round: median {median(walls):.2f} s, longest {max(walls):.1f} s")
    print(f"rounds that were done again: median {median(again or [0]):.1f} s")
    for text in sorted(set(failures)):
        print(f"  {failures.count(text)} x {text[:150]}")


if __name__ == "__main__":
    main()
