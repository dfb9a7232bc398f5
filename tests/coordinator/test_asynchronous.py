"""Asynchronous updates, event by event: who gets which order when, what counts, who waits, how a run ends."""

from typing import Any

import pytest
from msgspec import structs

from coordinator import events as ev
from coordinator.controller import Weights
from edged.messages import Accepted, Part, Parts, Refused, StandBy, Train
from tests.coordinator.play import MODEL, birth
from tests.coordinator.pushers import Pushers


def newest(run: Pushers, board: str) -> Any:
    run.post()
    return run.workers[board].order


def test_every_board_has_an_order_of_its_own_from_the_newest_version() -> None:
    run = Pushers()
    first = {board: newest(run, board) for board in "abc"}
    assert {order.order for order in first.values()} == {f"run1.1.{board}.1" for board in "abc"}
    assert {(order.model, order.samples, order.grain) for order in first.values()} == {
        ("run1.0", 10, "gradient")
    }
    assert [effect.board for effect in run.deliveries] == ["a", "b", "c"]
    run.push("a")
    assert run.state.merges == 1
    assert newest(run, "a").order == "run1.1.a.2"
    assert newest(run, "a").model == "run1.1"
    assert newest(run, "b").model == "run1.0"
    assert run.deliveries[-1] == ev.Deliver("run1.1", "a")


def test_an_update_is_saved_before_it_is_applied_and_accepted_after_that() -> None:
    run = Pushers("a")
    run.post()
    run.report("a")
    kinds: list[str] = []
    for event in (ev.Stored("a", "run1.1.a.1"), ev.Applied("run1.1", MODEL)):
        kinds += [type(effect).__name__ for effect in run.rounds.handle(event, run.now)]
    said = [kind for kind in kinds if kind in ("Save", "Apply", "Record", "Send", "Deliver")]
    assert said == ["Save", "Apply", "Record", "Save", "Send", "Send", "Deliver"]


def test_updates_are_applied_one_after_another_in_order_of_arrival() -> None:
    run = Pushers()
    run.post()
    for board in "cab":
        run.report(board)
    for board in "cab":
        run.upload(f"run1.1.{board}.1")
    assert [effect.order for effect in run.applies] == ["run1.1.c.1"]
    for _ in range(3):
        run.apply()
    assert [(effect.base, effect.version, effect.board) for effect in run.ever] == [
        ("run1.0", "run1.1", "c"),
        ("run1.1", "run1.2", "a"),
        ("run1.2", "run1.3", "b"),
    ]
    assert [row["staleness"] for row in run.rows["push"]] == [0, 1, 2]


@pytest.mark.parametrize(
    ("asynchronous", "ages", "rates"),
    [
        ({}, (0, 1, 2), (0.1, 0.1, 0.1)),
        ({"staleness": "dynsgd"}, (0, 1, 2), (0.1, 0.05, 0.1 / 3)),
        ({"staleness": "consgd"}, (0, 1, 2), (0.1 / 3,) * 3),
        ({"grain": "model"}, (0, 1, 2), (0.6, 0.6 * 2**-0.5, 0.6 * 3**-0.5)),
        ({"grain": "model", "staleness": "hinge", "staleness_options": {"b": 1}}, (0, 1, 2), (0.6, 0.6, 0.4)),
    ],
)
def test_the_rule_makes_the_rate_of_each_update(
    asynchronous: dict[str, Any], ages: tuple[int, ...], rates: tuple[float, ...]
) -> None:
    run = Pushers(asynchronous=asynchronous)
    for board in "abc":
        run.push(board)
    assert tuple(row["staleness"] for row in run.rows["push"]) == ages
    assert tuple(effect.rate for effect in run.ever) == pytest.approx(rates)


def test_fedasyncs_factor_is_unchanged_after_a_hundred_updates_of_equal_staleness() -> None:
    run = Pushers("ab", asynchronous={"grain": "model"}, period=100, periods=60)
    while len(run.ever) < 110:
        for board in "ab":
            run.push(board)
    equal = [effect.rate for effect in run.ever if effect.version != "run1.1"]
    assert equal[:100] == [pytest.approx(0.6 * 2**-0.5)] * 100
    assert len(set(equal[:100])) == 1


def test_unequal_batches_are_scaled_by_the_mean_one() -> None:
    run = Pushers("ac", policy="omnilearn", policy_options={"deadband": 0.0}, period=200)
    for _ in range(10):
        for board in "ac":
            run.push(board)
    assert run.state.round == 2
    for board in "ac":
        run.push(board)
        run.push(board)
    sizes = {row["board"]: row["samples"] for row in run.rows["push"]}
    assert sizes == {"a": 16, "c": 4}
    assert {row["board"]: row["scale"] for row in run.rows["push"]} == {"a": 1.6, "c": 0.4}
    rates = {effect.board: effect.rate for effect in run.ever}
    assert rates == pytest.approx({"a": 0.16, "c": 0.04})
    plain = Pushers("ac", asynchronous={"scale": "none"})
    plain.push("a")
    assert plain.rows["push"][0]["scale"] == 1.0


def test_a_run_stops_at_periods_times_budget_exactly() -> None:
    run = Pushers(period=103, periods=3, batch=10)
    run.settle()
    assert run.finished == ev.Finished("run1", "all 309 samples are accepted", True)
    assert run.state.accepted == 309
    assert len(run.places()) == len(set(run.places())) == 309
    rows = run.rows["round"]
    assert [row["round"] for row in rows] == [1, 2, 3]
    assert sum(row["accepted"] for row in rows) == 309 == rows[-1]["accepted_in_all"]
    assert sum(sum(row["shares"].values()) for row in rows) == 309
    assert min(row["samples"] for row in run.rows["push"]) < 10
    run.post()
    assert all(worker.order is None for worker in run.workers.values())


def test_an_accepted_board_hears_so_before_it_stands_by_at_the_end() -> None:
    run = Pushers("a", period=10, periods=1)
    run.post()
    run.report("a")
    run.upload()
    run.apply()
    assert [type(message) for _, message in run.mail] == [Accepted, StandBy]


def test_period_rows_add_up() -> None:
    run = Pushers("abc", period=100, periods=4, asynchronous={"bound": 1})
    run.settle()
    for row in run.rows["round"]:
        assert row["accepted"] + row["returned"] + row["open"] == row["ordered"]
        assert row["outstanding"] == row["ordered"] - row["accepted"]
        assert sum(row["dropped"].values()) > 0
    boards = run.rows["board_round"]
    pushes = run.rows["push"]
    for number in (1, 2, 3, 4):
        for board in "abc":
            row = next(r for r in boards if (r["round"], r["board"]) == (number, board))
            mine = [r for r in pushes if (r["round"], r["board"]) == (number, board)]
            accepted = [r for r in mine if r["status"] == "accepted"]
            assert row["updates"] == len(accepted) == sum(row["staleness"].values())
            assert row["samples"] == sum(r["samples"] for r in accepted)
            if accepted:
                assert row["seconds"] == pytest.approx(sum(r["seconds"] for r in accepted))
                assert row["joules"] == pytest.approx(2 * row["seconds"])
            else:
                assert (row["seconds"], row["joules"]) == (None, None)
            assert row["dropped"] == len(mine) - len(accepted)
    versions = [row["versions"] for row in run.rows["round"]]
    assert [first for first, _ in versions] == [0, *(last for _, last in versions[:-1])]
    assert versions[-1][1] == run.state.merges == sum(row["updates"] for row in boards)


def test_parts_of_closed_orders_add_up_in_their_period() -> None:
    run = Pushers("a", period=20, periods=2)
    run.push("a")
    run.close("a", "run1.1.a.1", compute=Part(1.0, 5.0), wait=Part(2.0, 1.0), overhead=Part(0.5, 0.5))
    run.push("a")
    run.close("a", "run1.1.a.2", compute=Part(1.0, None), wait=Part(1.0, 0.5))
    row = run.rows["board_round"][0]
    assert row["closed"] == 1
    assert row["parts"]["wait"] == {"seconds": 2.0, "joules": 1.0}
    assert row["parts"]["lost"] == {"seconds": 0.0, "joules": None}
    whole = run.state.pushes
    assert whole is not None
    assert whole.tallies["a"].parts == Parts(compute=Part(1.0, None), wait=Part(1.0, 0.5))
    assert [closed["order"] for closed in run.rows["closed"]] == ["run1.1.a.1", "run1.1.a.2"]


def test_a_board_whose_order_is_longer_than_a_period_has_lost_nothing() -> None:
    run = Pushers("ab", period=20)
    run.push("b")
    run.push("a")
    run.close("b", "run1.1.b.1", compute=Part(1.0, 5.0))
    run.push("a")
    run.push("a")
    rows = {(row["round"], row["board"]): row for row in run.rows["board_round"]}
    assert rows[2, "b"]["status"] == "working"
    assert (rows[2, "b"]["samples"], rows[2, "b"]["closed"]) == (0, 1)
    assert "b" not in run.rows["round"][1]["shares"]


def test_a_pause_lets_orders_end_and_resuming_goes_on_in_the_same_period() -> None:
    run = Pushers()
    run.push("a")
    run.feed(ev.Hold(True))
    for board in "abc":
        run.push(board)
    assert (run.state.phase, run.state.accepted, run.state.round) == ("paused", 40, 1)
    run.feed(ev.Hold(False))
    assert (run.state.phase, run.state.open_count, run.state.round) == ("running", 3, 1)
    run.settle()
    assert len(run.places()) == len(set(run.places())) == 300
    assert [row["round"] for row in run.rows["decision"]] == [1, 2, 3]


def test_a_board_that_joins_in_mid_period_gets_an_order_at_once_of_the_mean_size() -> None:
    run = Pushers("ab")
    run.push("a")
    run.workers["c"] = type(run.workers["a"])("c")
    run.feed(ev.Born(birth("c", "c-1")))
    assert newest(run, "c").samples == 10
    assert newest(run, "c").model == "run1.1"


def test_sizes_follow_speed_at_the_turn_of_a_period() -> None:
    run = Pushers("abc", policy="omnilearn", period=120, periods=5)
    for _ in range(4):
        for board in "abc":
            run.push(board)
    told = run.rounds.preview(Weights(1.0, 0.0))
    sizes = run.rows["decision"][-1]["decision"]["shares"]
    assert sizes == {"a": 17, "b": 9, "c": 4}
    assert told is not None
    assert sum(told.shares.values()) == 30


def test_a_drained_board_ends_its_order_and_gets_none_in_the_present_period_already() -> None:
    run = Pushers("ab", period=1000)
    run.push("a")
    run.feed(ev.Admission("b", "drain", "ann@desk"))
    run.feed(ev.Weigh(0.5, 0.5, "ann@desk"))
    run.push("b")
    run.wait(5.0)
    assert run.state.round == 1
    assert [row["status"] for row in run.rows["push"]] == ["accepted", "accepted"]
    assert not run.state.assignments["b"].open
    assert [(row["what"], row["from_round"]) for row in run.rows["control"]] == [("drain", 1), ("weights", 2)]


def test_a_report_of_another_period_is_refused_in_that_word() -> None:
    run = Pushers("ab", period=1000)
    run.post()
    order = run.workers["a"].order
    assert isinstance(order, Train)
    late = structs.replace(run.workers["a"].report(), order="run1.7.a.1")
    run.feed(ev.Reported(late))
    refusal = next(message for board, message in run.mail if board == "a" and isinstance(message, Refused))
    assert refusal.reason == "is of another period (7); the open order is run1.1.a.1"
