"""A recorded run under another policy: each round's own costs, other shares. Pure.

In each round a board's seconds and joules per sample are those that it really had in that round; a board
that returned nothing then returns nothing here. What no reading tells (a share far from the recorded one) is
marked extrapolated.
"""

from collections.abc import Mapping
from typing import Any, Final

from msgspec import Struct

from coordinator.allocation import controlled
from coordinator.beliefs import Belief, beliefs
from coordinator.comparison import Recorded, Row
from coordinator.controller import Weights
from coordinator.simulator.loop import Lived, Spent, Work, live
from coordinator.situation import joules_of, label_of, link_of, situation

RANGE: Final = (0.5, 2.0)
"""Shares within these times the recorded one are taken as known."""


class Round(Struct, frozen=True):
    """One round as it was and as it would have been. Joules are the whole fleet's, waiting included."""

    round: int
    recorded_makespan_seconds: float | None
    makespan_seconds: float
    recorded_joules: float | None
    joules: float | None
    recorded_shares: dict[str, int]
    shares: dict[str, int]
    extrapolated: tuple[str, ...]
    reason: str


class Replay(Struct, frozen=True):
    """All rounds, and the sums over those in which both figures are known."""

    run: str
    policy: str
    recorded_policy: str
    rounds: tuple[Round, ...]
    recorded_seconds: float
    seconds: float
    recorded_joules: float | None
    joules: float | None
    basis: str
    notes: tuple[str, ...] = ()


class Told:
    """The recorded costs, round by round."""

    def __init__(self, run: Recorded, believed: Mapping[str, Belief]) -> None:
        self._rows = {
            (row["round"], row["board"]): row
            for row in run.boards
            if row["status"] == "accepted" and row["seconds"]
        }
        self._parts = {(row["round"], row["board"]): row["parts"] for row in run.closed}
        self._beliefs = believed

    def spend(self, round: int, board: str, samples: int, at_seconds: float) -> Spent | None:
        """See Costs."""
        belief, row = self._beliefs.get(board), self._rows.get((round, board))
        if belief is None or (samples and row is None):
            return None
        parts = self._parts.get((round, board))
        waiting = belief.waiting_watts
        if parts is not None and parts["wait"]["joules"] is not None and parts["wait"]["seconds"] >= 1.0:
            waiting = parts["wait"]["joules"] / parts["wait"]["seconds"]
        if not samples or row is None:
            return Spent(0.0, None, waiting)
        seconds = self._seconds(row, belief, samples)
        watts = None if row["joules"] is None else row["joules"] / row["seconds"]
        link = belief.link_seconds
        link_watts = belief.link_watts
        if parts is not None:
            link, joules = link_of(parts)
            if link > 0 and joules is not None:
                link_watts = joules / link
        return Spent(seconds, watts, waiting, link, link_watts)

    def _seconds(self, row: Row, belief: Belief, samples: int) -> float:
        # A fixed part stays what it is, the rest goes with the samples; both were as slow as this round was.
        line = belief.line
        now, then = (line.fixed_seconds + line.seconds_per_sample * n for n in (samples, row["samples"]))
        return float(row["seconds"] * now / then)


def replay(run: Recorded, policy: str, options: dict[str, Any], weights: Weights) -> Replay:
    """Raises UntoldError for a run without readings, ValueError for a policy that is not one."""
    where = situation(run)
    control = controlled(policy, options, weights, where.regime, where.settings.fixed_cost)
    control.idle_watts = dict(where.idle_watts)
    believed = {belief.board: belief for belief in beliefs(where.evidence)}
    rounds = {row["round"]: row for row in run.rounds}
    members = {
        number: tuple(board for board in sorted(row["shares"]) if board in believed)
        for number, row in rounds.items()
    }
    work = Work(where.budget, where.batch, where.window)
    closed: dict[int, list[Row]] = {}
    for row in run.closed:
        closed.setdefault(row["round"], []).append(row)
    found = tuple(
        _round(rounds[lived.round], lived, closed.get(lived.round, []))
        for lived in live(control, members, work, Told(run, believed))
    )
    spans = [r for r in found if r.recorded_makespan_seconds is not None]
    metered = [r for r in found if r.joules is not None and r.recorded_joules is not None]
    notes = list(where.notes)
    if len(metered) < len(found):
        notes.append(f"joules are known of {len(metered)} of {len(found)} rounds; their sums are over those")
    guessed = sorted(b.board for b in believed.values() if not b.waiting_told and b.active_watts is not None)
    if guessed:
        notes.append(f"never seen waiting, taken by the other boards' ratio: {', '.join(guessed)}")
    return Replay(
        run.name,
        label_of(policy, options, weights.w_e),
        where.present.label,
        found,
        sum(r.recorded_makespan_seconds or 0.0 for r in spans),
        sum(r.makespan_seconds for r in spans),
        sum(r.recorded_joules or 0.0 for r in metered) if metered else None,
        sum(r.joules or 0.0 for r in metered) if metered else None,
        " and ".join(sorted({row["basis"] for row in run.closed if row["basis"]})),
        tuple(notes),
    )


def _round(row: Row, lived: Lived, closed: list[Row]) -> Round:
    shares: dict[str, int] = row["shares"]
    low, high = RANGE
    outside = tuple(
        board for board, n in lived.shares.items() if not low * shares[board] <= n <= high * shares[board]
    )
    whole = len(closed) == len(shares)
    return Round(
        lived.round,
        row["makespan_seconds"],
        lived.makespan_seconds,
        joules_of(closed) if whole else None,
        lived.joules,
        shares,
        lived.shares,
        outside,
        lived.reason,
    )


def saving(found: Replay) -> tuple[float | None, float | None]:
    """Relative change of (seconds, joules); None where it is not known."""
    seconds = found.seconds / found.recorded_seconds - 1 if found.recorded_seconds else None
    if not found.recorded_joules or found.joules is None:
        return seconds, None
    return seconds, found.joules / found.recorded_joules - 1
