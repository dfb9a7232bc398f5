"""The same fleet under several policies in closed loop, by `world`; `settled` does it by arithmetic.

Joules are simulated ones, of compute windows, waiting and communication. Every line is held against equal,
against time-only and against the fewest joules that any split needs (the optimum of ALGORITHMS 7.2).
"""

from collections.abc import Callable, Sequence
from statistics import fmean, median
from typing import Any

from msgspec import Struct, structs

from coordinator.controller import Weights
from coordinator.controller.policies import find
from coordinator.controller.policies import options as policy_options
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.learning import Training
from coordinator.simulator.tally import tally
from coordinator.simulator.world import World
from edged.controls import RunSettings

References = dict[str, tuple[float, float | None]]
PATIENCE_SECONDS = 1e7
GRID = (0.0, 0.25, 0.5, 0.75, 1.0)


class Plan(Struct, frozen=True):
    """A policy with its options; `floor` is the least share of a board in the steady state."""

    label: str
    policy: str
    options: dict[str, Any] = {}
    w_e: float | None = None
    floor: int = 0


class Line(Struct, frozen=True):
    """One plan's figures for one round. None: not known in this kind of experiment."""

    label: str
    makespan_seconds: float
    joules: float | None
    compute_joules: float | None
    wait_joules: float | None
    communication_joules: float | None
    wait_share: float
    variation: float
    reallocations: int | None
    shares: dict[str, float]
    against: dict[str, tuple[float, float | None]] = {}
    """Relative difference of (makespan, joules) to: equal, time-only, optimum."""


def plans(names: Sequence[str], grid: Sequence[float] = GRID, regime: str = "pma") -> tuple[Plan, ...]:
    """Each policy once, adaptive for every w_e. Raises ValueError for what is no policy, weight or regime."""
    found: list[Plan] = []
    for name in names:
        policy = find(name)
        if regime not in policy.REGIMES:
            raise ValueError(f"policy {name} is for {', '.join(policy.REGIMES)}, not for {regime}")
        if policy.NAME == "adaptive" and name == "adaptive":
            for w_e in grid:
                weights = Weights.of(w_e)
                label = "time-only (w_e = 0)" if w_e == 0 else f"w_e = {w_e:g}"
                found.append(Plan(label, name, structs.asdict(weights), w_e))
        else:
            policy_options(name, {})
            found.append(Plan(name, name))
    return tuple(found)


def optimum(floor: int = 0) -> Plan:
    """The split that needs the fewest joules, however long it takes."""
    label = "fewest joules" if not floor else f"fewest joules, floor {floor}"
    return Plan(label, "min-energy", {"slack": None}, floor=floor)


def settings_of(fleet: FleetFile, plan: Plan, rounds: int, seed: int = 1, regime: str = "pma") -> RunSettings:
    """What a run of the plan would be started with."""
    return RunSettings(
        "virtual",
        "virtual",
        fleet.budget,
        rounds,
        regime,
        plan.policy,
        {key: value for key, value in plan.options.items() if key not in ("w_t", "w_e")},
        w_t=1.0 if plan.w_e is None else 1 - plan.w_e,
        w_e=plan.w_e or 0.0,
        batch=fleet.batch_of(regime),
        learning_rate=0.1,
        evaluate=False,
        seed=seed,
        fixed_cost=fleet.fixed_cost,
        # Nothing here tells of progress; a board that dies comes back and says so.
        deadline_floor_seconds=PATIENCE_SECONDS,
        deadline_limit_seconds=PATIENCE_SECONDS,
    )


def closed_loop(fleet: FleetFile, plan: Plan, rounds: int, seed: int = 1, regime: str = "pma") -> World:
    """A whole run of the plan in virtual time. Raises ValueError where no shares can be given."""
    return played(fleet, plan, settings_of(fleet, plan, rounds, seed, regime))


def played(
    fleet: FleetFile,
    plan: Plan,
    settings: RunSettings,
    *,
    training: Training | None = None,
    told: Callable[[str, dict[str, Any]], None] | None = None,
) -> World:
    """The run of these settings, with real training where that is given. Raises as `closed_loop`."""
    world = World(
        fleet.board,
        settings,
        fleet.samples,
        settings.seed,
        step_communication_seconds=fleet.step_communication_seconds,
        idle_seen=fleet.idle_seen,
        training=training,
        told=told,
    ).run()
    if world.rounds.state.paused:
        raise ValueError(f"{plan.label}: {world.rounds.state.reason}")
    return world


def closed_line(label: str, world: World, settle: int = 2) -> Line:
    """Figures of a run in virtual time, rounds before `settle` left out (they are equal or first guesses)."""
    every = tally(world.rows)
    rounds = [found for found in every if found.round > settle]
    if not rounds:
        raise ValueError(f"{label}: no round after the first {settle}; ask for more rounds")
    spans = [found.makespan_seconds for found in rounds if found.makespan_seconds is not None]
    # With gradients at every step a round is as long as the sum of its slowest steps.
    lengths = spans if world.settings.regime == "pma" else [found.wall_seconds for found in rounds]

    def each_round(values: list[float | None]) -> float | None:
        known = [value for value in values if value is not None]
        return fmean(known) if len(known) == len(values) else None

    return Line(
        label,
        median(lengths),
        each_round([found.total_joules for found in rounds]),
        each_round([found.joules["compute"] for found in rounds]),
        each_round([found.joules["wait"] for found in rounds]),
        each_round([found.joules["communication"] for found in rounds]),
        fmean(found.wait_share for found in rounds),
        median(found.variation for found in rounds),
        sum(found.reallocated for found in every),
        {name: float(n) for name, n in every[-1].shares.items()},
    )


def closed_lines(
    fleet: FleetFile, wanted: Sequence[Plan], rounds: int, seed: int = 1, regime: str = "pma"
) -> tuple[Line, ...]:
    """Every plan in closed loop, held against runs of equal, time-only and the optimum on the same fleet."""
    found = {
        plan.label: closed_line(plan.label, closed_loop(fleet, plan, rounds, seed, regime)) for plan in wanted
    }
    references: References = {}
    for name, plan in (
        ("equal", Plan("equal", "equal")),
        ("time-only", Plan("time-only (w_e = 0)", "adaptive", w_e=0.0)),
        ("optimum", optimum()),
    ):
        line = found.get(plan.label) or closed_line(name, closed_loop(fleet, plan, rounds, seed, regime))
        references[name] = (line.makespan_seconds, line.joules)
    return tuple(held(line, references) for line in found.values())


def held(line: Line, references: References) -> Line:
    """The line with its relative differences to each reference."""
    against = {
        name: (
            line.makespan_seconds / seconds - 1,
            None if line.joules is None or joules is None else line.joules / joules - 1,
        )
        for name, (seconds, joules) in references.items()
    }
    return structs.replace(line, against=against)
