"""How unlike the forward times of four paced ranks are under equal shares, and under time-only ones.

`python benchmarks/forward_times.py` runs both with real processes on this machine. The coefficient of
variation is over the ranks, of a round's forward seconds; the paper's summary has 0.8-1.1 before, 0.02-0.18
after. More than 1 % of steps behind their pace makes the figures invalid.
"""

import argparse
import sys
import tempfile
from pathlib import Path
from statistics import fmean, median, pstdev

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from tests.scenarios.lab import Lab

BOARDS = ("rpi3bplus", "rpi4", "rpi5", "n100")
WARM_ROUNDS = 2
"""New processes, first readings."""


def forward_variations(lab: Lab, run: str) -> list[float]:
    """By round, after the warm ones."""
    rows = [row for row in lab.rows("board_round", run) if row["round"] > WARM_ROUNDS]
    found = []
    for number in sorted({row["round"] for row in rows}):
        seconds = [row["forward_seconds"] for row in rows if row["round"] == number]
        found.append(pstdev(seconds) / fmean(seconds))
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--scale", default="0.012", help="seconds a sample on a Raspberry Pi 4")
    given = parser.parse_args()
    found: dict[str, float] = {}
    behind: dict[str, float] = {}
    with tempfile.TemporaryDirectory(prefix="edged-forward-") as folder:
        lab = Lab(Path(folder))
        try:
            lab.start_coordinator()
            for board in BOARDS:
                lab.start_board(board, "--emulate", board, "--speed-scale", given.scale)
            for policy in ("equal", "time-only"):
                run = lab.begin(
                    budget=1280, batch=128, rounds=given.rounds, regime="ddp", policy=policy, min_boards=4
                )
                lab.finish(run, 1200.0)
                rows = [row for row in lab.rows("board_round", run) if row["round"] > WARM_ROUNDS]
                found[policy] = median(forward_variations(lab, run))
                behind[policy] = sum(r["behind_pace_steps"] for r in rows) / sum(r["steps"] for r in rows)
                print(f"{policy}: CV of forward time {found[policy]:.3f}, steps behind {behind[policy]:.2%}")
        finally:
            lab.close()
    print(f"it falls {found['equal'] / found['time-only']:.1f}-fold")
    good = found["time-only"] <= 0.18 and found["equal"] >= 5 * found["time-only"]
    valid = max(behind.values()) <= 0.01
    print("within the limits" if good and valid else "timing invalid" if not valid else "outside the limits")
    sys.exit(0 if good and valid else 1)


if __name__ == "__main__":
    main()
