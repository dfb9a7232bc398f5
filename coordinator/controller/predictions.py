"""What shares would cost next round: makespan, joules computing and waiting (ALGORITHMS 7.1)."""

from collections.abc import Sequence
from typing import NamedTuple

from coordinator.controller import Member


class Prediction(NamedTuple):
    """None where a board's part is not known; joules are computing plus waiting where waiting is known."""

    seconds: float | None
    joules: float | None
    wait_joules: float | None


def waiting_watts(member: Member) -> float | None:
    """Measured in waiting windows, else the configured or idle measurement, else unknown."""
    if member.memory is not None and member.memory.waiting_watts is not None:
        return member.memory.waiting_watts
    return member.waiting_watts_prior


def predict(
    members: Sequence[Member], shares: Sequence[int], joules_per_sample: Sequence[float | None]
) -> Prediction:
    """From the per-sample costs in memory; a board without a share waits the whole round."""
    times: list[float] = []
    computing: float | None = 0.0
    for member, n, eps in zip(members, shares, joules_per_sample, strict=True):
        memory = member.memory
        if n == 0:
            times.append(0.0)
            continue
        if memory is None or memory.seconds_per_sample is None:
            return Prediction(None, None, None)
        times.append((memory.fixed_seconds or 0.0) + n * memory.seconds_per_sample)
        if eps is None or computing is None:
            computing = None
        else:
            computing += (memory.fixed_joules or 0.0) + n * eps
    makespan = max(times)
    watts = [w for w in map(waiting_watts, members) if w is not None]
    waiting: float | None = None
    if len(watts) == len(members):
        waiting = sum([w * (makespan - seconds) for w, seconds in zip(watts, times, strict=True)])
    joules = None if computing is None else computing + (waiting or 0.0)
    return Prediction(makespan, joules, waiting)
