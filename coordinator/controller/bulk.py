"""Clamping and largest remainder on numpy columns: what `split` does, for hundreds of boards and more.

A property test holds the two to one another.
"""

import numpy as np
from numpy.typing import NDArray

from edged.splitting import GRAIN

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


def clamped(weights: Floats, budget: int, lo: Ints, hi: Ints, offsets: Floats | None = None) -> Floats:
    """The level at which x_i = level w_i - o_i, held within the bounds, spends the budget: O(m log m).

    The spending is piecewise linear in the level, with bends where boards leave floors or meet caps.
    """
    o = np.zeros_like(weights) if offsets is None else offsets
    x: Floats = (budget + o.sum()) / weights.sum() * weights - o
    if ((x >= lo) & (x <= hi)).all():
        return x
    bends = np.concatenate([(lo + o) / weights, (hi + o) / weights])
    steps = np.concatenate([weights, -weights])
    order = np.argsort(bends, kind="stable")
    bends, steps = bends[order], steps[order]
    slopes = np.cumsum(steps)
    spent = lo.sum() + np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(bends))])
    k = int(np.searchsorted(spent, budget, side="right")) - 1
    missing = budget - spent[k]
    level = bends[k] + (missing / slopes[k] if slopes[k] > 0 and missing > 0 else 0.0)
    return np.asarray(np.clip(level * weights - o, lo, hi), np.float64)


def whole(x: Floats, budget: int, caps: Ints) -> Ints:
    """Whole samples that add up to the budget; ties to the lowest index, nothing above a cap."""
    grains = np.round(x, GRAIN)
    n = grains.astype(np.int64)
    missing = budget - int(n.sum())
    if missing:
        order = np.argsort(np.where(n < caps, n - grains, 1.0), kind="stable")
        n[order[:missing]] += 1
    return n
