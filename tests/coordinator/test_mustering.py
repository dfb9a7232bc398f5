"""When ranks may meet: all are ready and alike, and reach each other; who is not is named and left out."""

from typing import Any

import pytest

from edged.messages import Join
from tests.coordinator.ranks import Ranks, rank_birth


def test_ranks_meet_when_all_are_ready_and_are_told_until_they_have_joined() -> None:
    play = Ranks()
    play.ready("ab")
    assert not [m for m in play.said["a"] if isinstance(m, Join)]
    play.ready("c")
    join = play.joined("b")
    assert [peer.address for peer in join.peers] == ["10.0.0.1", "10.0.0.2", "10.0.0.3"]
    assert (join.group, join.formation_seconds) == ("run1.all.1.1", 60.0)
    play.say("a", joined=join.group)
    play.wait(2.5)
    counts = {board: len([m for m in play.said[board] if isinstance(m, Join)]) for board in "abc"}
    assert counts == {"a": 1, "b": 2, "c": 2}


def test_a_group_that_all_still_hold_goes_on() -> None:
    play = Ranks()
    play.whole_round()
    play.ready(holds="run1.all.1.1")
    assert play.joined("a").peers == ()
    assert play.joined("a").group == "run1.all.1.1"
    other = Ranks()
    other.whole_round()
    other.ready("ab", holds="run1.all.1.1")
    other.ready("c")
    assert len(other.joined("a").peers) == 3
    assert other.joined("a").group == "run1.all.2.1"


def test_a_new_run_forms_a_group_of_its_own() -> None:
    """The network of an older run's may have broken since: no rank would notice before its first steps."""
    play = Ranks()
    play.ready(holds="run0.all.7.1")
    assert play.joined("a").group == "run1.all.1.1"
    assert len(play.joined("a").peers) == 3


def test_unlike_torches_are_noted_and_get_more_time() -> None:
    play = Ranks()
    play.ready("ab")
    play.ready("c", torch="2.13.0")
    assert play.joined("a").formation_seconds == 120.0
    assert "2.13.0, 2.6.0" in play.notes("unlike_torches")[0]


def test_a_board_that_cannot_be_a_rank_is_refused_before_anything_is_trained_and_shown() -> None:
    play = Ranks()
    play.ready("ab")
    play.say("c", phase="waiting", abandoned=play.a("c").order, reason="this torch build has no gloo")
    play.stop("ab")
    assert play.group().boards == ("a", "b")
    assert play.rounds.lack("c", play.now) == "this torch build has no gloo"
    play.whole_round("ab")
    assert set(play.shares()) == {"a", "b"}
    play.die("c")
    assert play.rounds.lack("c", play.now) == ""


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"model": "c" * 64}, "its model has other names"),
        ({"plan": "e" * 64}, "its plan hash is eeeeeeeeeeee"),
    ],
)
def test_a_rank_with_another_model_or_plan_is_refused_before_the_group_is_formed(
    changes: dict[str, Any], text: str
) -> None:
    play = Ranks()
    play.ready("ab")
    play.ready("c", **changes)
    assert not [m for said in play.said.values() for m in said if isinstance(m, Join)]
    assert play.aborted("c") == []
    play.stop("ab")
    assert play.group().boards == ("a", "b")
    assert text in play.rounds.lack("c", play.now)


def test_the_board_that_nobody_reaches_is_left_out_and_the_pair_is_told() -> None:
    play = Ranks()
    play.ready()
    for board in "ab":
        reason = f"{board} cannot reach c at 10.0.0.3:4000 (timed out)"
        play.say(board, phase="waiting", abandoned=play.a(board).order, blames=("c",), reason=reason)
    play.stop("c")
    assert play.group().boards == ("a", "b")
    assert "cannot be reached" in play.group().out["c"]
    assert "a cannot reach c at 10.0.0.3:4000" in play.group().failures[0]


@pytest.mark.parametrize(
    ("address", "text"),
    [
        ("", "has no address towards the broker"),
        ("fe80::1", "has only fe80::1 towards the broker: gradients need IPv4"),
        ("127.0.0.1", "reaches the broker over loopback (127.0.0.1)"),
    ],
)
def test_a_board_without_an_address_for_the_others_is_refused_and_the_others_go_on(
    address: str, text: str
) -> None:
    births = (rank_birth("a"), rank_birth("b"), rank_birth("c", address=address))
    play = Ranks("abc", births)
    assert set(play.shares()) == {"a", "b"}
    assert text in play.rounds.lack("c", play.now)


def test_boards_of_one_host_may_meet_over_loopback_and_one_board_needs_no_address() -> None:
    births = tuple(rank_birth(board, address="127.0.0.1", host="bench") for board in "ab")
    assert set(Ranks("ab", tuple(births)).shares()) == {"a", "b"}
    assert Ranks("a", (rank_birth("a", address=""),)).shares() == {"a": 1000}
