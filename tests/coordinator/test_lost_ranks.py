"""Ranks that a round goes on without: what they say later, and those that say nothing."""

from tests.coordinator.ranks import Ranks


def test_a_rank_that_was_left_out_may_repeat_how_far_it_was() -> None:
    play = Ranks()
    play.meet()
    play.say("c", samples_done=50)
    last = {"phase": "waiting", "abandoned": play.a("c").order, "reason": "killed", "samples_done": 60}
    play.say("c", **last)
    play.stop("ab")
    assert (play.group().attempt, play.a("c").samples) == (2, 0)
    play.say("c", **last)
    play.whole_round("ab")
    assert play.rows("round")[0]["accepted"] == 1000


def test_a_rank_that_says_nothing_after_an_abort_is_left_out() -> None:
    play = Ranks("abcd")
    play.meet("abcd")
    play.say("a", phase="waiting", abandoned=play.a("a").order, blames=(), reason="another rank was lost")
    play.stop("b")
    play.wait(9.0)
    assert play.group().standing == "failing"
    play.wait(2.0)
    assert play.group().boards == ("a", "b")
    assert "did not say" in play.group().out["c"]
    assert play.state.silos["all"].control.memories.get("c") is None
