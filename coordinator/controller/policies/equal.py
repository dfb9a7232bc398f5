"""The same share for every board in every round: what everything else is compared with."""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, equal
from coordinator.controller.standing import standing

NAME = "equal"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp", "asp")
NEEDS: tuple[Need, ...] = ()


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


def allocate(pool: Pool, options: Options) -> Allocation:
    """Largest-remainder split of the budget into m, as far as floors and caps allow."""
    now = standing(pool)
    check(now.boards, pool.budget, now.floors, now.caps)
    shares = equal(pool.budget, now.floors, now.caps)
    changed = shares != now.previous
    reason = "equal shares: the policy is equal" + ("" if changed else ", nothing to change")
    return answer(now, shares, wanted=shares, changed=changed, reason=reason)
