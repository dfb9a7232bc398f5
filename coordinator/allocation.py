"""From a run's state to the next shares: what the policy is told, and what it remembers. Pure.

The arithmetic itself is `controller/`; this file knows runs and reports.
"""

from collections.abc import Mapping, Sequence
from math import isfinite
from typing import Any, Final

from msgspec import Struct, structs

from coordinator.controller import (
    NAMED_WEIGHTS,
    Allocation,
    Carry,
    Member,
    Memory,
    Pool,
    Reading,
    Settings,
    Stepping,
    Weights,
)
from coordinator.controller.batches import steps_for
from coordinator.controller.memories import missed, observe, rejoined
from coordinator.controller.policies import find
from coordinator.controller.policies import options as policy_options
from edged.groups import Stepwise
from edged.messages import Report

NO_MAKESPAN: Final = "asynchronous boards have no common makespan: nobody waits for a period's end"


class Control(Struct):
    """The controller's part of a run's state."""

    policy: str
    options: dict[str, Any]
    w_t: float
    w_e: float
    regime: str = "pma"
    settings: Settings = Settings()
    memories: dict[str, Memory] = {}
    shares: dict[str, int] = {}
    since_change: int = 0
    carry: Carry = {}
    resources: dict[str, float] = {}
    """Cores, as announced, by board."""
    idle_watts: dict[str, float] = {}
    """Watts without an order, by board: those of waiting until waiting is seen."""
    waits: dict[str, tuple[float, float | None]] = {}
    """Waiting seconds and joules of the newest closed order, by board."""
    whole: dict[str, float] = {}
    """Joules per sample of the newest closed order in all its parts, by board."""
    whole_kinds: dict[str, tuple[str, str]] = {}
    """Basis and scope of those joules."""


def controlled(
    policy: str, options: dict[str, Any], weights: Weights, regime: str, fixed_cost: str
) -> Control:
    """The control of a run that begins. A name such as low-energy stands for adaptive with those weights.

    Raises ValueError for a policy, option or weight that is not one, or a policy that the regime has not.
    """
    if fixed_cost not in ("none", "fit"):
        raise ValueError(f"fixed_cost is none or fit, not {fixed_cost!r}")
    settings = Settings(fixed_cost="fit" if fixed_cost == "fit" else "none")
    return chosen(Control("equal", {}, weights.w_t, weights.w_e, regime, settings), policy, options)


def chosen(control: Control, policy: str, options: dict[str, Any]) -> Control:
    """The control with another policy; what it has learnt of the boards stays. Weights among the options are
    the run's from then on, as if they had been set by themselves. Raises as `controlled`."""
    weights = NAMED_WEIGHTS.get(policy, Weights(control.w_t, control.w_e))
    name = "adaptive" if policy in NAMED_WEIGHTS else policy
    regimes = find(name).REGIMES
    if control.regime not in regimes:
        raise ValueError(f"policy {policy} is for {', '.join(regimes)}, not for {control.regime}")
    given: dict[str, Any] = {key: options[key] for key in ("w_t", "w_e") if key in options}
    if given:
        typed = policy_options(name, given)
        weights = Weights.of(typed.w_e if "w_e" in given else None, typed.w_t)
    rest = {key: value for key, value in options.items() if key not in given}
    other = structs.replace(control, policy=name, options=rest, w_t=weights.w_t, w_e=weights.w_e, carry={})
    options_of(other)
    return other


def options_of(control: Control) -> Any:
    """The policy's typed options, with the run's weights where the policy has weights."""
    names = {field.name for field in structs.fields(find(control.policy).Options)}
    weights = {"w_t": control.w_t, "w_e": control.w_e} if "w_e" in names else {}
    return policy_options(control.policy, {**weights, **control.options})


def stepwise(control: Control) -> Stepwise | None:
    """The rule by which synchronous ranks change their batches within a round, where the policy has one."""
    policy = find(control.policy)
    return policy.stepwise(options_of(control)) if isinstance(policy, Stepping) else None


def floor_of(regime: str, budget: int, boards: int, batch: int) -> int:
    """Least samples of a board: in pma one batch, less where the budget does not stretch; with synchronous
    gradients, where `batch` is that of all ranks together, one sample a step (ALGORITHMS 1.4)."""
    return min(batch, budget // max(1, boards)) if regime in ("pma", "asp") else steps_for(budget, batch)


def allocate(
    control: Control, boards: tuple[str, ...], budget: int, round_number: int, batch: int
) -> Allocation:
    """The policy's answer for these boards; the control is not changed."""
    floor = floor_of(control.regime, budget, len(boards), batch)
    members = tuple(
        Member(
            name,
            control.memories.get(name),
            floor=floor,
            previous=control.shares.get(name),
            waiting_watts_prior=control.idle_watts.get(name),
            resource=control.resources.get(name),
        )
        for name in boards
    )
    pool = Pool(members, budget, round_number, control.since_change, control.carry, control.settings)
    return find(control.policy).allocate(pool, options_of(control))


def promised(prefix: str, allocation: Allocation | None) -> dict[str, Any]:
    """Predicted makespan and joules of a decision, as plain data; what the joules lack."""
    seconds = allocation.predicted_seconds if allocation else None
    joules = allocation.predicted_joules if allocation else None
    if seconds is None:
        untold = "not every board has been measured yet"
        why = next((note for note in (allocation.notes if allocation else ()) if note == NO_MAKESPAN), untold)
    elif joules is None:
        why = "not every board has joules"
    elif allocation is not None and allocation.predicted_wait_joules is None:
        why = "of computing alone: what boards draw while they wait is not known yet"
    else:
        why = ""
    return {f"{prefix}seconds": seconds, f"{prefix}joules": joules, f"{prefix}joules_reason": why}


def merged(by_silo: Mapping[str, Allocation]) -> Allocation:
    """The decisions of several silos as one: their shares side by side, the longest makespan, all joules."""
    decisions = list(by_silo.values())
    if len(decisions) == 1:
        return decisions[0]
    seconds = [one.predicted_seconds for one in decisions]
    joules = [one.predicted_joules for one in decisions]
    waits = [one.predicted_wait_joules for one in decisions]
    known = [value for value in seconds if value is not None]
    return Allocation(
        shares={board: n for one in decisions for board, n in one.shares.items()},
        changed=any(one.changed for one in decisions),
        reason="; ".join(f"{name}: {one.reason}" for name, one in by_silo.items()),
        costs={board: cost for one in decisions for board, cost in one.costs.items()},
        wanted={board: n for one in decisions for board, n in one.wanted.items()},
        predicted_seconds=max(known) if len(known) == len(seconds) else None,
        predicted_joules=_sum(joules),
        predicted_wait_joules=_sum(waits),
        left=tuple(board for one in decisions for board in one.left),
        notes=tuple(note for one in decisions for note in one.notes),
    )


def without_makespan(allocation: Allocation) -> Allocation:
    """Of sizes of orders that no round is common to: what is promised for a round does not hold."""
    return structs.replace(
        allocation,
        predicted_seconds=None,
        predicted_joules=None,
        predicted_wait_joules=None,
        notes=(*allocation.notes, NO_MAKESPAN),
    )


def _sum(values: Sequence[float | None]) -> float | None:
    known = [value for value in values if value is not None]
    return sum(known) if len(known) == len(values) else None


def adopt(control: Control, allocation: Allocation) -> None:
    """Remember a decision that is carried out."""
    control.since_change = 0 if allocation.changed else control.since_change + 1
    control.shares = dict(allocation.shares)
    control.carry = allocation.carry


def learn(control: Control, board: str, round_number: int, report: Report, window: str) -> str:
    """Take in an accepted report. Answers why it was left out, empty when it was not."""
    samples, seconds, joules = report.steady.samples, report.steady.seconds, report.steady.joules
    if samples < 1 or seconds <= 0:
        return "only the first two steps of a new process: they tell little of what follows"
    energy = report.energy
    basis, scope = energy.basis, energy.scope
    if window == "round":
        whole = control.whole.get(board)
        joules = None if whole is None else whole * samples
        basis, scope = control.whole_kinds.get(board, (basis, scope))
    uncertainty = None
    if joules and energy.joules and energy.uncertainty_joules is not None:
        scaled = joules * (energy.uncertainty_joules / energy.joules)
        uncertainty = scaled if isfinite(scaled) else None  # a message may hold any figures
    if control.regime not in ("pma", "asp") and report.samples != control.shares.get(board):
        control.since_change = 0  # the ranks changed their parts on the way
    wait_seconds, wait_joules = control.waits.pop(board, (None, None))
    reading = Reading(
        board,
        round_number,
        samples,
        seconds,
        joules,
        basis=basis or None,
        uncertainty_joules=uncertainty,
        wait_seconds=wait_seconds if wait_joules is not None else None,
        wait_joules=wait_joules if wait_seconds is not None else None,
        loss_sum=report.loss_sum,
        loss_square_sum=report.metrics.get("loss_square_sum"),
        scope=scope or None,
    )
    control.memories[board] = observe(control.memories.get(board), reading, control.settings)
    return ""


def miss(control: Control, board: str) -> None:
    """A board had an order and no update of it counts."""
    memory = control.memories.get(board)
    control.memories[board] = missed(memory if memory is not None else Memory(board))


def readmit(control: Control, board: str) -> None:
    """What kept the board from its updates may be mended: its misses are forgotten, its costs are not."""
    memory = control.memories.get(board)
    if memory is not None:
        control.memories[board] = rejoined(memory)


def settle_account(control: Control, board: str, report: Report) -> None:
    """Take in the whole parts of a closed order: waiting watts, and joules of the whole round."""
    control.waits[board] = (report.parts.wait.seconds, report.parts.wait.joules)
    parts = report.parts
    joules = [p.joules for p in (parts.compute, parts.communication, parts.wait, parts.lost, parts.overhead)]
    known = [j for j in joules if j is not None]
    if report.samples and len(known) == len(joules):
        control.whole[board] = sum(known) / report.samples
        if report.energy.basis:
            control.whole_kinds[board] = (report.energy.basis, report.energy.scope)


def predicted_seconds(control: Control, board: str, samples: int) -> float | None:
    """Compute seconds that the board's readings promise for so many samples; None without readings."""
    memory = control.memories.get(board)
    if memory is None or memory.seconds_per_sample is None:
        return None
    return (memory.fixed_seconds or 0.0) + memory.seconds_per_sample * samples
