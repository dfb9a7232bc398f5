"""OmniLearn's levels with synchronous gradients in virtual time: how much of uniform time is saved."""

import pytest

from benchmarks.global_batch import RULES, trace
from coordinator.simulator import levels
from coordinator.simulator.fleetfile import read
from coordinator.simulator.levels import CORES, LEVELS, Level, expected_cut
from coordinator.simulator.profiles import PROFILES
from coordinator.simulator.synchronous import PLANS, Row, changing, fixed, play
from edged.groups import Stepwise
from edged.stepwise import Adjuster


def by_batches(rows: tuple[Row, ...]) -> dict[str, Row]:
    return {row.batches: row for row in rows}


@pytest.mark.parametrize("model", PROFILES)
@pytest.mark.parametrize(("level", "ideal"), list(zip(LEVELS, (0.0, 1 / 3, 1 / 2, 2 / 3), strict=True)))
def test_static_batches_save_what_the_cores_promise_before_communication(
    level: Level, ideal: float, model: str
) -> None:
    rows = by_batches(fixed(level, PROFILES[model]))
    assert expected_cut(CORES["BSP"][level]) == pytest.approx(ideal)
    assert rows["static"].cut == pytest.approx(ideal, abs=0.02)
    assert rows["static"].cut_with_communication <= rows["static"].cut + 1e-9
    assert 0 <= rows["static"].cut - rows["dynamic"].cut < 0.02


@pytest.mark.parametrize("model", ["resnet18", "vgg11"])
def test_dynamic_batches_follow_a_change_of_cores_within_two_adjustments(model: str) -> None:
    rows = by_batches(changing(PROFILES[model]))
    levels_passed = len(levels.SCHEDULES[model].changes)
    assert len(rows["dynamic"].followed) == levels_passed == 6
    assert all(found is not None and 1 <= found <= 2 for found in rows["dynamic"].followed)
    # Batches by the cores at the start know of no change: they are right again only at HL1.
    assert rows["static"].followed == (None,) * 5 + (0,)
    assert rows["static"].cut == 0
    assert rows["dynamic"].cut > 0.4


@pytest.mark.parametrize("change", [50, 60, 75])
def test_a_change_of_cores_amid_a_round_is_followed_within_two_adjustments(change: int) -> None:
    """Up to then all cores are alike and heard every 20 steps, so the first time after it is a blend."""
    adjuster = Adjuster(Stepwise("omnilearn", 20, 0.5, 0.05), [3200] * 4, 100)
    sizes, heard = [32] * 4, [0.0] * 4
    changes = 0
    for step in range(140):
        speeds = CORES["BSP"]["hl1" if step < change else "hl8"]
        heard = [t + n / speed for t, n, speed in zip(heard, sizes, speeds, strict=True)]
        if (step + 1) % 20 == 0:
            changes += adjuster.hear(heard, [20 * n for n in sizes])
            sizes, heard = adjuster.sizes(128) if adjuster.speeds else sizes, [0.0] * 4
            assert sum(sizes) == 128
    assert changes <= 2
    assert sizes == [16, 16, 11, 85]


@pytest.mark.parametrize("batches", PLANS)
def test_every_step_has_exactly_the_global_batch(batches: str) -> None:
    model = PROFILES["resnet18"]
    for row in [*fixed("hl8", model), *changing(model)]:
        if row.batches == batches:
            assert row.global_batch == (128, 128)
            assert row.samples == row.epochs * 12_800


def test_the_same_cores_let_the_additive_rule_drift() -> None:
    speeds = CORES["BSP"]["hl8"]
    totals = {name: [sum(sizes) for sizes in trace(rule, speeds)] for name, rule in RULES.items()}
    assert totals["edged"] == [128] * 7
    assert totals["released code"] == [128, 128, 129, 131, 131, 131, 131]
    assert trace(RULES["released code"], speeds)[1] == (19, 19, 7, 83)
    assert [round(total) for total in totals["2020 paper"]] == [128] + [236] * 6


def test_equal_cores_make_all_batches_alike() -> None:
    uniform, static, dynamic = fixed("hl1", PROFILES["vgg11"])
    assert uniform.seconds == static.seconds == dynamic.seconds
    assert dynamic.adjustments == 0


def test_the_fleets_that_ship_have_the_cores_of_the_table() -> None:
    for level in LEVELS:
        assert tuple(board.cores for board in read(level).board) == CORES["BSP"][level]
        assert sum(CORES["BSP"][level]) == 48
        assert sum(CORES["ASP"][level]) == 40


def test_each_published_schedule_climbs_to_hl8_and_comes_back() -> None:
    resnet18 = levels.SCHEDULES["resnet18"]
    found = [resnet18.level(epoch) for epoch in (0, 4, 5, 9, 10, 14, 15, 24, 25, 29, 30, 34, 35, 44)]
    assert found == [level for level in ("hl1", "hl2", "hl4", "hl8", "hl4", "hl2", "hl1") for _ in range(2)]
    assert {name: schedule.epochs for name, schedule in levels.SCHEDULES.items()} == {
        "resnet18": 45,
        "resnet50": 200,
        "alexnet": 160,
        "vgg11": 35,
    }


def test_a_worker_without_noise_spends_what_its_profile_says() -> None:
    model = PROFILES["resnet50"]
    fleet = levels.fleet((4, 28), model, "two")
    (first,) = play(*PLANS["uniform"], lambda _: fleet, 1)
    assert first.together is not None
    assert first.together.compute_seconds[0] == pytest.approx(3200 * model.seconds_per_sample(4))
    assert first.together.communication_seconds == pytest.approx(
        100 * (model.exchange_seconds(2) + model.update_seconds)
    )
    assert first.shares["worker-0"] == 100 * levels.WORKER_BATCH
