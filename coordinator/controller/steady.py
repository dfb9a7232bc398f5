"""What a policy settles at when every cost is known exactly: no noise, no deadband, no first round.

Shares come as good as real-valued (in millionths of a sample), so that tables do not depend on rounding. The
policy's own code decides; nothing is solved here a second time.
"""

import math
from collections.abc import Sequence
from typing import Any

import msgspec
from msgspec import Struct

from coordinator.controller import Allocation, Member, Memory, Policy, Pool, Reading, Settings

FINE = 1_000_000  # parts of a sample
EMULATED = "emulated"


class Truth(Struct, frozen=True):
    """What one board really costs; `fixed_seconds` of every round are computing that does not grow with n."""

    board: str
    samples_per_second: float
    active_watts: float
    waiting_watts: float
    fixed_seconds: float = 0.0
    resource: float | None = None

    def __post_init__(self) -> None:
        if not (math.isfinite(self.samples_per_second) and self.samples_per_second > 0):
            raise ValueError(
                f"{self.board}: samples_per_second must be above 0, not {self.samples_per_second}"
            )
        for name in ("active_watts", "waiting_watts", "fixed_seconds"):
            value = getattr(self, name)
            if not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{self.board}: {name} must be finite and not negative, not {value}")


class Outcome(Struct, frozen=True):
    """One round at given shares; joules are computing plus waiting, without communication."""

    shares: tuple[float, ...]
    times: tuple[float, ...]
    seconds: float
    joules: float
    wait_joules: float
    variation: float  # population standard deviation of the times over their mean


def seconds(truth: Truth, samples: float) -> float:
    """Of computing; a board without samples computes nothing."""
    return truth.fixed_seconds + samples / truth.samples_per_second if samples > 0 else 0.0


def outcome(fleet: Sequence[Truth], shares: Sequence[float]) -> Outcome:
    """Makespan and joules of one round with exact costs (ALGORITHMS 7.1)."""
    times = [seconds(truth, n) for truth, n in zip(fleet, shares, strict=True)]
    makespan, mean = max(times), sum(times) / len(times)
    waiting = sum(truth.waiting_watts * (makespan - t) for truth, t in zip(fleet, times, strict=True))
    computing = sum(truth.active_watts * t for truth, t in zip(fleet, times, strict=True))
    spread = math.sqrt(sum((t - mean) ** 2 for t in times) / len(times))
    return Outcome(tuple(shares), tuple(times), makespan, computing + waiting, waiting, spread / mean)


def reading(truth: Truth, round: int, samples: int, wait_seconds: float = 0.0) -> Reading:
    """What a perfect meter would have reported."""
    t = seconds(truth, samples)
    return Reading(
        board=truth.board,
        round=round,
        samples=samples,
        seconds=t,
        joules=t * truth.active_watts,
        basis=EMULATED,
        wait_seconds=wait_seconds,
        wait_joules=wait_seconds * truth.waiting_watts,
    )


def known(truth: Truth, grain: int = 1, round: int = 1, **member: Any) -> Member:
    """A member whose memory holds the true costs of one sample / grain."""
    tau = 1 / (truth.samples_per_second * grain)
    memory = Memory(
        board=truth.board,
        seconds_per_sample=tau,
        joules_per_sample=tau * truth.active_watts,
        basis=EMULATED,
        fixed_seconds=truth.fixed_seconds or None,
        fixed_joules=truth.fixed_seconds * truth.active_watts or None,
        round=round,
        joules_round=round,
        participations=round,
        history=((grain, tau * grain, tau * grain * truth.active_watts),),
        waiting_watts=truth.waiting_watts,
    )
    return Member(truth.board, memory, resource=truth.resource, **member)


def steady(
    policy: Policy, options: Any, fleet: Sequence[Truth], budget: int, *, floor: int = 0, rounds: int = 25
) -> Outcome:
    """Where the policy's shares stop changing; options with a deadband get a deadband of 0."""
    if hasattr(options, "deadband"):
        options = msgspec.structs.replace(options, deadband=0.0)
    settings = Settings(fixed_cost="fit") if any(truth.fixed_seconds for truth in fleet) else Settings()
    given: dict[str, int | None] = {truth.board: None for truth in fleet}
    last: Allocation | None = None
    for number in range(2, rounds + 2):
        members = tuple(
            known(truth, FINE, number - 1, floor=floor * FINE, previous=given[truth.board]) for truth in fleet
        )
        carry = {} if last is None else last.carry
        pool = Pool(members, budget * FINE, number, carry=carry, settings=settings)
        last = policy.allocate(pool, options)
        if last.shares == given:
            break
        given = dict(last.shares)
    return outcome(fleet, [(given[truth.board] or 0) / FINE for truth in fleet])
