"""How long virtual time takes: eleven boards over 60 rounds under eight policies, and 10,000 boards over 20.

Processor seconds of this process, so that what else the machine does meanwhile counts little.
"""

import argparse
import json
import random
import time

from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.experiments import Plan, closed_loop
from coordinator.simulator.fleetfile import FleetFile, read
from coordinator.simulator.world import World

ELEVEN = "paper-eleven"
POLICIES = (
    ("equal", "pma"),
    ("profiled", "pma"),
    ("time-only", "pma"),
    ("low-energy", "pma"),
    ("oort", "pma"),
    ("min-energy", "pma"),
    ("ema-batch", "ddp"),
    ("omnilearn", "ddp"),
)
TARGET_SECONDS = 30.0


def large(boards: int) -> FleetFile:
    """Boards of random speed and watts, with 5 % noise and 64 samples each on average."""
    rng = random.Random(1)
    made = tuple(
        VirtualBoard(f"b{i:06}", rng.uniform(40, 400), rng.uniform(5, 20), rng.uniform(1, 4), noise=0.05)
        for i in range(boards)
    )
    return FleetFile("large", made, budget=64 * boards, batch=8)


def timed(fleet: FleetFile, policy: str, regime: str, rounds: int) -> tuple[float, World]:
    """Processor seconds of a run, and its world."""
    began = time.process_time()
    world = closed_loop(fleet, Plan(policy, policy), rounds, regime=regime)
    seconds = time.process_time() - began
    assert world.finished is not None
    assert world.finished.complete
    return seconds, world


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--boards", type=int, default=10_000)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of the table")
    given = parser.parse_args()
    rows: list[dict[str, float | int | str]] = []

    def add(fleet: FleetFile, policy: str, regime: str, rounds: int) -> float:
        seconds, world = timed(fleet, policy, regime, rounds)
        figures = {"seconds": seconds, "virtual_seconds": world.now}
        rows.append(
            {"policy": policy, "regime": regime, "boards": len(fleet.board), "rounds": rounds, **figures}
        )
        return seconds

    eleven = read(ELEVEN)
    total = sum(add(eleven, policy, regime, 60) for policy, regime in POLICIES)
    add(large(given.boards), "time-only", "pma", 20)
    if given.json:
        print(json.dumps(rows, indent=1))
        return
    print(f"{'policy':12} {'regime':6} {'boards':>7} {'rounds':>7} {'seconds':>9} {'virtual':>12}")
    for row in rows:
        print(
            f"{row['policy']:12} {row['regime']:6} {row['boards']:>7} {row['rounds']:>7} "
            f"{row['seconds']:>9.2f} {float(row['virtual_seconds']):>10.0f} s"
        )
    print(f"eight policies: {total:.1f} s, target {TARGET_SECONDS:g} s (ratio {total / TARGET_SECONDS:.2f})")


if __name__ == "__main__":
    main()
