"""The shortest round within a cap on its joules, waiting included: min-energy's front read the other way.

The cap is `joules` a round, or `saving` below what time-only would need. Where no split is that cheap, the
cheapest one is taken and the reason says so.
"""

from msgspec import Struct

from coordinator.controller import Allocation, Need, Pool, Regime
from coordinator.controller.frontier import Frontier, Plan
from coordinator.controller.policies import _energy

NAME = "min-time"
REGIMES: tuple[Regime, ...] = ("pma", "ddp", "hfl-ddp")
NEEDS: tuple[Need, ...] = ("seconds", "joules", "waiting watts")


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`tolerance`: how far kept shares may exceed the joules. A deadband below 0.08 follows 5 % noise."""

    joules: float | None = None
    saving: float = 0.02
    deadband: float = 0.08
    tolerance: float = 0.05

    def __post_init__(self) -> None:
        if self.joules is not None and not 0 < self.joules < float("inf"):
            raise ValueError(f"joules = {self.joules}: the cap of a round must be above 0")
        if not 0 <= self.saving < 1:
            raise ValueError(f"saving = {self.saving}: it must be at least 0 and below 1")
        if not (0 <= self.deadband < 1 and 0 <= self.tolerance < 1):
            raise ValueError("deadband and tolerance must be at least 0 and below 1")


def allocate(pool: Pool, options: Options) -> Allocation:
    """By time until a board has joules and waiting watts are known."""

    def cap(frontier: Frontier) -> float:
        return options.joules or (1 - options.saving) * frontier.fastest.joules

    def plan(frontier: Frontier) -> tuple[Plan, str]:
        allowed, fastest = cap(frontier), frontier.fastest
        best = frontier.soonest(allowed)
        if best is None:
            best = frontier.cheapest()
            return best, f"no split needs at most {allowed:.4g} J, the cheapest {best.joules:.4g} J"
        return best, (
            f"shortest round within {allowed:.4g} J: {best.seconds:.3g} s, "
            f"{best.seconds / fastest.seconds:.2f} x the fastest"
        )

    def judge(frontier: Frontier, seconds: float, joules: float) -> _energy.Judged:
        return _energy.Judged(objective=seconds, overrun=joules / cap(frontier) - 1)

    return _energy.allocate(
        pool, NAME, plan=plan, judge=judge, deadband=options.deadband, tolerance=options.tolerance
    )
