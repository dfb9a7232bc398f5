"""The pools of a run, each with its boards, budget, queue of samples and what is learnt of its boards. Pure.

In pma and ddp all boards are one silo; in hfl-ddp silos are named by the coordinator's settings or announced
by boards, and no sample and no median ever crosses them (ARCHITECTURE 5).
"""

from collections.abc import Mapping

from msgspec import Struct

from coordinator.allocation import Control
from coordinator.controller import InfeasibleError
from coordinator.fleet import Fleet
from coordinator.pieces import Queue
from edged.controls import RunSettings
from edged.schedule import subseed

ALL = "all"
"""The silo of runs that have only one."""
SYNCHRONOUS = ("ddp", "hfl-ddp")
"""Regimes whose boards step together."""


class Silo(Struct):
    """`boards` are those named by the settings; without names it is whoever announces it. `seed` is that of
    its permutation; `accepted` counts samples; `step_seconds` is how long its last ranks' steps took, with
    all exchange and waiting."""

    name: str
    control: Control
    queue: Queue
    budget: int
    pool: str
    seed: int
    fingerprint: str | None = None
    boards: tuple[str, ...] = ()
    accepted: int = 0
    step_seconds: float | None = None


def only(settings: RunSettings, control: Control, fingerprint: str | None, samples: int | None) -> Silo:
    """The one silo of a pma or ddp run."""
    return Silo(ALL, control, Queue(samples or 0), settings.budget, settings.pool, settings.seed, fingerprint)


def name_of(settings: RunSettings, fleet: Fleet, board: str) -> str:
    """The silo that a board belongs to, "" if it has none: the settings' word counts before its own."""
    if settings.regime != "hfl-ddp":
        return ALL
    for name, silo in settings.silos.items():
        if board in silo.boards:
            return name
    seen = fleet.boards.get(board)
    return seen.birth.silo if seen is not None else ""


def pool_of(settings: RunSettings, silo: str) -> str:
    """The name of the pool that boards of a silo train on."""
    found = settings.silos.get(silo)
    return found.pool if found is not None and found.pool else settings.pool


def formed(settings: RunSettings, fleet: Fleet, boards: tuple[str, ...], control: Control) -> dict[str, Silo]:
    """The silos of a run that begins, from its settings and the boards that are there, in order of name.

    Raises ValueError where budgets cannot be given.
    """
    names = sorted({*settings.silos, *(name_of(settings, fleet, board) for board in boards)} - {""})
    if not names:
        raise ValueError(
            "no silo is named: [silo.NAME] in the coordinator's settings, or board.silo on boards"
        )
    found: dict[str, tuple[str, int]] = {}
    for name in names:
        members = {b for b in fleet.boards if name_of(settings, fleet, b) == name}
        held = fleet.fingerprint(pool_of(settings, name), members)
        if held is None:
            raise ValueError(f"no board of silo {name} holds pool {pool_of(settings, name)}")
        found[name] = held
    budgets = shared(settings, {name: samples for name, (_, samples) in found.items()})
    made = {}
    for name, (fingerprint, samples) in found.items():
        given = settings.silos.get(name)
        made[name] = Silo(
            name,
            copied(control),
            Queue(samples),
            budgets[name],
            pool_of(settings, name),
            subseed(settings.seed, "silo", name) >> 10,  # a seed in a message has 53 bits
            fingerprint,
            given.boards if given is not None else (),
        )
    return made


def shared(settings: RunSettings, samples: Mapping[str, int]) -> dict[str, int]:
    """Budgets by silo, in all the run's: those that are set, the rest in proportion to the silos' data."""
    # Not at import: the command line reads this module, and --help must not wait for numpy.
    from coordinator.controller.split import whole

    fixed = {
        name: silo.budget
        for name, silo in settings.silos.items()
        if silo.budget is not None and name in samples
    }
    rest = settings.budget - sum(fixed.values())
    open_ = [name for name in samples if name not in fixed]
    if rest < len(open_) or (rest and not open_):
        told = ", ".join(f"{name} {budget}" for name, budget in fixed.items())
        raise InfeasibleError(f"the silos' budgets ({told}) do not fit the run's budget of {settings.budget}")
    total = sum(samples[name] for name in open_)
    if open_ and not total:
        raise InfeasibleError(f"the pools of silos {', '.join(open_)} have no samples")
    parts = (
        whole([rest * samples[name] / total for name in open_], rest, [rest] * len(open_)) if open_ else []
    )
    return {**fixed, **dict(zip(open_, parts, strict=True))}


def copied(control: Control) -> Control:
    """A control of its own with the same policy, options and weights, that knows no board."""
    return Control(
        control.policy,
        dict(control.options),
        control.w_t,
        control.w_e,
        control.regime,
        control.settings,
        idle_watts=dict(control.idle_watts),
    )
