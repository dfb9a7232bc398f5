"""Distributions of asynchronous updates out of the rows of a run: counts by board and ages. Pure.

A spread is that of a distribution, so that a mean cannot hide a board that is left behind.
"""

from collections import Counter
from collections.abc import Iterable, Mapping
from math import sqrt
from typing import Any

from msgspec import Struct

QUANTILES = (0.0, 0.25, 0.5, 0.75, 1.0)


class Updates(Struct, frozen=True):
    """Accepted updates of a run. Keys of the inner mapping are versions that an update was old."""

    counts: dict[str, int]
    ages: dict[str, dict[int, int]]
    dropped: int

    @property
    def all_ages(self) -> dict[int, int]:
        """Of all boards together, youngest first."""
        found: Counter[int] = Counter()
        for ages in self.ages.values():
            found.update(ages)
        return dict(sorted(found.items()))

    @property
    def count_spread(self) -> float:
        """Most minus fewest updates of a board, over the mean."""
        counts = self.counts.values()
        return (max(counts) - min(counts)) * len(counts) / sum(counts)

    @property
    def staleness_mean(self) -> float:
        """Versions."""
        return _mean(self.all_ages)

    @property
    def staleness_spread(self) -> float:
        """Standard deviation over all updates, in versions."""
        ages, mean = self.all_ages, self.staleness_mean
        return sqrt(sum(n * (age - mean) ** 2 for age, n in ages.items()) / sum(ages.values()))

    def quantiles(self) -> tuple[int, ...]:
        """Ages at QUANTILES of all updates."""
        ages = self.all_ages
        total = sum(ages.values())
        found = []
        for q in QUANTILES:
            passed = 0
            for age, n in ages.items():
                passed += n
                if passed >= q * total and passed:
                    found.append(age)
                    break
        return tuple(found)


def updates(pushes: Iterable[Mapping[str, Any]], boards: Iterable[str]) -> Updates:
    """From the rows of table `push`; a board without an accepted one has 0. Raises ValueError without any."""
    counts: Counter[str] = Counter(dict.fromkeys(boards, 0))
    ages: dict[str, Counter[int]] = {}
    dropped = 0
    for row in pushes:
        if row["status"] != "accepted":
            dropped += 1
            continue
        counts[row["board"]] += 1
        ages.setdefault(row["board"], Counter())[row["staleness"]] += 1
    if not ages:
        raise ValueError("no update was accepted")
    return _sorted(counts, ages, dropped)


def of_periods(periods: Iterable[Mapping[str, Any]]) -> Updates | None:
    """From the rows of table `round`; None where no asynchronous updates stand in them."""
    counts: Counter[str] = Counter()
    ages: dict[str, Counter[int]] = {}
    dropped = 0
    for row in periods:
        counts.update(row.get("updates", {}))
        dropped += sum(row.get("dropped", {}).values())
        for board, found in row.get("staleness", {}).items():
            ages.setdefault(board, Counter()).update({int(age): n for age, n in found.items()})
    return _sorted(counts, ages, dropped) if ages else None


def _sorted(counts: Counter[str], ages: Mapping[str, Counter[int]], dropped: int) -> Updates:
    return Updates(
        dict(sorted(counts.items())),
        {board: dict(sorted(found.items())) for board, found in sorted(ages.items())},
        dropped,
    )


def _mean(ages: Mapping[int, int]) -> float:
    return sum(age * n for age, n in ages.items()) / sum(ages.values())
