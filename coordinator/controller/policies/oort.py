"""Oort-like selection: the K most useful boards share the budget equally, the others wait, for joules.

After the authors' code (utility, staleness bonus, system penalty), without its random draws and pacer: all
boards are covered once in the first rounds, then the K best scores are taken (ALGORITHMS 3.2, our variant).
"""

import math

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, equal
from coordinator.controller.standing import Standing, standing

NAME = "oort"
REGIMES: tuple[Regime, ...] = ("pma",)
NEEDS: tuple[Need, ...] = ("seconds", "losses")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """Share of boards taken, penalty exponent, percentile of durations, clipping quantile of utilities."""

    share: float = 0.7
    alpha: float = 2.0
    percentile: float = 50.0
    clip: float = 0.98

    def __post_init__(self) -> None:
        if not 0 < self.share <= 1:
            raise ValueError(f"share = {self.share}: it must be above 0 and at most 1")
        if not 0 <= self.percentile <= 100:
            raise ValueError(f"percentile = {self.percentile}: it must be between 0 and 100")
        if not 0 < self.clip <= 1:
            raise ValueError(f"clip = {self.clip}: it must be above 0 and at most 1")
        if not 0 <= self.alpha < float("inf"):
            raise ValueError(f"alpha = {self.alpha}: it must not be negative")


def allocate(pool: Pool, options: Options) -> Allocation:
    """Floors do not hold for boards left out; that is the policy."""
    now = standing(pool)
    check(now.boards, now.budget, [0] * len(now.boards), now.caps)
    m = len(now.boards)
    wanted_count = math.ceil(options.share * m)
    unseen = [
        i for i, member in enumerate(now.members) if member.memory is None or not member.memory.participations
    ]
    scores = _scores(pool, now, options, wanted_count)
    ranked = unseen + sorted(set(range(m)) - set(unseen), key=lambda i: (-scores[i], i))
    count = wanted_count
    while count < m and sum(now.caps[i] for i in ranked[:count]) < now.budget:
        count += 1
    chosen = sorted(ranked[:count])
    floors, caps = [now.floors[i] for i in chosen], [now.caps[i] for i in chosen]
    if sum(floors) > now.budget:
        floors = [0] * count
    shares = [0] * m
    for i, n in zip(chosen, equal(now.budget, floors, caps), strict=True):
        shares[i] = n
    notes = [_participations(now)]
    if count > wanted_count:
        notes.append(f"{count} boards instead of {wanted_count}: caps leave fewer no room for the budget")
    if all(member.memory is None or member.memory.loss_utility is None for member in now.members):
        notes.append("no board has reported losses: all are taken as equally useful")
    left_out = [board for board, n in zip(now.boards, shares, strict=True) if n == 0]
    reason = f"{count} of {m} boards share the budget equally"
    if unseen:
        reason += f", {min(len(unseen), count)} of them for the first time"
    if left_out:
        reason += f"; without samples: {', '.join(left_out[:6])}" + (" ..." if len(left_out) > 6 else "")
    return answer(now, shares, wanted=shares, changed=shares != now.previous, reason=reason, notes=notes)


def _scores(pool: Pool, now: Standing, options: Options, count: int) -> list[float]:
    """Clipped utility in [0, 1] + sqrt(0.1 ln R / L), times (T/t)^alpha where a board is slower than T."""
    memories = [member.memory for member in now.members]
    utilities = [memory.loss_utility if memory else None for memory in memories]
    told = sorted(u for u in utilities if u is not None)
    ceiling = _quantile(told, options.clip) if told else 1.0
    lowest = told[0] if told else 0.0
    span = ceiling - lowest
    durations = [None if tau is None else tau * now.budget / count for tau in now.seconds]
    timed = sorted(t for t in durations if t is not None)
    preferred = _quantile(timed, options.percentile / 100) if timed else 0.0
    scores = []
    for utility, memory, t in zip(utilities, memories, durations, strict=True):
        # A board without losses counts as the best one rather than as useless: it is tried, not starved.
        scaled = 1.0 if utility is None or span <= 0 else (min(utility, ceiling) - lowest) / span
        last = 1 if memory is None or memory.round is None else max(1, memory.round)
        score = scaled + math.sqrt(0.1 * math.log(max(1, pool.round)) / last)
        scores.append(score * (preferred / t) ** options.alpha if t is not None and t > preferred else score)
    return scores


def _quantile(ordered: list[float], q: float) -> float:
    """Nearest rank, which stays inside small fleets."""
    return ordered[min(len(ordered) - 1, max(0, math.ceil(q * len(ordered)) - 1))]


def _participations(now: Standing) -> str:
    counts = [member.memory.participations if member.memory else 0 for member in now.members]
    low, high = counts.index(min(counts)), counts.index(max(counts))
    least, most = f"{now.boards[low]} {counts[low]}", f"{now.boards[high]} {counts[high]}"
    return f"rounds taken part: {least} (least), {most} (most)"
