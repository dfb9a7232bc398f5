"""Asynchronous boards that are late, too fast, killed or failing, and a coordinator that is killed, too."""

from typing import Any

import pytest

from coordinator import events as ev
from edged.messages import Attend, Part, Refused, StandBy, Train
from tests.coordinator.play import birth
from tests.coordinator.pushers import Pushers


def newest(run: Pushers, board: str) -> Any:
    run.post()
    return run.workers[board].order


def test_an_update_older_than_the_bound_is_dropped_and_its_samples_are_dealt_again() -> None:
    run = Pushers("ab", asynchronous={"bound": 1})
    run.post()
    first = newest(run, "b").pieces
    run.push("a")
    run.push("a")
    run.post()
    run.report("b")
    assert not run.collects
    run.post()
    assert run.workers["b"].refused == ["run1.1.b.1"]
    assert run.notes["stale_updates"] == 1
    assert newest(run, "b").pieces == first
    assert newest(run, "b").order == "run1.1.b.2"
    row = run.rows["push"][-1]
    assert (row["status"], row["staleness"], row["model"]) == ("refused", 2, None)
    assert "2 versions old, the bound is 1" in row["reason"]


def test_an_update_that_became_too_old_while_it_waited_is_dropped() -> None:
    run = Pushers("abc", asynchronous={"bound": 1})
    run.post()
    for board in "abc":
        run.report(board)
    for board in "abc":
        run.upload(f"run1.1.{board}.1")
    run.apply()
    run.apply()
    assert not run.applies
    assert [row["status"] for row in run.rows["push"]] == ["accepted", "accepted", "refused"]
    run.settle()
    assert len(run.places()) == len(set(run.places())) == 300


def test_a_fast_board_waits_for_the_slowest_and_is_told_so() -> None:
    run = Pushers("ab", asynchronous={"staleness": "ssp", "staleness_options": {"ahead": 2}})
    run.push("a")
    run.push("a")
    waits = newest(run, "a")
    assert isinstance(waits, Attend)
    assert waits.reason == "waits for b: 2 updates ahead of it, 2 at most"
    sent = len(run.workers["a"].accepted)
    run.wait(5.0)
    assert newest(run, "a") is waits
    assert sent == 2
    run.push("b")
    assert isinstance(newest(run, "a"), Train)


def test_nobody_waits_for_a_board_that_is_gone_or_fails_and_it_comes_back_beside_the_slowest() -> None:
    run = Pushers("ab", asynchronous={"staleness": "ssp", "staleness_options": {"ahead": 2}})
    run.push("a")
    run.push("a")
    assert isinstance(newest(run, "a"), Attend)
    run.feed(ev.Born(birth("b", run.workers["b"].boot, "closed")))
    assert isinstance(newest(run, "a"), Train)
    for _ in range(4):
        run.push("a")
    run.restart_board("b")
    run.post()
    pushes = run.state.pushes
    assert pushes is not None
    assert pushes.boards["b"].clock == pushes.boards["a"].clock == 6
    for _ in range(2):
        run.push("a")
    assert isinstance(newest(run, "a"), Attend)


def test_a_board_that_comes_back_does_not_wait_for_those_that_came_after_it() -> None:
    run = Pushers("a", asynchronous={"staleness": "ssp", "staleness_options": {"ahead": 2}})
    for _ in range(5):
        run.push("a")
    run.feed(ev.Born(birth("a", run.workers["a"].boot, "closed")))
    run.workers["b"] = type(run.workers["a"])("b")
    run.feed(ev.Born(birth("b", "b-1")))
    run.push("b")
    run.restart_board("a")
    assert isinstance(newest(run, "a"), Train)
    run.push("a")
    assert isinstance(newest(run, "a"), Train)


def test_a_board_that_keeps_failing_is_tried_more_and_more_rarely_and_holds_nobody() -> None:
    run = Pushers("ab", asynchronous={"staleness": "ssp"}, periods=9)
    for _ in range(3):
        run.post()
        run.abandon("b")
    pushes = run.state.pushes
    assert pushes is not None
    assert pushes.boards["b"].failures == 2
    assert pushes.members == ["a"]
    for _ in range(6):
        run.push("a", 0.1)
    assert isinstance(newest(run, "a"), Train)
    assert run.state.assignments["b"].order == "run1.1.b.2"
    run.wait(1.0)
    assert run.state.assignments["b"].order == "run1.1.b.3"
    run.push("b")
    assert pushes.boards["b"].failures == 0


def test_a_run_in_which_nothing_is_accepted_for_long_pauses_with_the_reason() -> None:
    run = Pushers("a")
    for _ in range(20):
        run.post()
        if not run.state.paused:
            run.abandon("a")
            run.wait(31.0)
    assert run.state.phase == "paused"
    (pause,) = run.rows["control"]
    assert (pause["what"], pause["who"], pause["reason"]) == ("pause", "", run.state.reason)
    run.restart_board("a")
    assert [message.reason for _, message in run.mail if isinstance(message, StandBy)] == [
        "the run is paused"
    ]
    assert "no memory" in run.state.reason
    run.feed(ev.Hold(False))
    assert (run.state.phase, run.state.open_count, run.state.reason) == ("running", 1, "")


def test_a_drained_board_gets_no_more() -> None:
    run = Pushers()
    run.feed(ev.Admission("c", "drain"))
    run.push("c")
    assert run.state.assignments["c"].status == "accepted"
    assert not [order for order in run.workers["c"].accepted if order != "run1.1.c.1"]
    run.settle()
    assert {row["board"] for row in run.rows["push"] if row["round"] == 3} == {"a", "b"}


def test_stopping_keeps_what_was_accepted_and_writes_its_rows() -> None:
    run = Pushers()
    run.push("a")
    run.push("b")
    run.post()
    run.report("c")
    run.upload()
    run.feed(ev.Halt("stopped by the operator"))
    assert run.finished == ev.Finished("run1", "stopped by the operator", False)
    row = run.rows["round"][-1]
    assert (row["accepted"], row["open"]) == (20, 0)
    assert row["accepted"] + row["returned"] == row["ordered"]
    run.apply()
    assert run.state.merges == 2
    assert run.notes["stray_merges"] == 1


def test_a_full_disk_pauses_the_run_and_resuming_applies_the_same_update() -> None:
    run = Pushers("a")
    run.post()
    run.report("a")
    run.upload()
    failed = run.applies.pop()
    run.feed(ev.ApplyFailed(failed.version, "No space left on device"))
    assert run.state.paused
    assert "run1.1.a.1 could not be applied: No space left" in run.state.reason
    run.wait(1.0)
    assert not run.applies
    run.feed(ev.Hold(False))
    assert run.applies == [failed]
    run.apply()
    assert run.state.accepted == 10


def test_an_update_that_cannot_be_used_costs_its_board_one_order() -> None:
    run = Pushers("a")
    run.post()
    run.report("a")
    run.upload()
    failed = run.applies.pop()
    run.feed(ev.ApplyFailed(failed.version, "tensor 'w' is missing", unusable=True))
    assert isinstance(run.mail[0][1], Refused)
    assert newest(run, "a").order == "run1.1.a.2"
    run.settle()
    assert len(run.places()) == len(set(run.places())) == 300


def test_a_stored_update_counts_though_its_board_is_restarted() -> None:
    run = Pushers("ab")
    run.post()
    run.report("a")
    run.upload()
    run.restart_board("a")
    run.apply()
    assert run.state.accepted == 10
    assert newest(run, "a").order == "run1.1.a.2"


def test_a_board_that_missed_its_acceptance_hears_it_with_its_next_order() -> None:
    run = Pushers("a")
    run.post()
    run.report("a")
    run.upload()
    run.apply()
    run.post(lose=True)
    run.wait(2.0)
    (again,) = [message for _, message in run.mail]
    assert isinstance(again, Train)
    assert (again.order, again.accepted) == ("run1.1.a.2", "run1.1.a.1")
    run.feed(ev.Reported(run.workers["a"].report()))
    run.post()
    assert run.workers["a"].accepted == ["run1.1.a.1"]
    assert run.notes["duplicate_reports"] == 1


@pytest.mark.parametrize("moment", ["ordered", "reported", "stored", "applied"])
def test_the_coordinator_may_be_killed_at_any_moment(moment: str) -> None:
    run = Pushers()
    run.push("b")
    run.post()
    if moment != "ordered":
        run.report("a")
    if moment in ("stored", "applied"):
        run.upload()
    cut_off = run.applies[:1] if moment == "applied" else []
    for effect in cut_off:
        run.made[effect.version] = effect.order  # the file is there, the state does not know it
    run.kill_coordinator()
    assert run.applies == cut_off or moment == "stored"
    run.settle()
    assert len(run.places()) == len(set(run.places())) == 300
    assert {row["model"]: row["order"] for row in run.rows["push"]} == {
        int(version.split(".")[1]): order for version, order in run.made.items()
    }


def test_waiting_for_slower_boards_is_told_by_board_with_its_joules() -> None:
    run = Pushers(
        "ab", period=20, periods=4, asynchronous={"staleness": "ssp", "staleness_options": {"ahead": 1}}
    )
    run.push("a")
    waits = newest(run, "a")
    assert isinstance(waits, Attend)
    run.push("b")
    first = run.rows["round"][-1]["waited"]
    assert first["a"] == {
        "seconds": None,
        "joules": None,
        "basis": "",
        "reason": "a wait is not over, or its account has not come",
    }
    assert first["b"] == {"seconds": 0.0, "joules": 0.0, "basis": "", "reason": ""}
    run.close("a", waits.order, wait=Part(3.0, 6.0))
    run.close("a", waits.order, wait=Part(3.0, 6.0))  # said again
    run.close("a", "run1.1.a.1", wait=Part(9.0, 9.0))  # between acceptance and next order: not for others
    run.push("a")
    again = newest(run, "a")
    run.push("b")
    second = run.rows["round"][-1]["waited"]["a"]
    assert (second["seconds"], second["joules"], second["basis"]) == (3.0, 6.0, "measured")
    assert second["reason"] == first["a"]["reason"], "the next one goes on"
    run.close("a", again.order, wait=Part(2.0, None))
    run.push("a")
    run.push("b")
    third = run.rows["round"][-1]["waited"]["a"]
    assert (third["seconds"], third["joules"]) == (2.0, None)
    assert third["reason"] == "the joules of a wait are not known"


def test_where_nobody_waits_for_others_no_waits_are_told() -> None:
    run = Pushers("ab", period=20)
    run.push("a")
    run.push("b")
    assert run.rows["round"][-1]["waited"] == {}
