"""What other settings would cost a fleet, from its own readings: seconds and joules with 90 % intervals.

Pure: the seed comes in. Fleets that could have given the readings are drawn (`beliefs`), and each setting
runs on each of them in closed loop (`simulator.loop`, the virtual world without its messages), going on from
the present shares. A figure is the median over the fleets, its interval holds 90 % of them.
"""

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Final

import numpy as np
from msgspec import Struct

from coordinator import allocation
from coordinator.alternatives import Setting, alternatives
from coordinator.beliefs import Belief, beliefs, draw, expected
from coordinator.controller import InfeasibleError, Weights
from coordinator.controller.frontier import Fleet, Frontier
from coordinator.controller.threshold import threshold, time_only_is_cheapest
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.loop import Lived, Virtual, Work, live
from coordinator.situation import Present, Situation

DRAWS: Final = 60
ROUNDS: Final = 8
"""Rounds that a setting runs; the first one, which still has other shares, does not count."""
COVERAGE: Final = 0.90
RANGE: Final = (0.5, 2.0)
"""Shares within these times those observed are taken as known, others as extrapolated."""
TENTH: Final = 1.105
"""A tenth longer, with room for what noise adds."""
SURE: Final = 0.9
"""Share of the drawn fleets that makes a verdict on a board."""


class Range(Struct, frozen=True):
    """Median and the interval that holds 90 % of the drawn fleets."""

    low: float
    middle: float
    high: float


class Prediction(Struct, frozen=True):
    """One setting, per round. Changes are relative to the present setting on the same fleet."""

    setting: Setting
    makespan_seconds: Range
    joules: Range | None
    makespan_change: Range
    joules_change: Range | None
    shares: dict[str, int]
    extrapolated: tuple[str, ...]
    """Boards whose share would lie outside 0.5 to 2 times those observed."""


class BoardWorth(Struct, frozen=True):
    """Whether the fleet's joules gain by a board's samples: they do where its joules per sample over waiting
    are below `limit`, the fleet's best joules per sample (ALGORITHMS 7.3)."""

    board: str
    dynamic_joules_per_sample: Range
    works: float
    """Share of the drawn fleets in which it should work."""


class Advice(Struct, frozen=True):
    """All that can be told. Joules are None throughout where `lacks` says why."""

    run: str
    present: Present
    predictions: tuple[Prediction, ...]
    """The present setting first."""
    best: int | None
    """Index of the setting to change to; None: stay."""
    front: tuple[tuple[float, float], ...]
    time_only_is_cheapest: float | None
    limit_joules_per_sample: Range | None
    boards: tuple[BoardWorth, ...]
    draws: int
    seed: int
    basis: str
    lacks: str = ""
    notes: tuple[str, ...] = ()


def advise(
    where: Situation,
    *,
    draws: int = DRAWS,
    seed: int = 1,
    settings: Sequence[Setting] | None = None,
    told: Callable[[int, int], None] = lambda done, of: None,
) -> Advice:
    """The advice; `told` hears how many of the fleets are done. Raises ValueError for what is infeasible."""
    believed = beliefs(where.evidence)
    lacks = _lacks(believed)
    wanted = tuple(alternatives(where, not lacks) if settings is None else settings)
    generator = np.random.default_rng(seed)
    seconds: list[list[float]] = [[] for _ in wanted]
    joules: list[list[float | None]] = [[] for _ in wanted]
    fleets: list[Fleet] = []
    for number in range(draws):
        boards = tuple(draw(belief, generator) for belief in believed)
        if not lacks:
            fleets.append(_fleet(where, boards))
        streams = int(generator.integers(1 << 62))
        for index, setting in enumerate(wanted):
            lived = play(where, setting, boards, streams)
            seconds[index].append(median(r.makespan_seconds for r in lived))
            joules[index].append(_mean([r.joules for r in lived]))
        told(number + 1, draws)
    likely = tuple(expected(belief) for belief in believed)
    predictions = tuple(
        _prediction(
            setting,
            play(where, setting, likely, seed)[-1].shares,
            believed,
            (seconds[i], seconds[0]),
            (joules[i], joules[0]),
        )
        for i, setting in enumerate(wanted)
    )
    worth, limit, cheapest = _worth(believed, fleets)
    return Advice(
        where.run,
        where.present,
        predictions,
        _best(predictions),
        () if lacks else Frontier(_fleet(where, likely)).front(),
        cheapest,
        limit,
        worth,
        draws,
        seed,
        " and ".join(sorted({belief.basis for belief in believed if belief.basis})),
        lacks,
        (*where.notes, *_notes(where, believed, predictions[0])),
    )


def play(where: Situation, setting: Setting, boards: Sequence[VirtualBoard], seed: int) -> list[Lived]:
    """The setting's next rounds on these boards, from present shares and memories on; the first left out."""
    weights = Weights.of(setting.w_e, setting.w_t)
    control = allocation.controlled(
        setting.policy, setting.options, weights, where.regime, where.settings.fixed_cost
    )
    control.memories, control.shares = dict(where.memories), dict(where.shares)
    control.idle_watts = dict(where.idle_watts)
    control.resources = {board.id: board.cores for board in boards if board.cores}
    if (setting.policy, setting.options) == (where.policy, where.options):
        control.carry = where.carry
    first = 1 + max((m.round or 0 for m in where.memories.values()), default=0)
    ids = tuple(board.id for board in boards)
    members = {first + number: ids for number in range(ROUNDS)}
    work = Work(where.budget, where.batch, where.window)
    return list(live(control, members, work, Virtual(boards, seed)))[1:]


def quantiles(values: Sequence[float]) -> Range:
    """Median, and an interval that a further value lies in with 90 % probability."""
    ordered, n = sorted(values), len(values)

    def at(share: float) -> float:
        place = min(max(share * (n + 1) - 1, 0.0), n - 1.0)
        low = int(place)
        high = min(low + 1, n - 1)
        return ordered[low] + (place - low) * (ordered[high] - ordered[low])

    edge = (1 - COVERAGE) / 2
    return Range(at(edge), at(0.5), at(1 - edge))


def _prediction(
    setting: Setting,
    shares: dict[str, int],
    believed: Sequence[Belief],
    seconds: tuple[list[float], list[float]],
    joules: tuple[list[float | None], list[float | None]],
) -> Prediction:
    own = [value for value in joules[0] if value is not None]
    base = [value for value in joules[1] if value is not None]
    known = len(own) == len(joules[0]) and len(base) == len(joules[1])
    low, high = RANGE
    outside = tuple(
        b.board for b in believed if not low * b.least_share <= shares.get(b.board, 0) <= high * b.most_share
    )
    return Prediction(
        setting,
        quantiles(seconds[0]),
        quantiles(own) if known else None,
        quantiles([a / b - 1 for a, b in zip(*seconds, strict=True)]),
        quantiles([a / b - 1 for a, b in zip(own, base, strict=True)]) if known else None,
        shares,
        outside,
    )


def _best(predictions: Sequence[Prediction]) -> int | None:
    """The cheapest of those that surely save joules and take at most a tenth longer than the present setting
    and than the fastest one; else the fastest that surely is faster and not dearer."""
    fastest = min(p.makespan_seconds.middle for p in predictions)

    def saves(p: Prediction) -> bool:
        change = p.joules_change
        near = p.makespan_seconds.middle <= TENTH * fastest and p.makespan_change.middle <= TENTH - 1
        return near and change is not None and change.high < 0

    def hastens(p: Prediction) -> bool:
        change = p.joules_change
        return p.makespan_change.high < -0.01 and (change is None or change.middle <= 0)

    others = range(1, len(predictions))
    saving = [i for i in others if saves(predictions[i])]
    if saving:
        return min(saving, key=lambda i: _middle(predictions[i].joules_change))
    faster = [i for i in others if hastens(predictions[i])]
    return min(faster, key=lambda i: predictions[i].makespan_change.middle) if faster else None


def _middle(found: Range | None) -> float:
    return 0.0 if found is None else found.middle


def _worth(
    believed: Sequence[Belief], fleets: Sequence[Fleet]
) -> tuple[tuple[BoardWorth, ...], Range | None, float | None]:
    if not fleets:
        return (), None, None
    limits = [threshold(fleet) for fleet in fleets]
    working = np.mean([limit.working for limit in limits], axis=0)
    dynamic = np.array([fleet.dynamic for fleet in fleets])
    worth = tuple(
        BoardWorth(belief.board, quantiles(dynamic[:, i].tolist()), float(working[i]))
        for i, belief in enumerate(believed)
    )
    cheapest = fmean(float(time_only_is_cheapest(fleet)) for fleet in fleets)
    return worth, quantiles([limit.joules_per_sample for limit in limits]), cheapest


def _fleet(where: Situation, boards: Sequence[VirtualBoard]) -> Fleet:
    tau = np.array([1 / b.samples_per_second for b in boards])
    active = np.array([float(b.active_watts) for b in boards])
    fixed = np.array([float(b.fixed_seconds) for b in boards])
    floor = allocation.floor_of(where.regime, where.budget, len(boards), where.batch)
    if floor * len(boards) > where.budget:
        raise InfeasibleError(f"floors of {floor} samples do not fit into {where.budget}")
    return Fleet(
        float(where.budget),
        tau,
        tau * active,
        np.array([float(b.waiting_watts) for b in boards]),
        np.full(len(boards), float(floor)),
        np.full(len(boards), float(where.budget)),
        fixed,
        fixed * active,
    )


def _lacks(believed: Sequence[Belief]) -> str:
    without = [belief.board for belief in believed if belief.active_watts is None]
    if not without:
        return ""
    who = "no board has" if len(without) == len(believed) else f"without: {', '.join(without)};"
    return f"{who} energy readings: only seconds can be told"


def _notes(where: Situation, believed: Sequence[Belief], present: Prediction) -> list[str]:
    notes = []
    guessed = [b.board for b in believed if not b.waiting_told and b.active_watts is not None]
    if guessed:
        notes.append(f"watts while waiting never seen, taken by ratio and so uncertain: {', '.join(guessed)}")
    bases = {b.basis for b in believed if b.basis}
    if len(bases) > 1:
        notes.append(f"joules of different basis in one fleet: {', '.join(sorted(bases))}")
    few = [b.board for b in believed if b.line.count < 3]
    if few:
        notes.append(f"fewer than three readings of {', '.join(few)}")
    for what, seen, range_ in (
        ("makespan", where.present.makespan_seconds, present.makespan_seconds),
        ("joules", where.present.joules, present.joules),
    ):
        if seen is not None and range_ is not None and not 0.9 * range_.low <= seen <= 1.1 * range_.high:
            notes.append(
                f"the readings explain the present {what} badly: observed {seen:.4g}, "
                f"predicted {range_.low:.4g} to {range_.high:.4g}; take the rest with care"
            )
    return notes


def _mean(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return fmean(known) if len(known) == len(values) else None
