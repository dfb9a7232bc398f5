"""What min-energy and min-time share: a fleet of known costs, a deadband on the objective, a way out without.

Waiting watts and joules that no meter gave are imputed and said; where no board has any, shares go by time.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import msgspec
import numpy as np

from coordinator.controller import Allocation, Pool
from coordinator.controller.deadband import misfit
from coordinator.controller.frontier import Fleet, Frontier, Plan
from coordinator.controller.policies import adaptive
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, whole
from coordinator.controller.standing import Standing, energy_notes, standing

SHOWN = 6  # boards named in a reason before it says how many more


@dataclass(frozen=True, slots=True)
class Judged:
    """How good shares are: the objective to make small, and by how much they break the limit."""

    objective: float
    overrun: float


class UnknownCostsError(ValueError):
    """Too little is known for an energy policy; the text says what is missing."""


def allocate(
    pool: Pool,
    name: str,
    *,
    plan: Callable[[Frontier], tuple[Plan, str]],
    judge: Callable[[Frontier, float, float], Judged],
    deadband: float,
    tolerance: float,
) -> Allocation:
    """Plan, round, keep the old shares unless the objective gains more than `deadband`."""
    now = standing(pool)
    check(now.boards, now.budget, now.floors, now.caps)
    known = [i for i, tau in enumerate(now.seconds) if tau is not None]
    try:
        pinned = _pinned(now, known)
        fleet, notes = _fleet(now, known, pinned)
    except UnknownCostsError as error:
        found = adaptive.allocate(pool, adaptive.Options())
        said = f"{name} needs more than is known ({error}); until then shares go by time"
        return msgspec.structs.replace(found, notes=(*found.notes, said))
    frontier = Frontier(fleet)
    best, said = plan(frontier)
    wanted = list(pinned)
    caps = [now.caps[i] for i in known]
    for i, n in zip(known, whole(best.n.tolist(), int(fleet.budget), caps), strict=True):
        wanted[i] = n

    def judged(shares: Sequence[int]) -> Judged:
        n = np.array(shares, float)[known]
        seconds = float(fleet.times(n).max())
        return judge(frontier, seconds, fleet.energy(n, seconds))

    changed, why = _decided(now, wanted, judged, deadband, tolerance)
    if len(known) < len(now.boards):
        new = [board for board, tau in zip(now.boards, now.seconds, strict=True) if tau is None]
        notes = [*notes, f"not measured yet, N/m samples: {', '.join(new)}"]
    return answer(
        now,
        wanted if changed else [n or 0 for n in now.previous],
        wanted=wanted,
        changed=changed,
        reason=f"{said}; {_workers(now, wanted)}; {why}",
        notes=(*energy_notes(now.members), *notes),
    )


def _decided(
    now: Standing,
    wanted: list[int],
    judged: Callable[[Sequence[int]], Judged],
    deadband: float,
    tolerance: float,
) -> tuple[bool, str]:
    unfit = misfit(now)
    if unfit is not None:
        return True, f"new shares: {unfit}"
    kept = [n or 0 for n in now.previous]
    if kept == wanted:
        return False, "the shares are as wanted"
    old, new = judged(kept), judged(wanted)
    if old.overrun > tolerance + max(0.0, new.overrun):
        return True, f"the present shares break the limit by {100 * old.overrun:.1f} %"
    gain = (old.objective - new.objective) / old.objective
    said = f"a gain of {100 * gain:.1f} % over the present shares"
    if gain > deadband:
        return True, f"{said} is above the deadband of {100 * deadband:g} %"
    return False, f"{said} is inside the deadband of {100 * deadband:g} %: shares kept"


def _pinned(now: Standing, known: list[int]) -> list[int]:
    """Shares of boards without a reading: N/m within their bounds; 0 for the others."""
    if not known:
        raise UnknownCostsError("no board has reported yet")
    m, known_set = len(now.boards), set(known)
    pinned = [
        0 if i in known_set else min(max(now.budget // m, now.floors[i]), now.caps[i]) for i in range(m)
    ]
    left = now.budget - sum(pinned)
    if not sum(now.floors[i] for i in known) <= left <= sum(now.caps[i] for i in known) or left < 1:
        raise UnknownCostsError("boards without a reading leave the others no room")
    return pinned


def _fleet(now: Standing, known: list[int], pinned: list[int]) -> tuple[Fleet, list[str]]:
    def column(values: Sequence[float | None]) -> list[float | None]:
        return [values[i] for i in known]

    seconds = np.array(column(now.seconds), float)
    joules = np.array(column(now.joules), float)  # None becomes NaN
    waiting = np.array(column(now.waiting_watts), float)
    active = joules / seconds
    if np.isnan(active).all():
        raise UnknownCostsError("no board has joules or configured watts")
    active = np.where(np.isnan(active), np.nanmedian(active), active)
    ratios = waiting / (joules / seconds)
    if np.isnan(ratios).all():
        raise UnknownCostsError("no board has both joules and watts of waiting, measured or configured")
    notes = []
    missing = np.flatnonzero(np.isnan(waiting)).tolist()
    if missing:
        ratio = float(np.nanmedian(ratios))
        waiting = np.where(np.isnan(waiting), ratio * active, waiting)
        boards = ", ".join(now.boards[known[i]] for i in missing)
        notes.append(f"waiting watts taken as {ratio:.2f} x active, the pool's median: {boards}")
    return (
        Fleet(
            budget=float(now.budget - sum(pinned)),
            seconds=seconds,
            joules=active * seconds,
            waiting_watts=waiting,
            floors=np.array(column(now.floors), float),
            caps=np.array(column(now.caps), float),
            fixed_seconds=np.array(column(now.fixed_seconds), float),
            fixed_joules=np.array(column(now.fixed_joules), float),
        ),
        notes,
    )


def _workers(now: Standing, wanted: list[int]) -> str:
    """Who does the work, and how many stay at their floor."""
    working = [board for board, n, floor in zip(now.boards, wanted, now.floors, strict=True) if n > floor]
    named = ", ".join(working[:SHOWN]) + (f" and {len(working) - SHOWN} more" if len(working) > SHOWN else "")
    return f"{len(working)} of {len(now.boards)} boards above their floor: {named}"
