"""The fewest joules of the whole fleet, waiting included, in at most `slack` times the least makespan.

The exact optimum of ALGORITHMS 7.2 with floors and caps; slack null means at any makespan. The deadband is on
the predicted joules, because boards jump between floor and cap.
"""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.frontier import Frontier, Plan
from coordinator.controller.policies import _energy

NAME = "min-energy"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp")
NEEDS: tuple[Need, ...] = ("seconds", "joules", "waiting watts")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`tolerance`: how far kept shares may exceed the makespan limit; noise of 5 % alone reaches 0.08."""

    slack: float | None = 1.10
    deadband: float = 0.02
    tolerance: float = 0.10

    def __post_init__(self) -> None:
        if self.slack is not None and not 1 <= self.slack < float("inf"):
            raise ValueError(f"slack = {self.slack}: it must be at least 1, or null for no limit")
        if not (0 <= self.deadband < 1 and 0 <= self.tolerance < 1):
            raise ValueError("deadband and tolerance must be at least 0 and below 1")


def allocate(pool: Pool, options: Options) -> Allocation:
    """By time until a board has joules and waiting watts are known."""

    def plan(frontier: Frontier) -> tuple[Plan, str]:
        best, fastest = frontier.cheapest(options.slack), frontier.fastest
        saved = 100 * (1 - best.joules / fastest.joules)
        return best, (
            f"fewest joules at {best.seconds:.3g} s ({best.seconds / fastest.seconds:.2f} x the fastest), "
            f"{saved:.1f} % below time-only"
        )

    def judge(frontier: Frontier, seconds: float, joules: float) -> _energy.Judged:
        limit = float("inf") if options.slack is None else options.slack * frontier.fastest.seconds
        return _energy.Judged(objective=joules, overrun=seconds / limit - 1)

    return _energy.allocate(
        pool, NAME, plan=plan, judge=judge, deadband=options.deadband, tolerance=options.tolerance
    )
