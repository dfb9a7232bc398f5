"""What the readings let one believe of each board: speed, watts, noise, each with its uncertainty.

Pure: random numbers come from the generator that is handed in. `draw` gives one fleet that fits the readings,
`expected` the most likely one. Noise is pooled over the boards, because few readings tell little of it.
"""

import math
from collections.abc import Sequence
from typing import Final

import numpy as np
from msgspec import Struct
from numpy.random import Generator
from numpy.typing import NDArray

from coordinator.controller.fit import SPREAD
from coordinator.simulator.boards import VirtualBoard
from coordinator.situation import Evidence

PRIOR_NOISE: Final = 0.05
"""Relative noise believed of a fleet where no board has two readings."""
PRIOR_COUNT: Final = 3
"""So many readings the pooled noise counts against a board's own."""
LEAST_NOISE: Final = 1e-6
UNKNOWN_RATIO: Final = 0.32
"""Waiting over active watts where no board of the fleet has waited long enough to tell: the geometric mean of
idle over full watts of the boards in edged/boards.toml."""
UNSEEN_FIXED: Final = 0.03
"""Of a board whose share never varied no fixed cost is known; about that part of its seconds may be one."""
RATIO_SPREAD: Final = 0.56
"""Standard deviation of the logarithm of that ratio between those boards."""

Floats = NDArray[np.float64]


class Line(Struct, frozen=True):
    """Seconds a + tau n, as weighted least squares give them; `covariance` per unit of squared noise.

    `through_zero` is tau with a = 0; its relative variance is 1 / count.
    """

    fixed_seconds: float
    seconds_per_sample: float
    covariance: tuple[float, float, float] | None
    through_zero: float
    count: int


class Belief(Struct, frozen=True):
    """One board. Noise is relative; `waiting_spread` is the standard deviation of its watts' logarithm."""

    board: str
    line: Line
    time_freedom: int
    time_noise: float
    active_watts: float | None
    watts_freedom: int
    watts_noise: float
    waiting_watts: float | None
    waiting_spread: float
    waiting_told: bool
    link_seconds: float
    link_watts: float | None
    meter_uncertainty: float
    basis: str | None
    least_share: int
    most_share: int
    cores: float | None = None


def beliefs(evidence: Sequence[Evidence]) -> tuple[Belief, ...]:
    """In the order given; every board has a reading at least."""
    lines = [_line(e) for e in evidence]
    scatters = [_scatter(e, line) for e, line in zip(evidence, lines, strict=True)]
    watts = [_watts(e) for e in evidence]
    time_pool, watts_pool = _pooled(scatters), _pooled([(square, n) for _, square, n in watts])
    told = [_waiting(e) for e in evidence]
    ratios = [
        math.log(w[0] / active)
        for w, (active, _, _) in zip(told, watts, strict=True)
        if w is not None and active and w[0] > 0
    ]
    usual = math.exp(sum(ratios) / len(ratios)) if ratios else UNKNOWN_RATIO
    ratio_spread = RATIO_SPREAD * math.sqrt(1 + 1 / len(ratios)) if ratios else RATIO_SPREAD
    found = []
    for e, line, scatter, (active, square, n), waited in zip(
        evidence, lines, scatters, watts, told, strict=True
    ):
        watts_noise = _shrunk(watts_pool, square, n)
        waiting = waited[0] if waited else None if active is None else usual * active
        windows = waited[1] if waited else 0
        links = sorted(seconds for seconds, _ in e.links)
        link_joules = [j / s for s, j in e.links if j is not None and s > 0]
        samples = [n for n, _, _ in e.readings]
        found.append(
            Belief(
                e.board,
                line,
                scatter[1] + PRIOR_COUNT,
                _shrunk(time_pool, *scatter),
                active,
                n + PRIOR_COUNT,
                watts_noise,
                waiting,
                max(watts_noise / math.sqrt(windows), 0.005) if windows else ratio_spread,
                waited is not None,
                links[len(links) // 2] if links else 0.0,
                float(np.median(link_joules)) if link_joules else None,
                e.relative_uncertainty or 0.0,
                e.basis,
                min(samples),
                max(samples),
                e.cores,
            )
        )
    return tuple(found)


def expected(belief: Belief) -> VirtualBoard:
    """The most likely board."""
    line = belief.line
    return _board(belief, line.fixed_seconds, line.seconds_per_sample, belief.time_noise, belief.watts_noise)


def draw(belief: Belief, random: Generator) -> VirtualBoard:
    """A board that could have given the readings."""
    noise = _noise(belief.time_noise, belief.time_freedom, random)
    watts_noise = _noise(belief.watts_noise, belief.watts_freedom, random)
    line = belief.line
    z: list[float] = random.standard_normal(5).tolist()
    fixed, tau = 0.0, line.through_zero * max(0.1, 1 + noise / math.sqrt(line.count) * z[0])
    if line.covariance is not None:
        aa, at, tt = line.covariance
        a = line.fixed_seconds + noise * math.sqrt(aa) * z[0]
        rest = math.sqrt(max(0.0, tt - at * at / aa))
        t = line.seconds_per_sample + noise * (at / math.sqrt(aa) * z[0] + rest * z[1])
        if a > 0 and t > 0:
            fixed, tau = a, t
    else:
        part = min(0.5, UNSEEN_FIXED * max(0.0, z[1]))
        fixed, tau = part * tau * belief.most_share, (1 - part) * tau
    count = max(1, belief.watts_freedom - PRIOR_COUNT + 1)
    board = _board(belief, fixed, tau, noise, watts_noise)
    if board.metered:
        # What the meter has wrong it has wrong all the time.
        meter = max(0.1, 1 + belief.meter_uncertainty * z[2])
        active = board.active_watts * max(0.1, 1 + watts_noise / math.sqrt(count) * z[3])
        waiting = min(board.waiting_watts * math.exp(belief.waiting_spread * z[4]), active)
        link = None if board.communication_watts is None else meter * board.communication_watts
        return VirtualBoard(
            board.id,
            board.samples_per_second,
            meter * active,
            meter * waiting,
            board.fixed_seconds,
            upload_seconds=board.upload_seconds,
            communication_watts=link,
            noise=board.noise,
            watts_noise=board.watts_noise,
            cores=board.cores,
        )
    return board


def _board(belief: Belief, fixed: float, tau: float, noise: float, watts_noise: float) -> VirtualBoard:
    metered = belief.active_watts is not None
    return VirtualBoard(
        belief.board,
        1 / tau,
        belief.active_watts or 0.0,
        belief.waiting_watts or 0.0,
        fixed,
        upload_seconds=belief.link_seconds,
        communication_watts=belief.link_watts if metered else None,
        noise=min(noise, 0.9),
        watts_noise=min(watts_noise, 0.9),
        metered=metered,
        cores=belief.cores,
    )


def _line(evidence: Evidence) -> Line:
    n = np.array([samples for samples, _, _ in evidence.readings], float)
    t = np.array([seconds for _, seconds, _ in evidence.readings], float)
    weight = 1 / t**2
    zero = float((weight * n * t).sum() / (weight * n * n).sum())
    if len(n) < 3 or n.max() <= SPREAD * n.min():
        return Line(0.0, zero, None, zero, len(n))
    design = np.stack([np.ones_like(n), n], axis=1)
    inverse = np.linalg.inv(design.T @ (weight[:, None] * design))
    fixed, tau = (inverse @ (design.T @ (weight * t))).tolist()
    covariance = (float(inverse[0, 0]), float(inverse[0, 1]), float(inverse[1, 1]))
    if fixed <= 0 or tau <= 0:
        # The most likely board has no fixed cost; a drawn one may have some.
        return Line(0.0, zero, covariance, zero, len(n))
    return Line(fixed, tau, covariance, zero, len(n))


def _scatter(evidence: Evidence, line: Line) -> tuple[float, int]:
    """Sum of squared relative residuals of the seconds, and its degrees of freedom."""
    a, tau = line.fixed_seconds, line.seconds_per_sample
    off = [seconds / (a + tau * n) - 1 for n, seconds, _ in evidence.readings]
    used = 1 if a == 0 else 2
    return sum(value * value for value in off), max(0, len(off) - used)


def _watts(evidence: Evidence) -> tuple[float | None, float, int]:
    """Mean active watts, the sum of squared relative residuals, its degrees of freedom."""
    watts = [joules / seconds for _, seconds, joules in evidence.readings if joules]
    if not watts:
        return None, 0.0, 0
    mean = sum(watts) / len(watts)
    return mean, sum((w / mean - 1) ** 2 for w in watts), len(watts) - 1


def _waiting(evidence: Evidence) -> tuple[float, int] | None:
    """Watts while waiting, and how many windows they come from."""
    seconds, joules = sum(s for s, _ in evidence.waits), sum(j for _, j in evidence.waits)
    if seconds > 0 and joules > 0:
        return joules / seconds, len(evidence.waits)
    return None if not evidence.waiting_watts else (evidence.waiting_watts, 1)


def _pooled(scatters: Sequence[tuple[float, int]]) -> float:
    """Variance over all boards."""
    freedom = sum(count for _, count in scatters)
    return sum(square for square, _ in scatters) / freedom if freedom else PRIOR_NOISE**2


def _shrunk(pool: float, square: float, freedom: int) -> float:
    """A board's noise: its own residuals with the pool's as a few more of them."""
    return max(math.sqrt((PRIOR_COUNT * pool + square) / (PRIOR_COUNT + freedom)), LEAST_NOISE)


def _noise(noise: float, freedom: int, random: Generator) -> float:
    return float(noise * math.sqrt(freedom / random.chisquare(freedom)))
