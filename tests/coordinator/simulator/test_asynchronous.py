"""Asynchronous updates in virtual time: equalised work narrows update counts and staleness."""

import pytest
from msgspec import structs

from coordinator.simulator.asynchronous import Row, play, rows, settings, workers
from coordinator.simulator.boards import Dropout
from coordinator.simulator.levels import LEVELS, Level
from coordinator.simulator.profiles import PROFILES
from coordinator.updates import updates
from edged.controls import AsynchronousSettings

MODEL = PROFILES["resnet18"]


def by_run(found: tuple[Row, ...]) -> dict[str, Row]:
    return {f"{row.regime} {row.batches}": row for row in found}


def spreads(row: Row) -> tuple[float, float]:
    assert row.update_spread is not None
    assert row.staleness_spread is not None
    return row.update_spread, row.staleness_spread


@pytest.mark.parametrize("noise", [0.0, 0.05])
@pytest.mark.parametrize("level", LEVELS)
def test_equalised_work_narrows_update_counts_and_staleness_at_every_level(
    level: Level, noise: float
) -> None:
    found = by_run(rows(level, MODEL, epochs=1, noise=noise))
    uniform = spreads(found["asp uniform"])
    for batches in ("asp static", "asp dynamic"):
        equalised = spreads(found[batches])
        if level == "hl1":
            assert equalised[0] <= uniform[0]
            assert equalised[1] <= uniform[1]
        else:
            assert equalised[0] < 0.6 * uniform[0]
            assert equalised[1] < 0.6 * uniform[1]


def test_every_run_of_a_level_stops_at_the_same_samples_whatever_its_regime() -> None:
    found = by_run(rows("hl8", MODEL, epochs=1))
    assert {row.samples for row in found.values()} == {12_800}
    assert found["asp uniform"].seconds < found["ddp uniform"].seconds
    assert found["ddp dynamic"].joules < found["ddp uniform"].joules
    assert sum(found["asp uniform"].staleness.values()) == sum(found["asp uniform"].updates) == 400


def test_the_distribution_of_staleness_is_told_by_worker() -> None:
    row = by_run(rows("hl8", MODEL, epochs=1))["asp uniform"]
    assert row.staleness_by_worker.keys() == {f"worker-{i}" for i in range(4)}
    slow, fast = row.staleness_by_worker["worker-0"], row.staleness_by_worker["worker-3"]
    # In the time of a slow worker's batch the fast one makes seven and the other slow ones two.
    assert max(slow, key=slow.__getitem__) in (8, 9)
    assert max(fast, key=fast.__getitem__) == 0
    assert row.staleness_quantiles == (0, 0, 0, 8, 9)


def test_the_same_seed_gives_the_same_order_of_updates_and_another_seed_another() -> None:
    boards = workers("hl4", MODEL, 0.05)

    def order(seed: int) -> list[str]:
        plan = settings("dynamic", boards, 1, seed, AsynchronousSettings(allow_large=True))
        return [row["order"] for row in play(boards, plan)[0].rows["push"]]

    assert order(1) == order(1)
    assert order(1) != order(2)


@pytest.mark.parametrize("ahead", [1, 3])
def test_with_bounded_staleness_no_worker_is_further_ahead_than_that(ahead: int) -> None:
    boards = workers("hl8", MODEL)
    chosen = AsynchronousSettings(staleness="ssp", staleness_options={"ahead": ahead}, allow_large=True)
    world, found = play(boards, settings("uniform", boards, 1, 1, chosen))
    clocks = dict.fromkeys(found.counts, 0)
    for row in world.rows["push"]:
        clocks[row["board"]] += 1
        assert max(clocks.values()) - min(clocks.values()) <= ahead
    waits = [row["parts"]["wait"]["seconds"] for row in world.rows["closed"] if row["board"] == "worker-3"]
    assert sum(waits) > 0.5 * world.now


def test_updates_older_than_the_bound_are_dropped_and_their_samples_dealt_again() -> None:
    boards = workers("hl8", MODEL)
    plan = settings("uniform", boards, 1, 1, AsynchronousSettings(bound=5, allow_large=True))
    world, found = play(boards, plan)
    assert found.dropped > 0
    assert max(found.all_ages) <= 5
    assert world.rounds.state.accepted == 12_800


def test_whole_models_are_mixed_in_a_period_each() -> None:
    boards = workers("hl4", MODEL)
    chosen = AsynchronousSettings(grain="model")
    for plan in ("uniform", "dynamic"):
        world, found = play(boards, settings(plan, boards, 4, 1, chosen))
        assert world.rounds.state.accepted == 4 * 12_800
        assert {row["scale"] for row in world.rows["push"]} == {1.0}
        assert all(0 < row["factor"] <= 1 for row in world.rows["push"])
        assert sum(found.counts.values()) < 200


def test_a_worker_that_dies_is_missed_and_the_run_still_gets_exactly_its_samples() -> None:
    boards = workers("hl4", MODEL)
    falling = structs.replace(boards.board[2], dropouts=(Dropout(40.0, 60.0),))
    boards = structs.replace(boards, board=(*boards.board[:2], falling, boards.board[3]))
    plan = settings("dynamic", boards, 1, 1, AsynchronousSettings(allow_large=True))
    world, found = play(boards, plan)
    assert world.rounds.state.accepted == 12_800
    assert found.counts["worker-2"] > 0


def test_without_an_accepted_update_there_is_no_distribution() -> None:
    with pytest.raises(ValueError, match="no update was accepted"):
        updates([{"status": "refused"}], ["a"])
