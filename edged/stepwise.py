"""Batch sizes that synchronous ranks change among themselves every few steps, from their compute times. Pure.

Every rank hears the same times and comes to the same sizes; the global batch of a step is never changed
(ALGORITHMS 2.2, 3.4).
"""

from collections.abc import Sequence

from edged.groups import Stepwise

RULES = ("ema-batch", "omnilearn")


def batches(speeds: Sequence[float], batch: int) -> list[int]:
    """b_i of one step in proportion to the speeds: at least 1 each, in all exactly `batch`.

    Largest remainder, ties to the lowest rank. Raises ValueError for a batch smaller than the ranks.
    """
    m = len(speeds)
    if batch < m:
        raise ValueError(f"a step of {batch} samples does not reach over {m} ranks")
    real = [0.0] * m
    free, left = list(range(m)), float(batch)
    while free:
        level = left / sum(speeds[i] for i in free)
        low = [i for i in free if speeds[i] * level < 1]
        for i in low or free:
            real[i] = 1.0 if low else speeds[i] * level
        if not low:
            break
        left -= len(low)
        free = [i for i in free if i not in low]
    # Rounded first, so that sums that differ in their last bit do not decide who gets a sample.
    grains = [round(value, 9) for value in real]
    sizes = [int(value) for value in grains]
    order = sorted(range(m), key=lambda i: sizes[i] - grains[i])
    for i in order[: batch - sum(sizes)]:
        sizes[i] += 1
    return sizes


class Adjuster:
    """One round's changes. Before the first the sizes are the schedule's (`speeds` is None)."""

    def __init__(self, rule: Stepwise, shares: Sequence[int]) -> None:
        if rule.rule not in RULES:
            raise ValueError(f"no step-level rule {rule.rule!r}; there are: {', '.join(RULES)}")
        self._rule = rule
        self._smoothed: list[float] | None = None
        total = sum(shares)
        self._parts = [share / total for share in shares]
        self.speeds: list[float] | None = None
        self.changes = 0

    def hear(self, seconds: Sequence[float], samples: Sequence[int]) -> bool:
        """Compute seconds and samples of every rank since the last call; True when the sizes change.

        ema-batch averages throughput and always follows it. omnilearn averages the time a sample since its
        last change, and changes all sizes once one of them is off by more than the deadband.
        """
        if any(n < 1 or t <= 0 for t, n in zip(seconds, samples, strict=True)):
            return False
        if self._rule.rule == "ema-batch":
            self._average([n / t for t, n in zip(seconds, samples, strict=True)])
            return self._become(list(self._smoothed or ()))
        self._average([t / n for t, n in zip(seconds, samples, strict=True)])
        speeds = [1 / time for time in self._smoothed or ()]
        wanted = [speed / sum(speeds) for speed in speeds]
        off = max(abs(new - old) / old for new, old in zip(wanted, self._parts, strict=True))
        if off <= self._rule.deadband:
            return False
        self._smoothed = None
        return self._become(speeds)

    def _average(self, values: list[float]) -> None:
        old, beta = self._smoothed, self._rule.beta
        self._smoothed = (
            values if old is None else [beta * x + (1 - beta) * y for x, y in zip(values, old, strict=True)]
        )

    def _become(self, speeds: list[float]) -> bool:
        self.speeds, self.changes = speeds, self.changes + 1
        self._parts = [speed / sum(speeds) for speed in speeds]
        return True
