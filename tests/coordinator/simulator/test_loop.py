"""The loop is the virtual world without its messages: the same shares, seconds and joules."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.allocation import Control, controlled
from coordinator.controller import Settings, Weights
from coordinator.simulator.boards import Throttling, VirtualBoard
from coordinator.simulator.loop import Lived, Spent, Virtual, Work, live
from coordinator.simulator.world import World
from edged.controls import RunSettings

POLICIES = ("equal", "profiled", "time-only", "low-energy", "energy-only", "oort", "min-energy", "min-time")


def control_of(plan: RunSettings, boards: tuple[VirtualBoard, ...]) -> Control:
    weights = Weights(plan.w_t, plan.w_e)
    control = controlled(plan.policy, plan.policy_options, weights, plan.regime, plan.fixed_cost)
    control.idle_watts = {b.id: b.waiting_watts for b in boards if b.metered}
    control.resources = {b.id: float(round(b.cores)) for b in boards if b.cores}
    return control


@st.composite
def fleets(draw: st.DrawFn) -> tuple[VirtualBoard, ...]:
    boards = []
    for i in range(draw(st.integers(1, 5))):
        active = draw(st.floats(3, 30))
        throttling = (Throttling(draw(st.floats(1, 300)), 0.5),) if draw(st.booleans()) else ()
        boards.append(
            VirtualBoard(
                f"b{i}",
                draw(st.floats(20, 400)),
                active,
                active * draw(st.floats(0.1, 0.8)),
                fixed_seconds=draw(st.sampled_from([0.0, 2.0])),
                download_seconds=draw(st.floats(0, 3)),
                upload_seconds=draw(st.floats(0, 3)),
                communication_watts=draw(st.sampled_from([None, 2.5])),
                noise=draw(st.sampled_from([0.0, 0.05])),
                throttlings=throttling,
                metered=draw(st.sampled_from([True, True, True, False])),
                cores=4.0,
            )
        )
    return tuple(boards)


@settings(max_examples=60, deadline=None)
@given(
    boards=fleets(),
    policy=st.sampled_from([*POLICIES, "ema-batch", "omnilearn"]),
    regime=st.sampled_from(["pma", "ddp"]),
    seed=st.integers(0, 99),
    fixed_cost=st.sampled_from(["none", "fit"]),
    window=st.sampled_from(["compute", "round"]),
)
def test_the_loop_gives_the_rows_of_the_world(
    *, boards: tuple[VirtualBoard, ...], policy: str, regime: str, seed: int, fixed_cost: str, window: str
) -> None:
    if policy in ("ema-batch", "omnilearn"):
        regime = "ddp"
    elif policy == "oort":
        regime = "pma"
    plan = RunSettings(
        task="t",
        pool="p",
        budget=3000,
        rounds=6,
        regime=regime,
        policy=policy,
        batch=32,
        learning_rate=0.1,
        evaluate=False,
        seed=seed,
        fixed_cost=fixed_cost,
        energy_window=window,
        deadline_floor_seconds=1e6,
        deadline_limit_seconds=1e6,
    )
    world = World(boards, plan, 3000, seed, step_communication_seconds=0.01, idle_seen=True).run()
    members = {number: [b.id for b in boards] for number in range(1, 7)}
    work = Work(plan.budget, 32, window, 0.01)
    rounds = list(live(control_of(plan, boards), members, work, Virtual(boards, seed)))
    for lived, row in zip(rounds, world.rows["round"], strict=True):
        assert lived.shares == row["shares"]
        assert lived.wall_seconds == pytest.approx(row["wall_seconds"])
        if regime == "pma":
            assert lived.makespan_seconds == pytest.approx(row["makespan_seconds"])
        check_joules(lived, [r["parts"] for r in world.rows["closed"] if r["round"] == row["round"]])


def check_joules(lived: Lived, parts: list[dict[str, dict[str, float | None]]]) -> None:
    names = {"compute": lived.compute_joules, "wait": lived.wait_joules, "communication": lived.link_joules}
    for name, found in names.items():
        joules = [0.0 if part[name]["seconds"] == 0 else part[name]["joules"] for part in parts]
        if None in joules:
            assert found is None
        else:
            assert found == pytest.approx(sum(j for j in joules if j is not None), abs=1e-6)


def test_a_board_that_returns_nothing_misses_and_is_held_at_its_floor() -> None:
    class Gone:
        def spend(self, round: int, board: str, samples: int, at_seconds: float) -> Spent | None:
            return None if board == "b" and round > 1 else Spent(samples / 10, 5.0, 1.0)

    control = controlled("time-only", {}, Weights(1.0, 0.0), "pma", "none")
    rounds = list(live(control, dict.fromkeys(range(1, 7), ("a", "b")), Work(1000, 10), Gone()))
    assert rounds[0].shares == {"a": 500, "b": 500}
    assert rounds[-1].shares == {"a": 990, "b": 10}
    assert Settings().misses_to_floor == 3
