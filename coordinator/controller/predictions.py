"""What shares would cost next round: makespan, joules computing and waiting (ALGORITHMS 7.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.controller.standing import Standing


class Prediction(NamedTuple):
    """None where a board's part is not known; joules are computing plus waiting where waiting is known."""

    seconds: float | None
    joules: float | None
    wait_joules: float | None


def predict(now: Standing, shares: Sequence[int]) -> Prediction:
    """From the per-sample costs in memory; a board without a share waits the whole round."""
    times = [
        a + n * tau if n and tau is not None else 0.0
        for n, tau, a in zip(shares, now.seconds, now.fixed_seconds, strict=True)
    ]
    if None in now.seconds and any(n and tau is None for n, tau in zip(shares, now.seconds, strict=True)):
        return Prediction(None, None, None)
    makespan = max(times)
    wait = [
        watts * (makespan - t) for watts, t in zip(now.waiting_watts, times, strict=True) if watts is not None
    ]
    waiting = sum(wait) if len(wait) == len(times) else None
    spent = [
        b + n * (eps or 0.0) if n else 0.0
        for n, eps, b in zip(shares, now.joules, now.fixed_joules, strict=True)
        if eps is not None or not n
    ]
    joules = sum(spent) + (waiting or 0.0) if len(spent) == len(times) else None
    return Prediction(makespan, joules, waiting)
