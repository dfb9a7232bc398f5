"""Batch sizes by a moving average of throughput: the step-level baseline, time only, without a deadband.

Inside a round the ranks follow the same rule every `every` steps (`edged.stepwise`); at round boundaries the
shares follow the same average (ALGORITHMS 3.4).
"""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.costs import inverse
from coordinator.controller.memories import average
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, clamped, whole
from coordinator.controller.standing import standing
from edged.groups import Stepwise

NAME = "ema-batch"
REGIMES: tuple[Regime, ...] = ("ddp",)
NEEDS: tuple[Need, ...] = ("seconds",)

SPEED, SEEN = "throughput", "throughput round"  # carry: samples per second; the round it was last fed from


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Weight of the newest throughput; steps between two adjustments inside a round."""

    beta: float = 0.3
    every: int = 20

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1:
            raise ValueError(f"beta = {self.beta}: it must be above 0 and at most 1")
        if self.every < 1:
            raise ValueError(f"every = {self.every}: it must be at least 1 step")


def stepwise(options: Options) -> Stepwise:
    """The rule that ranks follow within a round."""
    return Stepwise(NAME, options.every, options.beta)


def allocate(pool: Pool, options: Options) -> Allocation:
    """Shares in proportion to the average throughput; equal until there is one."""
    now = standing(pool)
    check(now.boards, now.budget, now.floors, now.caps)
    speed, seen = dict(pool.carry.get(SPEED, {})), dict(pool.carry.get(SEEN, {}))
    for member in now.members:
        memory = member.memory
        if memory is None or not memory.history or memory.round is None:
            continue
        if seen.get(member.board) != memory.round:
            samples, seconds, _ = memory.history[-1]
            speed[member.board] = average(speed.get(member.board), samples / seconds, options.beta)
            seen[member.board] = float(memory.round)
    costs = [1 / speed[board] if board in speed else None for board in now.boards]
    wanted = whole(clamped(inverse(costs), now.budget, now.floors, now.caps), now.budget, now.caps)
    reason = "shares by average throughput" if any(costs) else "equal shares: no throughput yet"
    return answer(
        now,
        wanted,
        wanted=wanted,
        changed=wanted != now.previous,
        reason=reason,
        carry={SPEED: speed, SEEN: seen},
    )
