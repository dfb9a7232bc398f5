"""Measured once, then fixed: what a fleet gets from a profiling run instead of a closed loop.

Equal shares until a board's first reading; that reading stands for the board ever after, throttled or not.
"""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime, Weights
from coordinator.controller.costs import combined, inverse
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, clamped, whole
from coordinator.controller.standing import energy_notes, standing

NAME = "profiled"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp")
NEEDS: tuple[Need, ...] = ("seconds", "joules")

SECONDS, JOULES = "profile seconds", "profile joules"  # carry: board -> per sample, from its first reading


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Weights of the one split; time-only unless given."""

    w_e: float = 0.0
    w_t: float | None = None

    def __post_init__(self) -> None:
        Weights.of(self.w_e, self.w_t)


def allocate(pool: Pool, options: Options) -> Allocation:
    """Split by the profile; changes only when boards come or go."""
    now = standing(pool)
    check(now.boards, now.budget, now.floors, now.caps)
    seconds, joules = dict(pool.carry.get(SECONDS, {})), dict(pool.carry.get(JOULES, {}))
    for board, tau, eps in zip(now.boards, now.seconds, now.joules, strict=True):
        if tau is not None and board not in seconds:
            seconds[board] = tau
            if eps is not None:
                joules[board] = eps
    weights = Weights.of(options.w_e, options.w_t)
    costs = combined(
        [seconds.get(board) for board in now.boards], [joules.get(board) for board in now.boards], weights
    )
    wanted = whole(clamped(inverse(costs), now.budget, now.floors, now.caps), now.budget, now.caps)
    changed = wanted != now.previous
    measured = sum(cost is not None for cost in costs)
    if not measured:
        reason = "equal shares: the profiling round"
    else:
        reason = f"fixed split by the first reading of {measured} of {len(costs)} boards"
    return answer(
        now,
        wanted,
        wanted=wanted,
        changed=changed,
        reason=reason,
        costs=costs,
        notes=energy_notes(now.members) if weights.w_e > 0 and measured else (),
        carry={SECONDS: seconds, JOULES: joules},
    )
