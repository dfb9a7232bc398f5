"""From a run's state to the next shares: what the policy is told, and what it remembers. Pure.

The arithmetic itself is `controller/`; this file knows runs and reports.
"""

from typing import Any

import msgspec
from msgspec import Struct

from coordinator.controller import Allocation, Carry, Member, Memory, Pool, Reading, Settings, Weights
from coordinator.controller.memories import missed, observe
from coordinator.controller.policies import find
from edged.messages import Report


class Control(Struct):
    """The controller's part of a run's state."""

    policy: str
    options: dict[str, Any]
    w_t: float
    w_e: float
    settings: Settings = Settings()
    memories: dict[str, Memory] = {}
    shares: dict[str, int] = {}
    since_change: int = 0
    carry: Carry = {}
    waits: dict[str, tuple[float, float | None]] = {}
    """Waiting seconds and joules of the newest closed order, by board."""
    whole: dict[str, float] = {}
    """Joules per sample of the newest closed order in all its parts, by board."""


def options_of(control: Control) -> Any:
    """The policy's typed options; the run's weights are put in where the policy has them.

    Raises msgspec.ValidationError with the path of a wrong option, ValueError for weights out of range.
    """
    kind = find(control.policy).Options
    given = dict(control.options)
    names = {field.name for field in msgspec.structs.fields(kind)}
    unknown = sorted(set(given) - names)
    if unknown:
        raise ValueError(
            f"policy {control.policy} has no option {', '.join(unknown)}; it has {sorted(names)}"
        )
    if "w_e" in names:
        given = {"w_t": control.w_t, "w_e": control.w_e, **given}
    return msgspec.convert(given, kind)


def floor_of(budget: int, boards: int, batch: int) -> int:
    """Least samples of a board in pma: one batch, less where the budget does not stretch (ALGORITHMS 1.4)."""
    return min(batch, budget // max(1, boards))


def allocate(
    control: Control, boards: tuple[str, ...], budget: int, round_number: int, batch: int
) -> Allocation:
    """The policy's answer for these boards; the control is not changed."""
    floor = floor_of(budget, len(boards), batch)
    members = tuple(
        Member(name, control.memories.get(name), floor=floor, previous=control.shares.get(name))
        for name in boards
    )
    pool = Pool(members, budget, round_number, control.since_change, control.carry, control.settings)
    return find(control.policy).allocate(pool, options_of(control))


def preview(
    control: Control, weights: Weights, boards: tuple[str, ...], budget: int, batch: int
) -> Allocation:
    """What the shares would become under other weights, nothing being changed."""
    other = msgspec.structs.replace(control, w_t=weights.w_t, w_e=weights.w_e)
    return allocate(other, boards, budget, 0, batch)


def adopt(control: Control, allocation: Allocation) -> None:
    """Remember a decision that is carried out."""
    control.since_change = 0 if allocation.changed else control.since_change + 1
    control.shares = dict(allocation.shares)
    control.carry = allocation.carry


def learn(control: Control, board: str, round_number: int, report: Report, window: str) -> str:
    """Take in an accepted report. Answers why it was left out, empty when it was not."""
    steady = report.steady if report.steady.samples else None
    samples = steady.samples if steady else report.samples
    seconds = steady.seconds if steady else report.parts.compute.seconds
    joules = steady.joules if steady else report.energy.joules
    if samples < 1 or seconds <= 0:
        return f"{samples} samples in {seconds} s are no reading"
    if window == "round":
        whole = control.whole.get(board)
        joules = None if whole is None else whole * samples
    wait_seconds, wait_joules = control.waits.pop(board, (None, None))
    reading = Reading(
        board,
        round_number,
        samples,
        seconds,
        joules,
        basis=report.energy.basis or None,
        uncertainty_joules=report.energy.uncertainty_joules if joules is not None else None,
        wait_seconds=wait_seconds if wait_joules is not None else None,
        wait_joules=wait_joules if wait_seconds is not None else None,
        loss_sum=report.loss_sum,
    )
    control.memories[board] = observe(control.memories.get(board), reading, control.settings)
    return ""


def miss(control: Control, board: str) -> None:
    """A board had an order and no update of it counts."""
    memory = control.memories.get(board)
    control.memories[board] = missed(memory if memory is not None else Memory(board))


def settle_account(control: Control, board: str, report: Report) -> None:
    """Take in the whole parts of a closed order: waiting watts, and joules of the whole round."""
    control.waits[board] = (report.parts.wait.seconds, report.parts.wait.joules)
    parts = report.parts
    joules = [p.joules for p in (parts.compute, parts.communication, parts.wait, parts.lost, parts.overhead)]
    known = [j for j in joules if j is not None]
    if report.samples and len(known) == len(joules):
        control.whole[board] = sum(known) / report.samples


def predicted_seconds(control: Control, board: str, samples: int) -> float | None:
    """Compute seconds that the board's readings promise for so many samples; None without readings."""
    memory = control.memories.get(board)
    if memory is None or memory.seconds_per_sample is None:
        return None
    return (memory.fixed_seconds or 0.0) + memory.seconds_per_sample * samples
