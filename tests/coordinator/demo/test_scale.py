"""The one speed factor: from measured steps to a demo that ends in time and whose boards keep their pace."""

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.demo.plan import (
    KINDS,
    WANTED_SECONDS,
    Plan,
    PlanError,
    estimate_seconds,
    fitting,
    named,
    plan,
)
from coordinator.demo.scale import Measured, corrected, first_guess, quantile, settled
from coordinator.demo.steps import Steps
from edged.pace import NATIVE_SHARE

RELATIVE = {"slow": 0.2, "middle": 1.0, "fast": 5.0}
PLAN = Plan(
    "digits",
    "",
    "digits",
    "builtin",
    1437,
    dict.fromkeys(RELATIVE, ""),
    RELATIVE,
    12,
    None,
    16,
    0.25,
    1,
    Path(),
)


def test_the_guess_gives_native_work_its_share_of_the_fastest_boards_step() -> None:
    scale = first_guess([0.002, 0.002, 0.05], fastest=5.0, batch=16)
    step_seconds = 16 * scale / 5.0
    assert 0.002 / step_seconds == pytest.approx(NATIVE_SHARE)


def test_steps_that_are_slow_beside_each_other_make_the_scale_larger() -> None:
    quick = {board: Steps((0.001,) * 20) for board in RELATIVE}
    assert corrected(0.01, RELATIVE, quick, 16) == 0.01
    step_seconds = 16 * 0.01 / 5.0
    slow = {**quick, "fast": Steps((0.8 * step_seconds,) * 20)}
    assert corrected(0.01, RELATIVE, slow, 16) == pytest.approx(0.01 * 0.8 / NATIVE_SHARE)


def test_one_busy_moment_does_not_decide() -> None:
    found = {board: Steps((0.001,) * 19 + (1.0,)) for board in RELATIVE}
    assert corrected(0.01, RELATIVE, found, 16) == 0.01


def test_a_quantile_is_a_value_of_the_sample() -> None:
    assert [quantile([3, 1, 2], share) for share in (0.0, 0.5, 1.0)] == [1, 2, 3]


@settings(max_examples=60, deadline=None)
@given(st.floats(1e-5, 0.05))
def test_the_demo_ends_in_time_wherever_it_can_and_never_runs_below_what_was_measured(
    measured: float,
) -> None:
    scale = settled(PLAN, Measured(measured, 0.001))
    assert scale.seconds_per_sample >= measured
    least = 2 * PLAN.batch * len(RELATIVE)
    assert least <= scale.budget <= PLAN.samples
    expected = estimate_seconds(PLAN, scale.budget, scale.seconds_per_sample)
    assert expected <= WANTED_SECONDS or scale.budget == least


def test_a_quick_machine_gets_rounds_that_are_long_enough_to_see() -> None:
    scale = settled(PLAN, Measured(1e-6, 1e-6))
    assert scale.budget / 3 / 0.2 * scale.seconds_per_sample == pytest.approx(2.5)


def test_a_given_budget_is_kept() -> None:
    given_budget = Plan(**{name: getattr(PLAN, name) for name in PLAN.__struct_fields__} | {"budget": 300})
    assert fitting(given_budget, 1.0) == 300
    assert settled(given_budget, Measured(1.0, 0.1)).budget == 300


def test_boards_of_one_kind_have_names_of_their_own() -> None:
    ids = named(len(KINDS) + 2)
    assert len(ids) == len(KINDS) + 2
    assert ids["rpi4"] == ids["rpi4-2"] == "rpi4"
    assert list(ids)[:4] == ["rpi4", "rpi5", "visionfive2", "n100"]


def _plan(tmp_path: Path, **changes: object) -> Plan:
    values: dict[str, object] = {
        "task": "digits",
        "pool": "digits",
        "board_count": 4,
        "rounds": 2,
        "budget": None,
        "w_e": 0.25,
        "seed": 1,
        "out": tmp_path,
    }
    return plan(**(values | changes))  # type: ignore[arg-type]


def test_the_plan_knows_its_data_and_the_speeds_of_its_boards(tmp_path: Path) -> None:
    found = _plan(tmp_path)
    assert (found.samples, found.batch, found.pool_path) == (1437, 16, "builtin")
    assert found.relative["rpi4"] == 1.0


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"task": "chess"}, "chess"),
        ({"pool": "digits=/nowhere"}, "--pool NAME=FOLDER"),
        ({"pool": "my pool"}, "--pool 'my pool'"),
        ({"board_count": 1}, "--boards 1: from 2"),
        ({"budget": 63}, "64 at least"),
    ],
)
def test_a_demo_that_cannot_be_is_refused_by_name(
    tmp_path: Path, changes: dict[str, object], words: str
) -> None:
    with pytest.raises(PlanError, match=words):
        _plan(tmp_path, **changes)
    assert list(tmp_path.iterdir()) == []
