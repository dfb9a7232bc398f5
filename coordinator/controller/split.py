"""From real-valued shares to whole samples: bounds, clamping, largest remainder (ALGORITHMS 1.4).

The whole samples always add up to the budget and respect every floor and cap. Nothing here knows about costs.
"""

from collections.abc import Sequence

import numpy as np

from coordinator.controller import InfeasibleError, bulk
from edged import splitting

LARGE = 500  # boards from which numpy columns beat lists


def check(boards: Sequence[str], budget: int, floors: Sequence[int], caps: Sequence[int]) -> None:
    """Raise, naming board and bound, unless floors <= caps and sum(floors) <= budget <= sum(caps)."""
    if not boards:
        raise InfeasibleError("no board is left in the pool")
    if budget < 1:
        raise InfeasibleError(f"the budget must be at least 1 sample, not {budget}")
    for board, floor, cap in zip(boards, floors, caps, strict=True):
        if floor < 0 or cap < floor:
            raise InfeasibleError(f"board {board}: floor {floor} and cap {cap} leave no share between them")
    low, high = sum(floors), sum(caps)
    if low > budget:
        worst = max(range(len(boards)), key=lambda i: floors[i])
        raise InfeasibleError(
            f"the floors add up to {low} samples, above the budget of {budget}; "
            f"the highest is board {boards[worst]}'s floor of {floors[worst]}"
        )
    if high < budget:
        worst = min(range(len(boards)), key=lambda i: caps[i])
        raise InfeasibleError(
            f"the caps add up to {high} samples, below the budget of {budget}; "
            f"the lowest is board {boards[worst]}'s cap of {caps[worst]}"
        )


def clamped(
    weights: Sequence[float],
    budget: int,
    floors: Sequence[int],
    caps: Sequence[int],
    offsets: Sequence[float] | None = None,
) -> list[float]:
    """`edged.splitting.clamped`, by columns for many boards. Bounds must have passed `check`."""
    m = len(weights)
    if m >= LARGE:
        o = None if offsets is None else np.array(offsets, float)
        columns = np.array(weights, float), np.array(floors, np.int64), np.array(caps, np.int64)
        x_column: list[float] = bulk.clamped(columns[0], budget, columns[1], columns[2], o).tolist()
        return x_column
    return splitting.clamped(weights, budget, floors, caps, offsets)


def whole(x: Sequence[float], budget: int, caps: Sequence[int]) -> list[int]:
    """`edged.splitting.whole`, by columns for many boards."""
    if len(x) >= LARGE:
        n_column: list[int] = bulk.whole(np.array(x, float), budget, np.array(caps, np.int64)).tolist()
        return n_column
    return splitting.whole(x, budget, caps)


def equal(budget: int, floors: Sequence[int], caps: Sequence[int]) -> list[int]:
    """The same for every board, as far as the bounds allow."""
    return whole(clamped([1.0] * len(floors), budget, floors, caps), budget, caps)
