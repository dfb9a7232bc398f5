"""The combined cost of time and energy per sample, and the shares that equalise it (ALGORITHMS 1.1, 1.4).

c_i = w_t tau_i / median(tau) + w_e eps_i / median(eps), share ~ 1/c_i. With a fitted fixed cost the same rule
reads: give every board the same weighted cost o_i + c_i n_i, hence n_i = (level - o_i) / c_i.
"""

from collections.abc import Sequence

from coordinator.controller import Weights


def median(values: Sequence[float]) -> float:
    """The middle value, or the mean of the two middle ones."""
    ordered = sorted(values)
    half, odd = divmod(len(ordered), 2)
    return ordered[half] if odd else (ordered[half - 1] + ordered[half]) / 2


def combined(
    seconds: Sequence[float | None], joules: Sequence[float | None], weights: Weights
) -> list[float | None]:
    """c_i for every board with known seconds per sample, None for the others.

    A board without joules is charged at the pool's median watts, i.e. its time ratio stands for its energy
    ratio; the caller says so (`standing.energy_notes`).
    """
    w_t, w_e = weights.w_t, weights.w_e
    times = [value for value in seconds if value is not None]
    if not times:
        return [None] * len(seconds)
    unit = median(times)
    if w_e == 0.0:
        return [None if tau is None else w_t * tau / unit for tau in seconds]
    energies = [e for e, tau in zip(joules, seconds, strict=True) if e is not None and tau is not None]
    energy_unit = median(energies) if energies else 1.0
    costs: list[float | None] = []
    for tau, eps in zip(seconds, joules, strict=True):
        if tau is None:
            costs.append(None)
        else:
            ratio = tau / unit
            costs.append(w_t * ratio + w_e * (ratio if eps is None else eps / energy_unit))
    return costs


def fixed(
    fixed_seconds: Sequence[float],
    fixed_joules: Sequence[float],
    seconds: Sequence[float | None],
    joules: Sequence[float | None],
    weights: Weights,
) -> list[float]:
    """o_i: the weighted cost that a board has in a round whatever its share, in the units of c_i."""
    times = [value for value in seconds if value is not None]
    unit = median(times) if times else 1.0
    energies = [e for e, tau in zip(joules, seconds, strict=True) if e is not None and tau is not None]
    energy_unit = median(energies) if energies else 1.0
    spent = []
    for a, b, eps in zip(fixed_seconds, fixed_joules, joules, strict=True):
        ratio = a / unit
        spent.append(weights.w_t * ratio + weights.w_e * (ratio if eps is None else b / energy_unit))
    return spent


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
