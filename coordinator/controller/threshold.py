"""Which boards are worth their joules: the threshold rule without floors and caps, and what it tells a fleet.

A board works exactly when its dynamic joules per sample are below mu*, the fleet's optimal joules per sample;
all working boards finish together (ALGORITHMS 7.3).
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from coordinator.controller.frontier import Fleet


@dataclass(frozen=True, slots=True)
class Threshold:
    """The fleet's optimal joules per sample and who works at it."""

    joules_per_sample: float
    working: NDArray[np.bool_]


def threshold(fleet: Fleet) -> Threshold:
    """Dinkelbach: mu from the working set, the set from mu; without bounds and fixed costs."""
    speed = 1 / fleet.seconds
    dynamic = fleet.dynamic
    watts = float(fleet.waiting_watts.sum())

    def joules_per_sample(working: NDArray[np.bool_]) -> float:
        return float((watts + (dynamic * speed)[working].sum()) / speed[working].sum())

    working = np.ones(len(speed), bool)
    mu = joules_per_sample(working)
    while True:
        # The board of least d always works: without it, mu could not be reached at all.
        working = (dynamic < mu) | (dynamic == dynamic.min())
        better = joules_per_sample(working)
        if better >= mu:
            return Threshold(mu, (dynamic < mu) | (dynamic == dynamic.min()))
        mu = better


def time_only_is_cheapest(fleet: Fleet) -> bool:
    """Max d <= sum(Pa) / sum(s): then no split needs fewer joules than equal finish times."""
    watts = fleet.joules / fleet.seconds
    return bool(fleet.dynamic.max() <= watts.sum() / (1 / fleet.seconds).sum())
