"""OmniLearn: a static split by given resources, then proportional control on smoothed compute times.

The control in its multiplicative form, which keeps the global batch: b_k = B X_k / sum X with X_k = b_k / t_k
(ALGORITHMS 2.2). Smoothing starts anew at each change; a board whose throughput fell each time that its
share was raised gets the earlier share as its ceiling (`edged.ceilings`). What is no noise is our choice.
"""

from dataclasses import replace
from typing import Literal

from msgspec import Struct

from coordinator.controller import Allocation, Carry, Need, Pool, Regime
from coordinator.controller.costs import inverse
from coordinator.controller.deadband import judge, words
from coordinator.controller.memories import average
from coordinator.controller.policies._answer import answer
from coordinator.controller.split import check, clamped, whole
from coordinator.controller.standing import Standing, standing
from edged import ceilings
from edged.ceilings import Ceilings
from edged.groups import Stepwise

NAME = "omnilearn"
REGIMES: tuple[Regime, ...] = ("ddp", "asp")
NEEDS: tuple[Need, ...] = ("seconds", "resources")

TIME, SEEN = "smoothed time", "smoothed round"  # per sample, since the last change; round last fed from
CEILING = ceilings.CEILING
NEVER = 10**9  # patience: this policy has none


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`lower`, `upper` bound every share in samples of a round. A loss of throughput above `fall`, three
    times after a raise, sets a ceiling; larger is tried again after twenty adjustments.

    With synchronous gradients ranks follow the same rule within a round, every `every` steps (0: only at the
    ends of rounds), as the paper's BSP does.
    """

    mode: Literal["dynamic", "static"] = "dynamic"
    start: Literal["equal", "resources"] = "equal"
    deadband: float = 0.05
    beta: float = 0.5
    lower: int | None = None
    upper: int | None = None
    learn_ceilings: bool = True
    fall: float = 0.10
    every: int = 20

    def __post_init__(self) -> None:
        if self.every < 0:
            raise ValueError(f"every = {self.every}: it must be at least 0 steps")
        if not (0 <= self.deadband < 1 and 0 <= self.fall < 1 and 0 < self.beta <= 1):
            raise ValueError("deadband and fall must be at least 0 and below 1, beta above 0 and at most 1")
        for name, value, least in (("lower", self.lower, 0), ("upper", self.upper, 1)):
            if value is not None and value < least:
                raise ValueError(f"{name} = {value}: it must be at least {least} samples of a round")
        if self.lower is not None and self.upper is not None and self.lower > self.upper:
            raise ValueError(f"lower = {self.lower} and upper = {self.upper} leave no share between them")


def stepwise(options: Options) -> Stepwise | None:
    """The rule that ranks follow within a round."""
    if options.mode == "static" or not options.every:
        return None
    fall = options.fall if options.learn_ceilings else None
    return Stepwise(
        NAME, options.every, options.beta, options.deadband, options.lower or 0, options.upper, fall
    )


def allocate(pool: Pool, options: Options) -> Allocation:
    """Order of the steps as in the paper: smoothed times, new sizes, bounds, deadband."""
    now = standing(pool)
    now = replace(
        now,
        floors=[max(n, options.lower or 0) for n in now.floors],
        caps=[n if options.upper is None else min(n, options.upper) for n in now.caps],
    )
    check(now.boards, now.budget, now.floors, now.caps)
    carry, heard = _smoothed(pool, now, options.beta)
    learnt = Ceilings(options.fall, pool.carry)
    notes: list[str] = []
    by_resources = options.mode == "static" or (options.start == "resources" and not carry[TIME])
    speeds = {board: 1 / t for board, t in carry[TIME].items()}
    if by_resources:
        costs, said = _by_resources(now, notes)
    else:
        costs = [carry[TIME].get(board) for board in now.boards]
        said = "by smoothed compute time" if any(costs) else "equal shares: no times yet"
        if options.learn_ceilings:
            now = replace(now, caps=_learnt(now, learnt, {b: speeds[b] for b in heard}, notes))
    wanted = whole(clamped(inverse(costs), now.budget, now.floors, now.caps), now.budget, now.caps)
    verdict = judge(now, wanted, {}, options.deadband, NEVER)
    if verdict.applies:
        learnt.changed(_shares(now), speeds)
        carry[TIME] = {}
    return answer(
        now,
        wanted if verdict.applies else [n or 0 for n in now.previous],
        wanted=wanted,
        changed=verdict.applies,
        reason=f"{said}; {words(verdict, now, wanted, options.deadband, NEVER)}",
        costs=costs,
        notes=notes,
        carry=carry | learnt.state,
    )


def _shares(now: Standing) -> dict[str, float]:
    return {b: float(n) for b, n in zip(now.boards, now.previous, strict=True) if n}


def _smoothed(pool: Pool, now: Standing, beta: float) -> tuple[Carry, list[str]]:
    """Seconds per sample averaged since the last change, and whose: a reading counts once."""
    time, seen = dict(pool.carry.get(TIME, {})), dict(pool.carry.get(SEEN, {}))
    heard = []
    for member in now.members:
        memory = member.memory
        if memory is None or memory.round is None or not memory.history:
            continue
        if seen.get(member.board) != memory.round:
            samples, seconds, _ = memory.history[-1]
            # What ranks changed among themselves on the way is a change, too.
            before = time.get(member.board) if pool.since_change else None
            time[member.board] = average(before, seconds / samples, beta)
            seen[member.board] = float(memory.round)
            heard.append(member.board)
    return {TIME: time, SEEN: seen}, heard


def _by_resources(now: Standing, notes: list[str]) -> tuple[list[float | None], str]:
    resources = [member.resource for member in now.members]
    missing = [board for board, value in zip(now.boards, resources, strict=True) if not value]
    if len(missing) == len(now.boards):
        notes.append("no board's resources are given (cores or FLOP/s): equal instead of proportional")
    elif missing:
        notes.append(f"without given resources, taken as average: {', '.join(missing)}")
    return [1 / value if value else None for value in resources], "static, in proportion to given resources"


def _learnt(now: Standing, learnt: Ceilings, heard: dict[str, float], notes: list[str]) -> list[int]:
    """Caps lowered where raised shares lowered the throughput, as far as the budget allows."""
    if heard:
        notes += learnt.hear(_shares(now), heard)
    bounds = now.boards, now.caps, now.floors, now.budget
    if learnt.ignored(*bounds):
        notes.append("learnt ceilings leave no room for the budget and are ignored")
    return learnt.caps(*bounds)
