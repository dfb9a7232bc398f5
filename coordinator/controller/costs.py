"""The combined cost of time and energy per sample, and the shares that equalise it (ALGORITHMS 1.1, 1.4).

c_i = w_t tau_i / median(tau) + w_e eps_i / median(eps), share ~ 1/c_i. With a fitted fixed cost the same rule
reads: give every board the same weighted cost o_i + c_i n_i, hence n_i = (level - o_i) / c_i.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.controller import Weights


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


class Units(NamedTuple):
    """What the costs of one pool are measured in: its median seconds and joules per sample, and watts."""

    seconds: float
    joules: float
    watts: float


def units(seconds: Sequence[float | None], joules: Sequence[float | None]) -> Units:
    """Over the boards with known seconds. `watts` is the median of those that have joules, at which the
    others are charged; 1 where none has any: then time stands for energy."""
    known = [(tau, eps) for tau, eps in zip(seconds, joules, strict=True) if tau is not None]
    if not known:
        return Units(1.0, 1.0, 1.0)
    metered = [eps / tau for tau, eps in known if eps is not None]
    watts = median(metered) if metered else 1.0
    return Units(
        median([tau for tau, _ in known]),
        median([tau * watts if eps is None else eps for tau, eps in known]),
        watts,
    )


def combined(
    seconds: Sequence[float | None], joules: Sequence[float | None], weights: Weights
) -> list[float | None]:
    """c_i for every board with known seconds per sample, None for the others.

    A board without joules is charged at the pool's median watts; the caller says so
    (`standing.energy_notes`).
    """
    unit = units(seconds, joules)
    return [
        None if tau is None else _weighted(tau, tau * unit.watts if eps is None else eps, unit, weights)
        for tau, eps in zip(seconds, joules, strict=True)
    ]


def fixed(
    fixed_seconds: Sequence[float],
    fixed_joules: Sequence[float],
    seconds: Sequence[float | None],
    joules: Sequence[float | None],
    weights: Weights,
) -> list[float]:
    """o_i: the weighted cost that a board has in a round whatever its share, in the units of c_i."""
    unit = units(seconds, joules)
    return [
        _weighted(a, a * unit.watts if eps is None else b, unit, weights)
        for a, b, eps in zip(fixed_seconds, fixed_joules, joules, strict=True)
    ]


def _weighted(seconds: float, joules: float, unit: Units, weights: Weights) -> float:
    by_time = weights.w_t * seconds / unit.seconds
    return by_time if weights.w_e == 0 else by_time + weights.w_e * joules / unit.joules


def offsets(fixed: Sequence[float], costs: Sequence[float | None]) -> list[float]:
    """Samples that a fixed cost stands for, o_i / c_i; a board without a cost gets the others' mean."""
    known = [o / cost for o, cost in zip(fixed, costs, strict=True) if cost is not None]
    usual = sum(known) / len(known) if known else 0.0
    return [usual if cost is None else o / cost for o, cost in zip(fixed, costs, strict=True)]


def inverse(costs: Sequence[float | None]) -> list[float]:
    """1/c_i; a board without a cost gets the mean of the others, which makes its share N/m."""
    known = [1 / cost for cost in costs if cost is not None]
    usual = sum(known) / len(known) if known else 1.0
    return [usual if cost is None else 1 / cost for cost in costs]
