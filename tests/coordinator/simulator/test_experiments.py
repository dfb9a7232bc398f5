"""The published figures, as the simulator gives them: for the invented fleet and the calibrated one."""

import numpy as np
import pytest
from msgspec import structs

from coordinator.controller.frontier import Fleet, Frontier
from coordinator.controller.policies import find
from coordinator.controller.policies import options as policy_options
from coordinator.controller.steady import steady
from coordinator.simulator.boards import Dropout, VirtualBoard
from coordinator.simulator.experiments import (
    Line,
    Plan,
    closed_line,
    closed_lines,
    closed_loop,
    optimum,
    plans,
)
from coordinator.simulator.fleetfile import FleetFile, read
from coordinator.simulator.settled import steady_lines, truths

INVENTED = read("invented-eleven")

# makespan s, against equal %, joules, against equal %, against time-only %, CV (printed digits)
TABLE = {
    "equal": (129.87, 0.0, 6370, 0.0, 79.1, 0.755),
    "time-only (w_e = 0)": (30.27, -76.7, 3557, -44.2, 0.0, 0.000),
    "w_e = 0.25": (38.76, -70.2, 3688, -42.1, 3.7, 0.156),
    "w_e = 0.5": (46.67, -64.1, 3854, -39.5, 8.4, 0.250),
    "w_e = 0.75": (55.31, -57.4, 4057, -36.3, 14.1, 0.329),
    "w_e = 1": (65.60, -49.5, 4312, -32.3, 21.2, 0.409),
    "fewest joules": (48.39, -62.7, 3305, -48.1, -7.1, 0.913),
    "fewest joules, floor 64": (48.13, -62.9, 3311, -48.0, -6.9, 0.882),
}


def printed(line: Line) -> tuple[float, ...]:
    assert line.joules is not None
    equal, time_only = line.against["equal"], line.against["time-only"]
    assert equal[1] is not None
    assert time_only[1] is not None
    figures = (line.makespan_seconds, 100 * equal[0], line.joules, 100 * equal[1], 100 * time_only[1])
    digits = (2, 1, 0, 1, 1)
    rounded = tuple(round(figure, d) + 0.0 for figure, d in zip(figures, digits, strict=True))
    return (*rounded, round(line.variation, 3))


def test_the_invented_fleet_gives_the_published_table_to_the_printed_digits() -> None:
    lines = steady_lines(INVENTED, [*plans(["equal", "adaptive"]), optimum(), optimum(64)])
    assert {line.label: printed(line) for line in lines} == TABLE


@pytest.mark.parametrize(
    ("stretch", "saving"),
    [(1.02, 1.2), (1.05, 2.4), (1.10, 3.7), (1.20, 4.7), (1.5, 6.4), (2.0, 1.1), (3.0, -16.6)],
)
def test_the_pareto_front_of_the_invented_fleet(stretch: float, saving: float) -> None:
    lines = steady_lines(INVENTED, [plans(["adaptive"], [0.0])[0]])
    fastest, joules = lines[0].makespan_seconds, lines[0].joules
    assert joules is not None
    plan = Frontier(frontier_fleet(INVENTED)).within(stretch * fastest)
    assert round(100 * (1 - plan.joules / joules), 1) == saving


def frontier_fleet(fleet: FleetFile, floor: int = 64) -> Fleet:
    tau = np.array([1 / b.samples_per_second for b in fleet.board])
    watts = np.array([float(b.active_watts) for b in fleet.board])
    waiting = np.array([float(b.waiting_watts) for b in fleet.board])
    zeros = np.zeros_like(tau)
    floors = np.full_like(tau, floor)
    caps = np.full_like(tau, fleet.budget)
    return Fleet(fleet.budget, tau, tau * watts, waiting, floors, caps, zeros, zeros)


def test_the_calibrated_fleet_lies_within_the_papers_ranges() -> None:
    lines = {line.label: line for line in steady_lines(read("paper-eleven"), plans(["equal", "adaptive"]))}
    seconds, joules = lines["time-only (w_e = 0)"].against["equal"]
    assert joules is not None
    assert -0.80 <= seconds <= -0.71
    assert -0.40 <= joules <= -0.28
    assert (lines["w_e = 1"].joules or 0) > (lines["w_e = 0.25"].joules or 0)


def scaled(factor: float) -> FleetFile:
    boards = tuple(structs.replace(b, waiting_watts=factor * b.waiting_watts) for b in INVENTED.board)
    return structs.replace(INVENTED, board=boards)


@pytest.mark.parametrize(("factor", "interior"), [(0.33, True), (1.0, False)])
def test_whether_some_weight_between_beats_time_only_depends_on_the_waiting_watts(
    factor: float, interior: bool
) -> None:
    grid = [step / 200 for step in range(201)]
    policy, boards = find("adaptive"), truths(scaled(factor))
    joules = [
        steady(policy, policy_options("adaptive", {"w_e": w_e}), boards, INVENTED.budget).joules
        for w_e in grid
    ]
    best = joules.index(min(joules))
    assert (best > 0) is interior
    assert joules[-1] > min(joules)


def test_closed_loop_settles_where_the_arithmetic_says() -> None:
    wanted = plans(["equal", "adaptive"], [0.0, 0.25])
    exact = {line.label: line for line in steady_lines(INVENTED, wanted)}
    for line in closed_lines(INVENTED, wanted, rounds=8):
        assert line.makespan_seconds == pytest.approx(exact[line.label].makespan_seconds, rel=0.01)
        assert line.joules == pytest.approx(exact[line.label].joules, rel=0.01)
        assert line.reallocations == (0 if line.label == "equal" else 1)


def test_boards_that_are_left_out_still_wait_and_their_waiting_counts() -> None:
    line = closed_line("oort", closed_loop(INVENTED, Plan("oort", "oort"), 12))
    active = sum(watts for watts in (b.waiting_watts for b in INVENTED.board))
    chosen = [name for name, n in line.shares.items() if n]
    assert len(chosen) == 8
    assert line.wait_joules is not None
    left_out = sum(b.waiting_watts for b in INVENTED.board if b.id not in chosen)
    assert left_out * line.makespan_seconds <= line.wait_joules <= active * line.makespan_seconds


def test_a_policy_of_another_regime_is_refused_by_name() -> None:
    with pytest.raises(ValueError, match="omnilearn is for ddp, asp, not for pma"):
        plans(["omnilearn"])


def test_communication_is_counted_where_it_takes_time() -> None:
    boards = (VirtualBoard("a", 10, 5, 1, download_seconds=2, upload_seconds=1), VirtualBoard("b", 10, 5, 1))
    line = closed_line("equal", closed_loop(FleetFile("two", boards, budget=100), Plan("equal", "equal"), 4))
    assert line.communication_joules == pytest.approx(3.0)
    assert line.wait_joules == pytest.approx(3.0)


@pytest.mark.parametrize("name", ["adaptive", "ema-batch", "omnilearn", "min-energy"])
def test_synchronous_steps_cost_at_most_a_sample_a_step_more_than_the_slowest_board(name: str) -> None:
    fleet = structs.replace(INVENTED, global_batch=640, step_communication_seconds=0.01)
    plan = Plan(name, name)
    (line,) = steady_lines(fleet, [plan], "ddp")
    steps = -(-fleet.budget // 640)
    slowest = max(1 / b.samples_per_second for b in fleet.board)
    alone = max(line.shares[b.id] / b.samples_per_second for b in fleet.board)
    assert alone <= line.makespan_seconds - 0.01 * steps <= alone + steps * slowest
    assert line.communication_joules == pytest.approx(0.01 * steps * 24.4)
    closed = closed_line(name, closed_loop(fleet, plan, 8, regime="ddp"))
    assert closed.makespan_seconds == pytest.approx(line.makespan_seconds, rel=0.03)
    assert closed.joules == pytest.approx(line.joules, rel=0.03)


def test_equal_forward_times_become_alike_with_synchronous_gradients() -> None:
    fleet = structs.replace(read("paper-eleven"), global_batch=640)
    lines = {line.label: line for line in steady_lines(fleet, plans(["equal", "adaptive"], [0.0]), "ddp")}
    assert 0.5 < lines["equal"].variation < 1.1
    assert lines["time-only (w_e = 0)"].variation < 0.02


def test_a_rank_that_dies_ends_the_synchronous_round_and_the_run_still_gets_all_its_samples() -> None:
    boards = (
        VirtualBoard("a", 100, 5, 1),
        VirtualBoard("b", 50, 5, 1, dropouts=(Dropout(20.0, 40.0),)),
    )
    fleet = FleetFile("two", boards, budget=3000, batch=32)
    world = closed_loop(fleet, Plan("equal", "equal"), 3, regime="ddp")
    assert world.finished is not None
    assert world.finished.complete
    lost = [row["parts"]["lost"]["seconds"] for row in world.rows["closed"] if row["board"] == "a"]
    assert max(lost) == pytest.approx(20.0 + 30.0 - 2.0)
    first = world.rows["round"][0]
    assert (first["accepted"], first["silos"]["all"]["attempts"]) == (3000, 2)
