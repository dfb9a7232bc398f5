"""What a run refuses: by name, counted, and without harm to the round."""

from typing import Any

import pytest
from msgspec.structs import replace

from coordinator import events as ev
from edged.messages import Accepted, Manifest, Part, Parts, Refused, Steady
from tests.coordinator.play import Play, birth, restored


def test_two_boards_with_one_id_get_no_orders_and_are_both_named() -> None:
    play = Play()
    play.feed(ev.Born(birth("b", "boot-rival")))
    play.feed(ev.Born(birth("b", conn=2)))
    assert play.notes("duplicate_ids")
    play.end_round("ac")
    assert set(play.shares()) == {"a", "c"}
    assert "duplicate id" in play.rounds.lack("b", play.now)


@pytest.mark.parametrize(
    ("order", "text"),
    [
        ("other.1.a.1", "another run"),
        ("run1.7.a.1", "another round"),
        ("run1.1.b.1", "another board"),
        ("run1.1.a.2", "another attempt"),
    ],
)
def test_a_report_of_something_else_is_refused_by_name(order: str, text: str) -> None:
    play = Play()
    play.feed(ev.Reported(play.report("a", order=order)))
    assert text in play.notes("stray_reports")[0]
    assert isinstance(play.said["a"][-1], Refused)
    assert play.state.assignments["a"].open


def test_a_report_of_another_process_does_not_touch_the_order() -> None:
    play = Play()
    play.feed(ev.Reported(play.report("a", boot="boot-evil")))
    assert "another process" in play.notes("stray_reports")[0]
    assert play.state.assignments["a"].open


def test_a_second_copy_of_a_report_counts_once() -> None:
    play = Play()
    play.feed(ev.Reported(play.report("a")))
    again = play.feed(ev.Reported(play.report("a")))
    assert not [e for e in again if isinstance(e, ev.Collect)]
    play.feed(ev.Stored("a", play.state.assignments["a"].order))
    play.feed(ev.Stored("a", play.state.assignments["a"].order))
    answer = play.feed(ev.Reported(play.report("a")))
    assert [e.message for e in answer if isinstance(e, ev.Send)] == [
        Accepted(play.state.assignments["a"].order, "coord", 1)
    ]
    assert play.state.accepted == 334
    assert len(play.notes("duplicate_reports")) == 2


def test_a_report_under_an_older_term_brings_the_order_again() -> None:
    play = Play()
    report = play.report("a")
    restored(play)
    sent = len(play.said["a"])
    play.feed(ev.Born(birth("a")))
    play.feed(ev.Reported(report))
    assert play.notes("older_terms")
    assert len(play.said["a"]) > sent
    play.feed(ev.Reported(replace(report, term=2)))
    assert play.state.assignments["a"].status == "reported"


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"samples": 9999}, "9999 samples reported, 334 ordered"),
        ({"parts": Parts(Part(1e6, 1.0))}, "after the order went out"),
        ({"parts": Parts(Part(0.0, 1.0))}, "no training"),
        ({"manifest": None}, "announces no update"),
        ({"manifest": Manifest(10**9, 1000, "a" * 64)}, "announces 1000000000 bytes"),
        ({"steady": Steady(335, 0.1, None)}, "steady part"),
    ],
)
def test_a_report_that_cannot_be_true_is_refused(changes: dict[str, object], text: str) -> None:
    play = Play()
    play.feed(ev.Reported(play.report("a", **changes)))
    assert text in play.notes("refused_reports")[0]
    assert play.state.assignments["a"].status == "refused"
    play.end_round("bc")
    assert play.state.round == 2


def test_an_update_that_fails_its_check_is_refused_and_the_round_goes_on() -> None:
    play = Play()
    play.feed(ev.Reported(play.report("a")))
    play.feed(ev.Stored("a", play.state.assignments["a"].order, "conv1.weight has a NaN"))
    assert isinstance(play.said["a"][-1], Refused)
    play.end_round("bc")
    assert play.rows("round")[0]["accepted"] == 666


def test_a_strict_run_refuses_to_start_without_a_board_that_lacks_something() -> None:
    play = Play("", strict_boards=True)
    play.feed(ev.Born(birth("a")))
    play.feed(ev.Born(replace(birth("b"), pools={})))
    play.wait(3)
    finished = [e for e in play.effects if isinstance(e, ev.Finished)]
    assert not finished[0].complete
    assert "b has no pool digits" in finished[0].reason


def test_joules_of_a_dead_board_are_its_last_telemetry_and_say_so() -> None:
    play = Play()
    order = play.state.assignments["c"].order
    play.feed(ev.Metered("c", "boot-c", order, 12.5, "measured"))
    play.feed(ev.Born(birth("c", "boot-new")))
    play.end_round("ab")
    row = next(r for r in play.rows("board_round") if r["board"] == "c")
    assert row["joules"] == 12.5
    assert row["flags"] == ["truncated"]


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"policy": "nope"}, "no policy 'nope'"),
        ({"policy": "omnilearn"}, "not for pma"),
        ({"w_e": 7.0}, "between 0 and 1"),
        ({"policy_options": {"x": 1}}, "no option x"),
        ({"fixed_cost": "maybe"}, "none or fit"),
        ({"energy_window": "week"}, "compute or round"),
        ({"optimizer": "xx"}, "optimizer is sgd or adam or adamw, not 'xx'"),
        ({"optimizer_state": "xx"}, "optimizer_state is reset"),
        ({"learning_rate": -1.0}, "learning_rate must be above 0"),
        ({"learning_rate_batch": 32}, "learning_rate_batch is for ddp and hfl-ddp"),
        ({"momentum": 1.0}, "momentum"),
        ({"weight_decay": -0.1}, "weight_decay"),
    ],
)
def test_a_wrong_policy_or_weight_is_refused_before_a_run_begins(changes: dict[str, Any], text: str) -> None:
    with pytest.raises(ValueError, match=text):
        Play(**changes)


def test_a_named_weighting_is_the_adaptive_policy_with_its_weights() -> None:
    control = Play(policy="low-energy").state.control
    assert (control.policy, control.w_t, control.w_e) == ("adaptive", 0.75, 0.25)


def test_a_strict_run_gives_up_on_a_named_board_that_does_not_come() -> None:
    play = Play("ab", boards=("a", "b", "zzz"), strict_boards=True)
    play.wait(7)
    assert play.state.phase == "gathering"
    play.wait(1)
    finished = [e for e in play.effects if isinstance(e, ev.Finished)]
    assert "zzz was never heard of" in finished[0].reason
    assert play.state.round == 0
