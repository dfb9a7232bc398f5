"""Whether new shares are applied or the old ones kept, with the reason in words (ALGORITHMS 1.4).

Applied when the largest relative change exceeds the deadband, when the old shares no longer fit the pool, or
once after `patience` rounds inside the deadband in which some board's error kept its sign.
"""

from typing import Literal, NamedTuple

from coordinator.controller import Carry
from coordinator.controller.standing import Standing

DRIFT = "drift"  # carry: board -> signed count of rounds inside the deadband with an error of one sign

Kind = Literal["misfit", "same", "above", "patience", "inside"]


class Verdict(NamedTuple):
    """What was found, at which board; `drift` only where the shares are kept."""

    kind: Kind
    where: int = 0
    drift: dict[str, float] | None = None

    @property
    def applies(self) -> bool:
        """True where the new shares are to be used."""
        return self.kind in ("misfit", "above", "patience")


def misfit(now: Standing) -> str | None:
    """Why the old shares cannot be kept, or None when they can."""
    total = 0
    for board, old, floor, cap in zip(now.boards, now.previous, now.floors, now.caps, strict=True):
        if old is None:
            return f"{board} had no share"
        if old < floor:
            return f"{board}'s {old} samples are below its floor of {floor}"
        if old > cap:
            return f"{board}'s {old} samples are above its cap of {cap}"
        total += old
    return None if total == now.budget else f"the old shares add up to {total}, not {now.budget}"


def judge(now: Standing, wanted: list[int], carry: Carry, deadband: float, patience: int) -> Verdict:
    """Max |new - old| / old against `deadband`, then the signs of the errors against `patience`."""
    if misfit(now) is not None:
        return Verdict("misfit")
    old = [n for n in now.previous if n is not None]
    largest, where = 0.0, 0
    for i, (new, was) in enumerate(zip(wanted, old, strict=True)):
        change = abs(new - was) / was if was else (float("inf") if new else 0.0)
        if change > largest:
            largest, where = change, i
    if largest == 0.0:
        return Verdict("same")
    if largest > deadband:
        return Verdict("above", where)
    before = carry.get(DRIFT, {})
    drift: dict[str, float] = {}
    for i, (board, new, was) in enumerate(zip(now.boards, wanted, old, strict=True)):
        if new != was:
            sign = 1.0 if new > was else -1.0
            count = before.get(board, 0.0)
            drift[board] = count + sign if count * sign > 0 else sign
            if abs(drift[board]) >= patience:
                return Verdict("patience", i)
    return Verdict("inside", where, drift)


def words(verdict: Verdict, now: Standing, wanted: list[int], deadband: float, patience: int) -> str:
    """The verdict as a sentence for the decision log."""
    board, new = now.boards[verdict.where], wanted[verdict.where]
    old = now.previous[verdict.where] or 0
    change = f"{board} {old} -> {new}" + (f" ({100 * (new - old) / old:+.1f} %)" if old else "")
    if verdict.kind == "misfit":
        return f"new shares: {misfit(now)}"
    if verdict.kind == "same":
        return "the shares are as wanted"
    if verdict.kind == "above":
        return f"largest change {change} is above the deadband of {100 * deadband:g} %"
    if verdict.kind == "patience":
        way = "few" if new > old else "many"
        return f"too {way} samples for {patience} rounds inside the deadband: applied once ({change})"
    return f"largest change {change} is inside the deadband of {100 * deadband:g} %: shares kept"
