"""Time of one decision: every policy at 11 and at 100,000 boards, as ratios to their targets.

Run as `python -m benchmarks.decision [--json]`. Processor seconds, best of several repeats, so that other
work on the machine disturbs them least. They are printed, never asserted.
"""

import argparse
import json
import time
import timeit
from collections.abc import Callable
from functools import partial

import numpy as np

from coordinator.controller import Pool, Weights, arrays, policies
from coordinator.controller.steady import Truth, known

ROUND_SECONDS = 10.0
TARGET_ELEVEN = 1e-5 * ROUND_SECONDS  # 0.001 % of a round
TARGET_ANY = 1e-3  # every policy, 11 boards
TARGET_LARGE = 0.05  # the adaptive rule itself, 100,000 boards, from columns
TARGET_LARGE_ANY = 0.5  # every policy, 100,000 boards, from members to the whole answer
LARGE = 100_000


def fleet(boards: int) -> tuple[Truth, ...]:
    """Log-normal speeds, watts between 4 and 35: invented, seeded."""
    random = np.random.default_rng(11)
    speeds = 120 * np.exp(0.8 * random.standard_normal(boards))
    active = random.uniform(4, 35, boards)
    waiting = active * random.uniform(0.15, 0.75, boards)
    return tuple(
        Truth(f"board-{i:06}", float(s), float(a), float(w), resource=float(1 + i % 8))
        for i, (s, a, w) in enumerate(zip(speeds, active, waiting, strict=True))
    )


def best(call: Callable[[], object], number: int, repeat: int = 5) -> float:
    """Seconds of one call."""
    return min(timeit.repeat(call, time.process_time, number=number, repeat=repeat)) / number


def rows() -> list[dict[str, float | int | str]]:
    """What was timed, its seconds, its target and the ratio (below 1 meets the target)."""
    found: list[dict[str, float | int | str]] = []

    def add(what: str, boards: int, seconds: float, target: float) -> None:
        found.append(
            {"what": what, "boards": boards, "seconds": seconds, "target": target, "ratio": seconds / target}
        )

    eleven = Pool(tuple(known(t, floor=1, previous=1000) for t in fleet(11)), 11_000, 5)
    many = Pool(tuple(known(t, floor=1, previous=100) for t in fleet(LARGE)), 100 * LARGE, 5)
    for name in policies.names():
        policy, options = policies.find(name), policies.options(name, {})
        target = TARGET_ELEVEN if policy.NAME == "adaptive" else TARGET_ANY
        add(name, 11, best(partial(policy.allocate, eleven, options), 200), target)
        add(name, LARGE, best(partial(policy.allocate, many, options), 1, 3), TARGET_LARGE_ANY)
    truths = fleet(LARGE)
    eps = np.array([t.active_watts / t.samples_per_second for t in truths])
    columns = arrays.Columns(
        budget=100 * LARGE,
        floors=np.ones(LARGE, np.int64),
        caps=np.full(LARGE, 100 * LARGE),
        previous=np.full(LARGE, 100),
        seconds=1 / np.array([t.samples_per_second for t in truths]),
        joules=eps,
        drift=np.zeros(LARGE, np.int64),
    )
    weights = Weights.of(0.25)
    add(
        "adaptive, from columns",
        LARGE,
        best(lambda: arrays.decide(columns, weights, 0.1, 5), 3),
        TARGET_LARGE,
    )
    return found


def main() -> None:
    """Print the table, or JSON."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON list instead of the table")
    table = rows()
    if parser.parse_args().json:
        print(json.dumps(table, indent=1))
        return
    print(f"{'decision':28} {'boards':>7} {'seconds':>10} {'target':>9} {'ratio':>7} {'of a 10 s round':>16}")
    for row in table:
        share = 100 * float(row["seconds"]) / ROUND_SECONDS
        print(
            f"{row['what']:28} {row['boards']:>7} {row['seconds']:>10.6f} {row['target']:>9.5f} "
            f"{row['ratio']:>7.2f} {share:>14.5f} %"
        )


if __name__ == "__main__":
    main()
