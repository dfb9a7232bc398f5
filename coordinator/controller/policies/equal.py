"""The same share for every board in every round: what everything else is compared with."""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.predictions import predict
from coordinator.controller.split import check, equal
from coordinator.controller.standing import standing

NAME = "equal"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp")
NEEDS: tuple[Need, ...] = ()


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


def allocate(pool: Pool, options: Options) -> Allocation:
    """Largest-remainder split of the budget into m, as far as floors and caps allow."""
    now = standing(pool)
    check(now.boards, pool.budget, now.floors, now.caps)
    shares = equal(pool.budget, now.floors, now.caps)
    changed = shares != [member.previous for member in now.members]
    expected = predict(now.members, shares, now.joules)
    named = dict(zip(now.boards, shares, strict=True))
    return Allocation(
        shares=named,
        changed=changed,
        reason="equal shares: the policy is equal" + ("" if changed else ", nothing to change"),
        wanted=named,
        predicted_seconds=expected.seconds,
        predicted_joules=expected.joules,
        predicted_wait_joules=expected.wait_joules,
        left=now.left,
        notes=tuple(now.notes),
    )
