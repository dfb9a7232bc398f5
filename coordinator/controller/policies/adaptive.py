"""Shares inversely proportional to the combined cost of time and energy: the second paper's rule.

Known by four more names: time-only, low-energy, balanced, energy-only (ALGORITHMS 1.4). The smoothing, the
deadband and the rounding are our choice where the paper is silent.
"""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime, Weights
from coordinator.controller import costs as cost
from coordinator.controller.deadband import settle
from coordinator.controller.predictions import predict
from coordinator.controller.split import check, clamped, whole
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
    boards, budget = now.boards, pool.budget
    check(boards, budget, now.floors, now.caps)
    combined = cost.combined(now.seconds, now.joules, weights)
    inverse = cost.inverse(combined)
    offsets = _offsets(pool, now, weights, combined)
    wanted = whole(clamped(inverse, budget, now.floors, now.caps, offsets), budget, now.caps)
    previous = [member.previous for member in now.members]
    settled = settle(
        boards, wanted, previous, budget, now.floors, now.caps, pool.carry, options.deadband, options.patience
    )
    new = [board for board, value in zip(boards, combined, strict=True) if value is None]
    reason = settled.reason
    notes = now.notes
    if len(new) == len(boards):
        reason = f"equal shares: no board has reported yet ({reason})"
    elif new:
        reason = f"{', '.join(new)} not measured yet: N/m samples, the others by cost; {reason}"
    if weights.w_e > 0 and len(new) < len(boards):
        notes = notes + energy_notes(now.members)
    expected = predict(now.members, settled.shares, now.joules)
    return Allocation(
        shares=dict(zip(boards, settled.shares, strict=True)),
        changed=settled.changed,
        reason=reason,
        costs=dict(zip(boards, combined, strict=True)),
        wanted=dict(zip(boards, wanted, strict=True)),
        predicted_seconds=expected.seconds,
        predicted_joules=expected.joules,
        predicted_wait_joules=expected.wait_joules,
        left=now.left,
        notes=tuple(notes),
        carry=settled.carry,
    )


def _offsets(
    pool: Pool, now: Standing, weights: Weights, combined: list[float | None]
) -> list[float] | None:
    """o_i / c_i where fixed costs are fitted; a board without a cost gets none."""
    if pool.settings.fixed_cost == "none":
        return None
    memories = [member.memory for member in now.members]
    a = [(memory.fixed_seconds if memory else None) or 0.0 for memory in memories]
    b = [(memory.fixed_joules if memory else None) or 0.0 for memory in memories]
    fixed = cost.fixed(a, b, now.seconds, now.joules, weights)
    return [0.0 if c is None else o / c for o, c in zip(fixed, combined, strict=True)]
