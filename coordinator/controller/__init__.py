"""The contract of the controller: what goes into one decision and what comes out of it.

Plain values only (they are stored as JSON in the run's state) and no clock, randomness, disk or network:
the same code serves the coordinator, a replay and the simulator. Seconds and joules are those of the compute
window of one accepted report; the caller leaves out a new child's first two steps.
"""

import math
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, Final, Literal, Protocol, runtime_checkable

from msgspec import Struct

from edged.groups import Stepwise

FixedCost = Literal["none", "fit"]
Need = Literal["seconds", "joules", "waiting watts", "resources", "losses"]
Regime = Literal["pma", "ddp", "hfl-ddp", "asp"]

# What a policy wants to remember between rounds: what -> board -> number. Handed back unread by the caller.
Carry = dict[str, dict[str, float]]


class InfeasibleError(ValueError):
    """The bounds cannot be met; the text names the board and the bound."""


class Settings(Struct, frozen=True):
    """How readings become memories (ALGORITHMS 1.4); fixed for a run."""

    beta: float = 0.5  # weight of the newest reading in the moving average
    fixed_cost: FixedCost = "none"  # "fit": t = a + tau n once n has varied enough (ALGORITHMS 7.6)
    history: int = 16  # readings kept for that fit
    misses_to_floor: int = 3
    misses_to_leave: int = 6
    waiting_seconds: float = 10.0  # waiting seen before its watts are believed

    def __post_init__(self) -> None:
        if not 0 < self.beta <= 1:
            raise ValueError(f"beta must be above 0 and at most 1, not {self.beta}")
        if self.history < 2:
            raise ValueError(f"history must be at least 2, not {self.history}")
        if not 0 < self.misses_to_floor <= self.misses_to_leave:
            raise ValueError("misses_to_floor must be at least 1 and at most misses_to_leave")


class Reading(Struct, frozen=True, gc=False):
    """The compute window of one accepted report; joules None where the board has no meter."""

    board: str
    round: int
    samples: int
    seconds: float
    joules: float | None
    basis: str | None = None
    uncertainty_joules: float | None = None
    wait_seconds: float | None = None
    wait_joules: float | None = None
    loss_sum: float | None = None  # sum over the samples of the loss
    loss_square_sum: float | None = None  # sum over the samples of the squared loss (Oort's utility)
    scope: str | None = None  # what the joules cover (wall, package ...)

    def __post_init__(self) -> None:
        if self.samples < 1:
            raise ValueError(f"{self.board}: a reading needs at least one sample, not {self.samples}")
        if not (math.isfinite(self.seconds) and self.seconds > 0):
            raise ValueError(f"{self.board}: seconds must be finite and above 0, not {self.seconds}")
        for name in ("joules", "uncertainty_joules", "wait_seconds", "wait_joules"):
            value = getattr(self, name)
            if value is not None and not (math.isfinite(value) and value >= 0):
                raise ValueError(f"{self.board}: {name} must be finite and not negative, not {value}")


class Memory(Struct, frozen=True, gc=False):
    """What is known of one board from its readings so far; None is unknown, never 0."""

    board: str
    seconds_per_sample: float | None = None  # tau, moving average
    joules_per_sample: float | None = None  # epsilon, moving average
    basis: str | None = None  # of the joules
    relative_uncertainty: float | None = None  # of the newest joules
    fixed_seconds: float | None = None  # a, seconds a round that do not grow with n; None: not fitted
    fixed_joules: float | None = None
    misses: int = 0  # in a row
    round: int | None = None  # newest reading
    joules_round: int | None = None  # newest reading with joules
    participations: int = 0
    history: tuple[tuple[int, float, float | None], ...] = ()  # (samples, seconds, joules), newest last
    waiting_seconds: float = 0.0  # pooled waiting windows, bounded
    waiting_joules: float = 0.0
    waiting_watts: float | None = None  # measured; None until enough waiting was seen
    loss_utility: float | None = None  # |B| sqrt(mean loss^2) of the newest reading
    scope: str | None = None  # of the joules


class Member(Struct, frozen=True, gc=False):
    """One board of a pool at a round boundary, with what its configuration says."""

    board: str
    memory: Memory | None = None
    floor: int = 1
    cap: int | None = None
    previous: int | None = None  # its share in the last round; None: it had none
    waiting_watts_prior: float | None = None  # of a short idle measurement
    resource: float | None = None  # cores or FLOP/s, in one unit for the whole pool


class Pool(Struct, frozen=True):
    """The boards that share one budget, in board order (a silo is a pool of its own)."""

    members: tuple[Member, ...]
    budget: int
    round: int
    since_change: int = 0  # rounds since the shares last changed
    carry: Carry = {}  # the last Allocation's
    settings: Settings = Settings()


class Allocation(Struct, frozen=True):
    """Shares of the next round, which add up to the budget, and why."""

    shares: dict[str, int]
    changed: bool
    reason: str
    costs: dict[str, float | None] = {}  # c_i of the policy that has them
    wanted: dict[str, int] = {}  # what the shares would be without the deadband
    predicted_seconds: float | None = None  # makespan of the compute windows
    predicted_joules: float | None = None  # computing, and waiting where all waiting watts are known
    predicted_wait_joules: float | None = None
    left: tuple[str, ...] = ()  # boards that missed too often and are out of the pool
    notes: tuple[str, ...] = ()
    carry: Carry = {}


class Weights(Struct, frozen=True):
    """Weights of time and energy in the combined cost; only their ratio matters (ALGORITHMS 1.3)."""

    w_t: float
    w_e: float

    def __post_init__(self) -> None:
        _in_range("w_t", self.w_t)
        _in_range("w_e", self.w_e)
        if self.w_t + self.w_e < 1e-6:
            raise ValueError("w_t and w_e are both 0: weights are between 0 and 1, at least one above 0")

    @classmethod
    def of(cls, w_e: float | None = None, w_t: float | None = None) -> "Weights":
        """The weight left out is 1 minus the other; both left out is time-only."""
        if w_e is not None:
            _in_range("w_e", w_e)
            return cls(w_t=1 - w_e if w_t is None else w_t, w_e=w_e)
        if w_t is not None:
            _in_range("w_t", w_t)
        return cls(1.0, 0.0) if w_t is None else cls(w_t=w_t, w_e=1 - w_t)


def _in_range(name: str, weight: float) -> None:
    if not 0 <= weight <= 1:  # NaN fails too
        raise ValueError(f"{name} = {weight}: each weight must be between 0 and 1")


NAMED_WEIGHTS: Final[Mapping[str, Weights]] = MappingProxyType(
    {
        "time-only": Weights(1.0, 0.0),
        "low-energy": Weights(0.75, 0.25),
        "balanced": Weights(0.5, 0.5),
        "energy-only": Weights(0.0, 1.0),
    }
)


class Policy(Protocol):
    """One file in `policies/`, or a user's own: these names at module level."""

    NAME: str
    REGIMES: tuple[Regime, ...]
    NEEDS: tuple[Need, ...]
    Options: type[Struct]

    def allocate(self, pool: Pool, options: Any, /) -> Allocation:
        """Shares of the next round; raises InfeasibleError where floors and caps leave none."""


@runtime_checkable
class Stepping(Protocol):
    """What a policy has in addition whose rule synchronous ranks follow also within a round."""

    def stepwise(self, options: Any, /) -> Stepwise | None:
        """The rule (`edged.stepwise` knows it by name), None where these options have none."""
