"""From real-valued shares to whole samples: bounds, clamping, largest remainder (ALGORITHMS 1.4).

The whole samples always add up to the budget and respect every floor and cap. Nothing here knows about costs.
"""

from collections.abc import Sequence

import numpy as np

from coordinator.controller import InfeasibleError, bulk

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
    """x_i = level * weights_i - offsets_i within [floors_i, caps_i], with the level that spends the budget.

    Clamped boards are taken out and the rest shared again until nothing changes. Only the side that is
    clamped by more is fixed in a pass: fixing both may fix a board that the next pass would have freed.
    Bounds must have passed `check`; weights must be above 0.
    """
    m = len(weights)
    if m >= LARGE:
        o = None if offsets is None else np.array(offsets, float)
        columns = np.array(weights, float), np.array(floors, np.int64), np.array(caps, np.int64)
        x_column: list[float] = bulk.clamped(columns[0], budget, columns[1], columns[2], o).tolist()
        return x_column
    offset = [0.0] * m if offsets is None else offsets
    x = [0.0] * m
    free = list(range(m))
    left = float(budget)
    while free:
        level = (left + sum([offset[i] for i in free])) / sum([weights[i] for i in free])
        excess = 0.0
        low: list[int] = []
        high: list[int] = []
        for i in free:
            value = x[i] = level * weights[i] - offset[i]
            if value < floors[i]:
                low.append(i)
                excess += floors[i] - value
            elif value > caps[i]:
                high.append(i)
                excess -= value - caps[i]
        if not low and not high:
            break
        fixed = low if excess > 0 else high if excess < 0 else low + high
        for i in fixed:
            x[i] = float(floors[i] if x[i] < floors[i] else caps[i])
            left -= x[i]
        gone = set(fixed)
        free = [i for i in free if i not in gone]
    return x


def whole(x: Sequence[float], budget: int, caps: Sequence[int]) -> list[int]:
    """Largest remainder (Hamilton): whole samples that add up to the budget; ties to the lowest index."""
    if len(x) >= LARGE:
        n_column: list[int] = bulk.whole(np.array(x, float), budget, np.array(caps, np.int64)).tolist()
        return n_column
    grains = [round(value, bulk.GRAIN) for value in x]
    n = [int(value) for value in grains]
    missing = budget - sum(n)
    if missing == 0:
        return n
    # A board at its cap has no remainder to round up.
    order = sorted(
        [i for i in range(len(n)) if n[i] < caps[i]], key=lambda i: n[i] - grains[i]
    )  # sorted is stable: ties keep the lowest index first
    for i in order[:missing]:
        n[i] += 1
    return n


def equal(budget: int, floors: Sequence[int], caps: Sequence[int]) -> list[int]:
    """The same for every board, as far as the bounds allow."""
    return whole(clamped([1.0] * len(floors), budget, floors, caps), budget, caps)
