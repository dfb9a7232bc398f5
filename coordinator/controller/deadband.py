"""Whether new shares are applied or the old ones kept, with the reason in words (ALGORITHMS 1.4).

Applied when the largest relative change exceeds the deadband, when the old shares no longer fit the pool, or
once after `patience` rounds inside the deadband in which some board's error kept its sign.
"""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.controller import Carry

DRIFT = "drift"  # carry: board -> signed count of rounds inside the deadband with an error of one sign


class Settled(NamedTuple):
    """The shares to use, whether they are new ones, why, and what to remember."""

    shares: list[int]
    changed: bool
    reason: str
    carry: Carry


def misfit(
    boards: Sequence[str],
    previous: Sequence[int | None],
    budget: int,
    floors: Sequence[int],
    caps: Sequence[int],
) -> str | None:
    """Why the old shares cannot be kept, or None when they can."""
    total = 0
    for board, old, floor, cap in zip(boards, previous, floors, caps, strict=True):
        if old is None:
            return f"{board} had no share"
        if old < floor:
            return f"{board}'s {old} samples are below its floor of {floor}"
        if old > cap:
            return f"{board}'s {old} samples are above its cap of {cap}"
        total += old
    return None if total == budget else f"the old shares add up to {total}, not {budget}"


def settle(
    boards: Sequence[str],
    wanted: list[int],
    previous: Sequence[int | None],
    budget: int,
    floors: Sequence[int],
    caps: Sequence[int],
    carry: Carry,
    deadband: float,
    patience: int,
) -> Settled:
    """Deadband on shares: max |new - old| / old against `deadband`."""
    unfit = misfit(boards, previous, budget, floors, caps)
    if unfit is not None:
        return Settled(wanted, True, f"new shares: {unfit}", {})
    old = [n for n in previous if n is not None]
    largest, where = 0.0, 0
    for i, (new, was) in enumerate(zip(wanted, old, strict=True)):
        change = abs(new - was) / was if was else (float("inf") if new else 0.0)
        if change > largest:
            largest, where = change, i
    if largest == 0.0:
        return Settled(old, False, "the shares are as wanted", {})
    said = f"{boards[where]} {old[where]} -> {wanted[where]} ({100 * (wanted[where] - old[where]) / max(old[where], 1):+.1f} %)"
    if largest > deadband:
        return Settled(
            wanted, True, f"largest change {said} is above the deadband of {100 * deadband:g} %", {}
        )
    before = carry.get(DRIFT, {})
    drift: dict[str, float] = {}
    for board, new, was in zip(boards, wanted, old, strict=True):
        if new != was:
            sign = 1.0 if new > was else -1.0
            count = before.get(board, 0.0)
            drift[board] = count + sign if count * sign > 0 else sign
            if abs(drift[board]) >= patience:
                way = "too few" if sign > 0 else "too many"
                return Settled(
                    wanted,
                    True,
                    f"{board} had {way} samples for {patience} rounds inside the deadband: applied once",
                    {},
                )
    return Settled(
        old,
        False,
        f"largest change {said} is inside the deadband of {100 * deadband:g} %: shares kept",
        {DRIFT: drift},
    )
