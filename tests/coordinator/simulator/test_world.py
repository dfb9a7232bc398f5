"""Whole runs under virtual time: what the controller reaches, and that no sample is lost or doubled."""

import statistics

from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.simulator.boards import Dropout, Throttling, VirtualBoard
from coordinator.simulator.world import World
from edged.controls import RunSettings
from edged.messages import Piece

FOUR = (
    VirtualBoard("n100", 400, 15, 6),
    VirtualBoard("pi4", 100, 6, 2),
    VirtualBoard("pi5", 250, 9, 3),
    VirtualBoard("vf2", 50, 5, 3),
)


def plan(**changes: object) -> RunSettings:
    base = {
        "task": "t",
        "pool": "p",
        "budget": 8000,
        "rounds": 6,
        "batch": 32,
        "learning_rate": 0.1,
        "seed": 1,
    }
    return RunSettings(**{**base, **changes})  # type: ignore[arg-type]


def test_after_two_rounds_everybody_finishes_together() -> None:
    world = World(FOUR, plan(), 20000).run()
    third = [row for row in world.rows["board_round"] if row["round"] == 3]
    seconds = [row["seconds"] for row in third]
    assert statistics.pstdev(seconds) / statistics.mean(seconds) <= 0.02
    shortest = 8000 / sum(board.samples_per_second for board in FOUR)
    assert max(seconds) <= 1.01 * shortest


def test_a_straggler_gets_fewer_samples_and_a_throttled_board_fewer_than_before() -> None:
    slowed = VirtualBoard("n100", 400, 15, 6, throttlings=(Throttling(60.0, 0.25),))
    world = World((slowed, *FOUR[1:]), plan(rounds=12), 20000).run()
    shares = [row["shares"]["n100"] for row in world.rows["round"]]
    assert world.rows["round"][1]["shares"]["vf2"] < world.rows["round"][1]["shares"]["pi5"]
    assert shares[-1] < 0.5 * max(shares)


def test_waiting_is_accounted_for_in_every_order() -> None:
    world = World(FOUR, plan(policy="equal"), 20000).run()
    closed = [row for row in world.rows["closed"] if row["round"] == 1]
    parts = {row["board"]: row["parts"] for row in closed}
    assert parts["vf2"]["wait"]["seconds"] == 0
    assert parts["n100"]["wait"]["seconds"] == 40 - 5
    assert parts["n100"]["wait"]["joules"] == 35 * 6


def test_a_board_without_a_meter_has_no_joules_rather_than_none_used() -> None:
    bare = VirtualBoard("n100", 400, 15, 6, metered=False)
    world = World((bare, *FOUR[1:]), plan(), 20000).run()
    row = next(row for row in world.rows["board_round"] if row["board"] == "n100")
    assert row["joules"] is None
    assert world.rows["round"][0]["joules_unknown_of"] == ["n100"]


def accepted_places(world: World) -> list[tuple[int, int]]:
    orders = {**world.orders}
    rows = [row for row in world.rows["board_round"] if row["status"] == "accepted"]
    pieces: list[Piece] = [piece for row in rows for piece in orders[row["order"]].pieces]
    return [(piece.epoch, place) for piece in pieces for place in range(piece.start, piece.stop)]


@settings(max_examples=40, deadline=None)
@given(data=st.data())
def test_whatever_dies_each_sample_counts_exactly_once(data: st.DataObject) -> None:
    number = data.draw(st.integers(1, 5))
    boards = [
        VirtualBoard(
            f"b{i}",
            data.draw(st.floats(5, 500)),
            6,
            2,
            noise=0.05,
            upload_seconds=data.draw(st.floats(0, 5)),
            dropouts=tuple(
                Dropout(data.draw(st.floats(1, 200)), data.draw(st.floats(1, 90)))
                for _ in range(data.draw(st.integers(0, 2)))
            ),
        )
        for i in range(number)
    ]
    budget, rounds, pool = (
        data.draw(st.integers(5, 300)),
        data.draw(st.integers(1, 6)),
        data.draw(st.integers(7, 400)),
    )
    world = World(boards, plan(budget=budget, rounds=rounds), pool, seed=data.draw(st.integers(0, 9))).run(
        1e6
    )
    assert world.finished is not None
    assert world.finished.complete, world.finished.reason
    for row in world.rows["round"]:
        assert row["accepted"] + row["outstanding"] == row["ordered"]
        assert row["returned"] == row["outstanding"]
    places = sorted(accepted_places(world))
    assert len(places) == len(set(places)) == rounds * budget
    whole_epochs = rounds * budget // pool
    assert places[: whole_epochs * pool] == [(e, i) for e in range(whole_epochs) for i in range(pool)]


def test_silos_step_apart_and_a_rank_that_dies_costs_its_silo_an_attempt() -> None:
    boards = (
        VirtualBoard("a", 400, 15, 5, silo="north"),
        VirtualBoard("b", 100, 6, 2, silo="north"),
        VirtualBoard("c", 50, 5, 3, silo="south"),
        VirtualBoard("d", 25, 5, 3, silo="south", dropouts=(Dropout(60.0, 50.0),)),
    )
    patience = {"deadline_floor_seconds": 1e6, "deadline_limit_seconds": 1e6}
    wanted = plan(regime="hfl-ddp", policy="adaptive", budget=4000, rounds=8, batch=64, **patience)
    world = World(boards, wanted, 4000).run()
    assert world.finished is not None
    assert world.finished.complete
    for row in world.rows["round"]:
        assert row["shares"]["a"] + row["shares"]["b"] == 2000
    assert world.rows["round"][-1]["shares"] == {"a": 1600, "b": 400, "c": 1333, "d": 667}
    assert [row["silos"]["south"]["attempts"] for row in world.rows["round"]] == [1, 2, *[1] * 6]
    assert {row["silos"]["north"]["attempts"] for row in world.rows["round"]} == {1}
