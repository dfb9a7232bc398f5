"""Where each policy settles on a fleet when every cost is known exactly: arithmetic, no rounds pass.

No noise, no deadband, no first round; shares are real-valued except where synchronous steps need whole ones.
The communication of a round is left out; that of each synchronous step is in.
"""

from collections.abc import Sequence

from coordinator.controller.batches import steps_for
from coordinator.controller.policies import find
from coordinator.controller.policies import options as policy_options
from coordinator.controller.split import whole
from coordinator.controller.steady import Outcome, Truth, outcome, seconds, steady
from coordinator.simulator.experiments import Line, Plan, References, held, optimum
from coordinator.simulator.fleetfile import FleetFile
from coordinator.simulator.steps import together


def truths(fleet: FleetFile) -> tuple[Truth, ...]:
    """The fleet's true costs."""
    return tuple(
        Truth(b.id, b.samples_per_second, b.active_watts, b.waiting_watts, b.fixed_seconds, b.cores)
        for b in fleet.board
    )


def steady_lines(fleet: FleetFile, wanted: Sequence[Plan], regime: str = "pma") -> tuple[Line, ...]:
    """Every plan's line, held against equal, time-only and the optimum. Raises InfeasibleError."""
    boards = truths(fleet)
    lines = [_line(fleet, plan.label, _settled(fleet, plan, regime), regime) for plan in wanted]
    equal = outcome(boards, [fleet.budget / len(boards)] * len(boards))
    references: References = {}
    for name, found in (
        ("equal", equal),
        ("time-only", _settled(fleet, Plan("time-only", "adaptive"), regime)),
        ("optimum", _settled(fleet, optimum(), regime)),
    ):
        line = _line(fleet, name, found, regime)
        references[name] = (line.makespan_seconds, line.joules)
    return tuple(held(line, references) for line in lines)


def _settled(fleet: FleetFile, plan: Plan, regime: str) -> Outcome:
    floor = plan.floor if regime == "pma" else max(plan.floor, _steps(fleet, regime))
    options = policy_options(plan.policy, plan.options)
    return steady(find(plan.policy), options, truths(fleet), fleet.budget, floor=floor)


def _steps(fleet: FleetFile, regime: str) -> int:
    return steps_for(fleet.budget, fleet.batch_of(regime))


def _line(fleet: FleetFile, label: str, found: Outcome, regime: str) -> Line:
    boards = truths(fleet)
    makespan, link, link_joules = found.seconds, 0.0, None
    wait_seconds = sum(makespan - t for t in found.times)
    wait_joules, compute_joules = found.wait_joules, found.joules - found.wait_joules
    if regime != "pma":
        shares = whole(found.shares, fleet.budget, [fleet.budget] * len(boards))
        steps = together(
            shares,
            [seconds(truth, n) / n for truth, n in zip(boards, shares, strict=True)],
            _steps(fleet, regime),
            step_communication_seconds=fleet.step_communication_seconds,
        )
        makespan, link = steps.seconds, steps.communication_seconds
        waits = list(zip(boards, steps.wait_seconds, strict=True))
        wait_seconds = sum(wait for _, wait in waits)
        wait_joules = sum(truth.waiting_watts * wait for truth, wait in waits)
        link_joules = link * sum(board.link_watts for board in fleet.board)
        compute_joules = sum(
            truth.active_watts * t for truth, t in zip(boards, steps.compute_seconds, strict=True)
        )
    return Line(
        label,
        makespan,
        compute_joules + wait_joules + (link_joules or 0.0),
        compute_joules,
        wait_joules,
        link_joules,
        wait_seconds / (makespan * len(boards)),
        found.variation,
        None,
        dict(zip((b.board for b in boards), found.shares, strict=True)),
    )
