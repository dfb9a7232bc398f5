"""Shares in proportion to weights within bounds, and whole numbers of them that keep the sum. Pure.

Both the coordinator's controller and ranks among themselves split so (ALGORITHMS 1.4).
"""

from collections.abc import Sequence

GRAIN = 6
"""Shares are compared in millionths of a sample, so that the order of a floating-point sum breaks no tie."""


def clamped(
    weights: Sequence[float],
    budget: float,
    floors: Sequence[float],
    caps: Sequence[float],
    offsets: Sequence[float] | None = None,
) -> list[float]:
    """x_i = level * weights_i - offsets_i within [floors_i, caps_i], with the level that spends the budget.

    Clamped boards are taken out and the rest shared again until nothing changes. Only the side that is
    clamped by more is fixed in a pass: fixing both may fix a board that the next pass would have freed.
    Floors must not be above caps, nor the budget outside their sums; weights must be above 0.
    """
    m = len(weights)
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
    grains = [round(value, GRAIN) for value in x]
    n = [int(value) for value in grains]
    missing = budget - sum(n)
    if missing == 0:
        return n
    # Who is at its cap has no remainder to round up.
    order = sorted(
        [i for i in range(len(n)) if n[i] < caps[i]], key=lambda i: n[i] - grains[i]
    )  # sorted is stable: ties keep the lowest index first
    for i in order[:missing]:
        n[i] += 1
    return n
