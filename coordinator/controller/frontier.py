"""Joules against makespan: the least joules for a round of T seconds, and the T that needs the fewest.

E(n, T) = sum d_i n_i + W T + constant with t_i = a_i + tau_i n_i <= T (ALGORITHMS 7.1, 7.2): for fixed T a
fractional knapsack in ascending d_i, convex and piecewise linear in T. Shares are real-valued here. The
mathematics is that of divisible loads with working and waiting power (Agrawal and Rao) and not new.
"""

from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
Points = tuple[tuple[float, float], ...]  # (seconds, joules)

TIE = 1e-12  # relative difference of joules below which the shorter round is taken


@dataclass(frozen=True, slots=True)
class Fleet:
    """What a round costs on each board; every board is charged its fixed part, with samples or without."""

    budget: float
    seconds: Floats  # tau, per sample
    joules: Floats  # epsilon, per sample
    waiting_watts: Floats
    floors: Floats
    caps: Floats
    fixed_seconds: Floats
    fixed_joules: Floats

    @property
    def dynamic(self) -> Floats:
        """Joules per sample over waiting instead: d = tau (Pa - Pw); may be negative under noise."""
        return np.asarray(self.joules - self.waiting_watts * self.seconds)

    def times(self, n: Floats) -> Floats:
        """Seconds of computing on each board."""
        return np.asarray(self.fixed_seconds + self.seconds * n)

    def energy(self, n: Floats, seconds: float) -> float:
        """Joules of computing and of waiting until `seconds`."""
        fixed = float((self.fixed_joules - self.waiting_watts * self.fixed_seconds).sum())
        return float(self.dynamic @ n + self.waiting_watts.sum() * seconds) + fixed


@dataclass(frozen=True, slots=True)
class Plan:
    """Shares in the order of the fleet, with the makespan they are planned for and their joules."""

    n: Floats
    seconds: float
    joules: float


class Frontier:
    """All columns sorted once by ascending d; bounds must have passed `split.check`."""

    def __init__(self, fleet: Fleet) -> None:
        order = np.argsort(fleet.dynamic, kind="stable")
        self._order = order
        self._d = fleet.dynamic[order]
        self._speed = 1 / fleet.seconds[order]
        self._lo, self._hi = fleet.floors[order], fleet.caps[order]
        self._a = fleet.fixed_seconds[order]
        self._watts = float(fleet.waiting_watts.sum())
        self._budget = fleet.budget
        self._spare = fleet.budget - float(fleet.floors.sum())
        self._base = fleet.energy(np.zeros_like(self._d), 0.0)
        self._full = self._a + self._hi / self._speed  # when a board meets its cap
        self.fastest = self._plan(self._fastest())

    def within(self, seconds: float) -> Plan:
        """The fewest joules for a round of that length, which must not be below `fastest.seconds`."""
        return self._plan(seconds)

    def cheapest(self, slack: float | None = None) -> Plan:
        """The fewest joules of all; with `slack` >= 1 among the rounds of at most slack times the fastest."""
        seconds = self._cheapest()
        return self._plan(seconds if slack is None else min(seconds, slack * self.fastest.seconds))

    def soonest(self, joules: float) -> Plan | None:
        """The shortest round of at most that many joules; None where no split is that cheap.

        Newton from the left: a tangent of a convex function lies below it, so no step goes too far, and each
        ends on another of finitely many pieces.
        """
        seconds = self.fastest.seconds
        while True:
            n = self._fill(seconds)
            over = self._energy(n, seconds) - joules
            slope = self._slope(n, seconds)
            if over <= TIE * abs(joules):
                return self._plan(seconds)
            if slope >= 0:
                return None
            ahead = seconds - over / slope
            if ahead <= seconds:
                return self._plan(seconds)
            seconds = ahead

    def front(self) -> Points:
        """Corners of the Pareto front from the fastest round to the cheapest; straight lines between them."""
        start, end = self.fastest.seconds, self._cheapest()
        bends = [start, *self._bends(start, end), end]
        found = set(bends)
        for left, right in pairwise(bends):
            seconds, _ = self._prefixes(left, right)
            found |= set(seconds[(seconds > left) & (seconds < right)].tolist())
        return tuple((seconds, self._joules(seconds)) for seconds in sorted(found))

    def _plan(self, seconds: float) -> Plan:
        ordered = self._fill(seconds)
        n = np.empty_like(ordered)
        n[self._order] = ordered
        return Plan(n, seconds, self._energy(ordered, seconds))

    def _fill(self, seconds: float) -> Floats:
        """Floors first, then by ascending d up to what T allows."""
        room = np.maximum(np.minimum(self._hi, (seconds - self._a) * self._speed) - self._lo, 0.0)
        used = np.cumsum(room)
        return np.asarray(self._lo + np.clip(self._spare - (used - room), 0.0, room))

    def _energy(self, ordered: Floats, seconds: float) -> float:
        return float(self._d @ ordered) + self._watts * seconds + self._base

    def _joules(self, seconds: float) -> float:
        return self._energy(self._fill(seconds), seconds)

    def _fastest(self) -> float:
        """Where the boards' capacities by T add up to the budget, and at least the time of every floor.

        Capacity over T bends where a board starts to work and where it meets its cap.
        """
        bends = np.concatenate([self._a, self._full])
        order = np.argsort(bends, kind="stable")
        bends = bends[order]
        slopes = np.cumsum(np.concatenate([self._speed, -self._speed])[order])
        spent = np.concatenate([[0.0], np.cumsum(slopes[:-1] * np.diff(bends))])
        k = max(int(np.searchsorted(spent, self._budget, side="left")) - 1, 0)
        missing = self._budget - spent[k]
        seconds = float(bends[k] + (missing / slopes[k] if slopes[k] > 0 else 0.0))
        return max(seconds, float((self._a + self._lo / self._speed).max()))

    def _bends(self, start: float, end: float) -> list[float]:
        """Where boards meet caps that bind, strictly between."""
        met = self._full[(self._hi < self._budget) & (self._full > start) & (self._full < end)]
        return [float(seconds) for seconds in np.unique(met)]

    def _cheapest(self) -> float:
        """E is convex, so only the pieces beside its best bend are opened; ties to the shorter round."""
        start = self.fastest.seconds
        bends = [start, *self._bends(start, float("inf"))]
        low, high = 0, len(bends) - 1
        while low < high:
            middle = (low + high) // 2
            if self._slope(self._fill(bends[middle]), bends[middle]) >= 0:
                high = middle
            else:
                low = middle + 1
        best, least = start, self.fastest.joules
        candidates = [bends[low]]
        for piece in (low - 1, low):
            if piece >= 0:
                end = bends[piece + 1] if piece + 1 < len(bends) else float("inf")
                saturated, joules = self._prefixes(bends[piece], end)
                if not np.isnan(joules).all():
                    candidates.append(float(saturated[np.nanargmin(joules)]))
        for seconds in candidates:
            reached = self._joules(seconds)
            if reached < least - TIE * abs(least):
                best, least = seconds, reached
        return best

    def _prefixes(self, start: float, end: float) -> tuple[Floats, Floats]:
        """T_k of every prefix k in ascending d that is saturated at T_k, and its joules; NaN outside.

        Between two bends the boards at their caps are the same ones, hence sums instead of a search.
        """
        met = self._full <= start
        speed = np.where(met, 0.0, self._speed)
        flat = np.where(met, self._hi, -self._a * speed)
        after = self._lo.sum() - np.cumsum(self._lo)
        with np.errstate(divide="ignore", invalid="ignore"):
            seconds = (self._budget - after - np.cumsum(flat)) / np.cumsum(speed)
            seconds = np.where((seconds >= start) & (seconds <= end) & (seconds < np.inf), seconds, np.nan)
        floors = self._d * self._lo
        joules = np.cumsum(self._d * flat) + (floors.sum() - np.cumsum(floors)) + self._base
        return seconds, joules + (np.cumsum(self._d * speed) + self._watts) * seconds

    def _slope(self, n: Floats, seconds: float) -> float:
        """dE/dT to the right: boards held back by T gain samples, the dearest above its floor loses them."""
        above = np.flatnonzero(n > self._lo + 1e-9 * (1 + self._lo))
        if not above.size:
            return self._watts
        last = int(above[-1])
        held = (np.arange(len(n)) < last) & ((seconds - self._a) * self._speed < self._hi * (1 - 1e-12))
        return self._watts + float(((self._d - self._d[last]) * self._speed)[held].sum())
