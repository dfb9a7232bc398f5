"""The global batch of a step by OmniLearn's rules and by ours, on the same input.

Prints, adjustment by adjustment, the batches of four workers whose speeds are as their cores (level HL8) and
whose times are exactly linear. The other rules are written anew from descriptions (ALGORITHMS 2.1, 2.4).
"""

import argparse
import json
from collections.abc import Callable, Sequence
from math import ceil

from coordinator.simulator.levels import CORES, WORKER_BATCH
from edged.groups import Stepwise
from edged.stepwise import Adjuster

ADJUSTMENTS = 6
LOWER, UPPER, DEADBAND = 16, 96, 0.2
"""Of the released code."""

Batches = tuple[float, ...]
Rule = Callable[[Batches, Batches, int], Batches]


def proportional(sizes: Batches, seconds: Batches, batch: int) -> Batches:
    """The 2020 paper's controller: each batch times mean(t) / t, nothing holds the sum."""
    mean = sum(seconds) / len(seconds)
    return tuple(b * mean / t for b, t in zip(sizes, seconds, strict=True))


def additive(sizes: Batches, seconds: Batches, batch: int) -> Batches:
    """The released code's: the same candidate, a deadband for each worker by itself, bounds, and what is
    above or below the global batch taken from all alike; always rounded up."""
    kept = []
    for size, candidate in zip(sizes, proportional(sizes, seconds, batch), strict=True):
        moves = abs(candidate - size) / candidate > DEADBAND
        kept.append(min(UPPER, max(LOWER, ceil(candidate) if moves else size)))
    error = (sum(kept) - batch) / len(kept)
    return tuple(float(ceil(size - error)) for size in kept)


def ours(sizes: Batches, seconds: Batches, batch: int) -> Batches:
    """Ranks' own rule: in proportion to the speeds, in all exactly the global batch."""
    adjuster = Adjuster(Stepwise("omnilearn", 1, 0.5, 0.05), [round(size) for size in sizes])
    adjuster.hear(seconds, [round(size) for size in sizes])
    return sizes if adjuster.speeds is None else tuple(float(n) for n in adjuster.sizes(batch))


RULES: dict[str, Rule] = {"edged": ours, "released code": additive, "2020 paper": proportional}


def trace(rule: Rule, speeds: Sequence[float], adjustments: int = ADJUSTMENTS) -> list[Batches]:
    """Batches after each adjustment, from equal ones on."""
    batch, sizes = WORKER_BATCH * len(speeds), (float(WORKER_BATCH),) * len(speeds)
    found = [sizes]
    for _ in range(adjustments):
        sizes = rule(sizes, tuple(b / speed for b, speed in zip(sizes, speeds, strict=True)), batch)
        found.append(sizes)
    return found


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="one JSON object instead of the table")
    given = parser.parse_args()
    speeds = CORES["BSP"]["hl8"]
    traces = {name: trace(rule, speeds) for name, rule in RULES.items()}
    if given.json:
        print(json.dumps({"speeds": speeds, "batches": traces}, indent=1))
        return
    print(f"workers of {' : '.join(map(str, speeds))} cores, {WORKER_BATCH} samples each at first")
    print("   ".join([f"{'':10}", *(f"{name:>26}" for name in traces)]))
    for number in range(ADJUSTMENTS + 1):
        cells = [
            f"{' '.join(f'{size:.0f}' for size in found[number])} = {sum(found[number]):.0f}"
            for found in traces.values()
        ]
        print("   ".join([f"{f'after {number}' if number else 'at first':10}", *(f"{c:>26}" for c in cells)]))


if __name__ == "__main__":
    main()
