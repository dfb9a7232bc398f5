"""The adaptive decision for large pools, on numpy columns: the rule of costs, split and deadband at scale.

Below some hundred boards the plain lists are faster. A property test holds the two to one another.
"""

from dataclasses import dataclass

import numpy as np

from coordinator.controller import Weights
from coordinator.controller.bulk import Floats, Ints, clamped, whole
from coordinator.controller.deadband import Kind
from coordinator.controller.standing import Standing


@dataclass(frozen=True, slots=True)
class Columns:
    """One pool, a column per quantity, in board order; NaN is unknown, -1 no previous share."""

    budget: int
    floors: Ints
    caps: Ints
    previous: Ints
    seconds: Floats  # per sample
    joules: Floats  # per sample
    drift: Ints  # signed rounds inside the deadband

    @classmethod
    def of(cls, now: Standing, drift: dict[str, float]) -> "Columns":
        """From the lists of a standing."""
        unknown = float("nan")
        return cls(
            budget=now.budget,
            floors=np.array(now.floors, np.int64),
            caps=np.array(now.caps, np.int64),
            previous=np.array([-1 if n is None else n for n in now.previous], np.int64),
            seconds=np.array([unknown if v is None else v for v in now.seconds]),
            joules=np.array([unknown if v is None else v for v in now.joules]),
            drift=np.array([int(drift.get(board, 0)) for board in now.boards], np.int64),
        )


@dataclass(frozen=True, slots=True)
class Decision:
    """Shares of one round; `where` is the board that the verdict is about."""

    shares: Ints
    wanted: Ints
    costs: Floats
    kind: Kind
    where: int
    drift: Ints


def decide(
    columns: Columns, weights: Weights, deadband: float, patience: int, fixed: Floats | None = None
) -> Decision:
    """Costs, clamped inverse shares, whole samples, deadband; `fixed` is `costs.fixed`, o_i by board.

    Bounds must have passed `split.check`.
    """
    costs = combined(columns.seconds, columns.joules, weights)
    known = ~np.isnan(costs)
    inverse = 1 / costs
    inverse[~known] = inverse[known].mean() if known.any() else 1.0
    offsets = None
    if fixed is not None:
        offsets = fixed * inverse
        offsets[~known] = offsets[known].mean() if known.any() else 0.0
    x = clamped(inverse, columns.budget, columns.floors, columns.caps, offsets)
    wanted = whole(x, columns.budget, columns.caps)
    kind, where, drift = _judge(columns, wanted, deadband, patience)
    shares = columns.previous if kind in ("same", "inside") else wanted
    return Decision(shares, wanted, costs, kind, where, drift)


def combined(seconds: Floats, joules: Floats, weights: Weights) -> Floats:
    """c_i, NaN where the seconds are unknown; unknown joules are charged at the median watts."""
    known = ~np.isnan(seconds)
    if not known.any():
        return np.full_like(seconds, np.nan)
    ratio = seconds / np.median(seconds[known])
    if weights.w_e == 0.0:
        return np.asarray(weights.w_t * ratio)
    metered = known & ~np.isnan(joules)
    watts = np.median(joules[metered] / seconds[metered]) if metered.any() else 1.0
    charged = np.where(metered, joules, watts * seconds)
    return np.asarray(weights.w_t * ratio + weights.w_e * charged / np.median(charged[known]))


def _judge(columns: Columns, wanted: Ints, deadband: float, patience: int) -> tuple[Kind, int, Ints]:
    old = columns.previous
    none = np.zeros_like(old)
    if (old < columns.floors).any() or (old > columns.caps).any() or old.sum() != columns.budget:
        return "misfit", 0, none
    error = wanted - old
    with np.errstate(divide="ignore", invalid="ignore"):
        change = np.where(error == 0, 0.0, np.abs(error) / old)
    where = int(change.argmax())
    if change[where] == 0.0:
        return "same", where, none
    if change[where] > deadband:
        return "above", where, none
    sign = np.sign(error)
    drift = np.where(columns.drift * sign > 0, columns.drift + sign, sign)
    lasting = np.flatnonzero(np.abs(drift) >= patience)
    return ("patience", int(lasting[0]), none) if lasting.size else ("inside", where, drift)
