"""Ranks that step together, event by event: meeting, one update for all, and rounds that are done again."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator import events as ev
from edged.dealing import fault, schedule
from edged.groups import Stepwise
from edged.messages import Accepted, Steady
from tests.coordinator.play import MODEL, restored
from tests.coordinator.ranks import Ranks, rank_birth


def places(play: Ranks) -> list[tuple[int, int]]:
    """(epoch, place) of everything accepted so far, from the recorded rows."""
    found = []
    for row in play.rows("board_round"):
        if row["status"] == "accepted":
            pieces: list[list[int]] = row["pieces"]  # type: ignore[assignment]
            found += [(epoch, place) for epoch, low, high in pieces for place in range(low, high)]
    return found


def account(play: Ranks) -> int:
    """Accepted samples by the rounds' rows, which must add up."""
    total = 0
    for row in play.rows("round"):
        ordered, accepted, outstanding = (int(str(row[k])) for k in ("ordered", "accepted", "outstanding"))
        assert accepted + outstanding == ordered
        total += accepted
    return total


def test_every_rank_is_told_the_same_round_and_its_own_row() -> None:
    play = Ranks()
    orders = [play.order(board) for board in "abc"]
    assert {order.pieces for order in orders} == {orders[0].pieces}
    assert [order.samples for order in orders] == [334, 333, 333]
    groups = [order.rendezvous for order in orders]
    assert len({group.plan for group in groups if group}) == 1
    for rank, (order, group) in enumerate(zip(orders, groups, strict=True)):
        assert group is not None
        assert (group.rank, group.boards, group.steps) == (rank, ("a", "b", "c"), 10)
        assert list(order.batches or ()) == schedule((334, 333, 333), 10)[rank]
        assert fault(order) == ""
        assert order.optimizer_state == "average"
    recorded = [
        place for board in "abc" for piece in play.a(board).pieces for place in range(*piece_of(piece))
    ]
    assert sorted(recorded) == list(range(1000))


def piece_of(piece: object) -> tuple[int, int]:
    return piece.start, piece.stop  # type: ignore[attr-defined]


def test_one_update_counts_for_all_and_all_samples_are_accepted_once() -> None:
    play = Ranks()
    play.meet()
    play.now += 10
    play.trained("b")
    play.trained("a")
    assert play.collected() == ["b"]
    play.stored("b")
    assert play.state.accepted == 0
    play.trained("c")
    assert play.state.accepted == 1000
    assert all(isinstance(play.said[board][-1], Accepted) for board in "abc")
    (fold,) = [e for e in play.effects if isinstance(e, ev.Fold)]
    assert fold.items == (("b", "run1.1.b.1", 1000),)
    play.feed(ev.Folded(1, MODEL))
    assert len(places(play)) == len(set(places(play))) == account(play) == 1000
    assert play.rows("round")[0]["makespan_seconds"] == 2.0


@pytest.mark.parametrize(
    ("policy", "options", "rule"),
    [
        ("ema-batch", {}, Stepwise("ema-batch", 20, 0.3)),
        ("ema-batch", {"every": 5, "beta": 0.5}, Stepwise("ema-batch", 5, 0.5)),
        ("omnilearn", {"deadband": 0.1}, Stepwise("omnilearn", 20, 0.5, 0.1, fall=0.1)),
        ("omnilearn", {"every": 0}, None),
        ("omnilearn", {"mode": "static"}, None),
        (
            "omnilearn",
            {"lower": 20, "upper": 900, "learn_ceilings": False},
            Stepwise("omnilearn", 20, 0.5, 0.05, 20, 900),
        ),
        ("adaptive", {}, None),
    ],
)
def test_a_step_level_rule_goes_with_the_order_and_ranks_may_then_train_other_parts_than_ordered(
    policy: str, options: dict[str, Any], rule: Stepwise | None
) -> None:
    play = Ranks(policy=policy, policy_options=options)
    group = play.order("a").rendezvous
    assert group is not None
    assert group.stepwise == rule
    play.meet()
    play.now += 10
    play.trained("a", samples=571, steady=Steady(571, 0.3, 1.0))
    assert bool(play.notes("refused_reports")) == (rule is None)
    if rule is not None:
        play.trained("b")
        play.trained("c", samples=2000)
        assert "2000 of 1000 samples reported" in play.notes("refused_reports")[0]


def test_shares_follow_the_ranks_own_compute_times() -> None:
    play = Ranks()
    play.whole_round()
    assert play.shares() == {"a": 571, "b": 286, "c": 143}


def test_an_exchange_may_take_three_times_the_slowest_ranks_step_or_what_steps_took_before() -> None:
    play, found = Ranks(), []
    assert play.a("a").deadline_seconds - play.a("a").issued_seconds == 600.0
    for window in (2.0, 1000.0, 2.0):
        group = play.order("a").rendezvous
        assert group is not None
        found.append(group.collective_seconds)
        play.whole_round(window=window)
    assert found == pytest.approx([300.0, 30.0, 300.0])


def test_a_rank_that_dies_ends_the_attempt_for_all_and_the_round_is_done_again_by_the_others() -> None:
    play = Ranks()
    first = play.order("a").pieces
    play.meet()
    play.die("c")
    assert play.aborted("a")
    assert play.aborted("b")
    play.stop("a")
    assert play.group().standing == "failing"
    play.stop("b")
    assert (play.group().standing, play.group().attempt) == ("mustering", 2)
    assert play.order("a").order == "run1.1.a.2"
    assert play.order("a").pieces == first
    assert [play.a(board).samples for board in "abc"] == [500, 500, 0]
    play.whole_round("ab")
    assert set(play.shares()) == {"a", "b", "c"}
    assert play.shares()["c"] > 0
    play.whole_round()
    assert len(places(play)) == len(set(places(play))) == account(play) == 2000
    row = play.rows("round")[0]
    assert (row["ordered"], row["accepted"]) == (1000, 1000)
    assert row["silos"]["all"]["attempts"] == 2  # type: ignore[index]
    assert "its process was restarted" in row["silos"]["all"]["failures"][0]  # type: ignore[index]


def test_a_round_of_which_every_attempt_fails_gives_its_samples_back() -> None:
    play = Ranks("ab")
    first = play.order("a").pieces
    for attempt in range(1, 6):
        assert play.group().attempt == attempt
        play.meet("ab")
        for board in "ab":
            play.say(board, phase="waiting", abandoned=play.a(board).order, blames=(), reason="timed out")
    row = play.rows("round")[0]
    assert (row["ordered"], row["accepted"], row["outstanding"]) == (1000, 0, 1000)
    play.wait(5.0)
    assert play.order("a").pieces == first
    play.whole_round("ab")
    assert account(play) == len(set(places(play))) == 1000


def test_a_loss_that_is_not_finite_on_all_ranks_ends_the_round_for_all() -> None:
    play = Ranks("ab")
    play.meet("ab")
    for board in "ab":
        play.say(
            board, phase="waiting", abandoned=play.a(board).order, reason="the loss is nan at step 3 of 10"
        )
    assert play.rows("round")[0]["accepted"] == 0
    assert "nan" in play.rows("round")[0]["silos"]["all"]["failures"][0]  # type: ignore[index]


def test_a_rank_lost_after_the_last_step_costs_nothing_but_its_reading() -> None:
    play = Ranks()
    play.meet()
    play.now += 10
    play.trained("a")
    play.die("c")
    play.trained("b")
    play.stored("a")
    assert play.state.accepted == 1000
    assert play.group().attempt == 1
    assert "all steps were done; then its process was restarted" in play.a("c").reason
    play.feed(ev.Folded(1, MODEL))
    assert play.rows("round")[0]["joules_unknown_of"] == ["c"]


def test_the_rank_that_uploads_may_die_as_long_as_another_has_the_update() -> None:
    play = Ranks()
    play.meet()
    play.now += 10
    for board in "ab":
        play.trained(board)
    play.die("a")
    assert play.collected() == ["a", "b"]
    play.trained("c")
    play.stored("b")
    assert play.state.accepted == 1000


def test_an_update_that_cannot_be_used_fails_the_attempt() -> None:
    play = Ranks()
    play.meet()
    play.now += 10
    for board in "abc":
        play.trained(board)
    play.stored("a", "a value that is not finite")
    play.stop("bc")
    assert (play.group().attempt, play.group().boards) == (2, ("b", "c"))
    assert play.state.accepted == 0


def test_a_restarted_coordinator_goes_on_in_the_same_attempt() -> None:
    play = Ranks()
    play.meet()
    restored(play)
    for board in "abc":
        play.feed(ev.Born(rank_birth(board)))
    play.wait(1.0)
    assert play.joined("a").term == 2
    play.now += 10
    for board in "abc":
        play.say(board, joined=play.group().name)
        play.trained(board)
    play.stored(play.group().uploader)
    assert play.state.accepted == 1000


def test_a_report_that_does_not_fit_its_group_is_refused() -> None:
    play = Ranks()
    play.meet()
    play.now += 10
    play.trained("a", samples=5)
    assert "5 samples reported, 334 ordered" in play.notes("refused_reports")[0]


EVENTS = st.lists(
    st.tuples(st.sampled_from(["die", "fail", "silent", "whole", "late"]), st.sampled_from("abc")), max_size=8
)


@settings(max_examples=60, deadline=None)
@given(events=EVENTS)
def test_whatever_ranks_do_no_sample_is_lost_or_counted_twice(events: list[tuple[str, str]]) -> None:
    play = Ranks(rounds=4)
    for what, board in events:
        if play.state.phase != "running":
            play.wait(35.0)
        if play.state.phase != "running":
            break
        ranks = play.group().boards
        others = "".join(b for b in ranks if b != board)
        if what != "late" and board in ranks:
            play.meet("".join(ranks))
        if what == "die" and board in ranks:
            play.die(board)
            play.stop(others)
        elif what == "fail" and board in ranks:
            play.say(board, phase="waiting", abandoned=play.a(board).order, reason="out of memory")
            play.stop(others)
        elif what == "silent" and play.state.empty_rounds < 4:  # after six misses boards leave the pool
            play.wait(5000.0)
            play.wait(11.0)
        elif what == "whole":
            play.whole_round("".join(ranks))
    for _ in range(60):
        if play.state.phase == "done":
            break
        play.wait(35.0)
        if play.state.paused:
            play.feed(ev.Hold(False))
        if play.state.phase == "running":
            play.whole_round("".join(play.group().boards))
    assert account(play) == play.state.accepted == 4000
    found = places(play)
    assert len(found) == len(set(found)) == 4000
