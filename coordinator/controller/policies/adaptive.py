"""Shares inversely proportional to the combined cost of time and energy: the second paper's rule.

Known by four more names: time-only, low-energy, balanced, energy-only (ALGORITHMS 1.4). The smoothing, the
deadband and the rounding are our choice where the paper is silent.
"""

import math

import numpy as np
from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime, Weights, arrays
from coordinator.controller import costs as cost
from coordinator.controller.deadband import DRIFT, Verdict, judge, words
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import LARGE, check, clamped, whole
from coordinator.controller.standing import Standing, energy_notes, standing

NAME = "adaptive"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp")
NEEDS: tuple[Need, ...] = ("seconds", "joules")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """w_t is 1 - w_e unless given; deadband is relative; patience counts rounds inside it."""

    w_e: float = 0.0
    w_t: float | None = None
    deadband: float = 0.10
    patience: int = 5

    def __post_init__(self) -> None:
        Weights.of(self.w_e, self.w_t)
        if not 0 <= self.deadband < 1:
            raise ValueError(f"deadband = {self.deadband}: it must be at least 0 and below 1")
        if self.patience < 1:
            raise ValueError(f"patience = {self.patience}: it must be at least 1 round")


def allocate(pool: Pool, options: Options) -> Allocation:
    """Equal shares until a board has reported; then by 1/c_i, kept while inside the deadband."""
    weights = Weights.of(options.w_e, options.w_t)
    now = standing(pool)
    check(now.boards, now.budget, now.floors, now.caps)
    decide = _decide if len(now.boards) < LARGE else _decide_large
    combined, wanted, verdict = decide(pool, now, weights, options)
    reason = words(verdict, now, wanted, options.deadband, options.patience)
    new = [board for board, value in zip(now.boards, combined, strict=True) if value is None]
    if len(new) == len(now.boards):
        reason = f"equal shares: no board has reported yet ({reason})"
    elif new:
        reason = f"{', '.join(new)} not measured yet: N/m samples, the others by cost; {reason}"
    silent = weights.w_e == 0 or len(new) == len(now.boards)
    return answer(
        now,
        wanted if verdict.applies else [n or 0 for n in now.previous],
        wanted=wanted,
        changed=verdict.applies,
        reason=reason,
        costs=combined,
        notes=() if silent else energy_notes(now.members),
        carry={DRIFT: verdict.drift} if verdict.drift else {},
    )


def _decide(
    pool: Pool, now: Standing, weights: Weights, options: Options
) -> tuple[list[float | None], list[int], Verdict]:
    combined = cost.combined(now.seconds, now.joules, weights)
    fixed = _fixed(pool, now, weights)
    offsets = None if fixed is None else cost.offsets(fixed, combined)
    inverse = cost.inverse(combined)
    wanted = whole(clamped(inverse, now.budget, now.floors, now.caps, offsets), now.budget, now.caps)
    return combined, wanted, judge(now, wanted, pool.carry, options.deadband, options.patience)


def _decide_large(
    pool: Pool, now: Standing, weights: Weights, options: Options
) -> tuple[list[float | None], list[int], Verdict]:
    columns = arrays.Columns.of(now, pool.carry.get(DRIFT, {}))
    fixed = _fixed(pool, now, weights)
    decision = arrays.decide(
        columns, weights, options.deadband, options.patience, None if fixed is None else np.array(fixed)
    )
    costs = [None if math.isnan(c) else c for c in decision.costs.tolist()]
    drift = {board: float(n) for board, n in zip(now.boards, decision.drift.tolist(), strict=True) if n}
    return costs, decision.wanted.tolist(), Verdict(decision.kind, decision.where, drift or None)


def _fixed(pool: Pool, now: Standing, weights: Weights) -> list[float] | None:
    """o_i, where fixed costs are fitted."""
    if pool.settings.fixed_cost == "none":
        return None
    return cost.fixed(now.fixed_seconds, now.fixed_joules, now.seconds, now.joules, weights)
