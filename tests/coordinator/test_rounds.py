"""One run, event by event: who gets which order, and how a round and a run end."""

import pytest

from coordinator import events as ev
from coordinator.controller import Weights
from edged.messages import Abort, Attend, StandBy, Steady, Train
from tests.coordinator.play import MODEL, Play, birth


def test_the_first_round_has_equal_shares_and_disjoint_pieces() -> None:
    play = Play()
    assert play.shares() == {"a": 334, "b": 333, "c": 333}
    orders = [m for said in play.said.values() for m in said if isinstance(m, Train)]
    places = [i for order in orders for piece in order.pieces for i in range(piece.start, piece.stop)]
    assert sorted(places) == list(range(1000))


def test_orders_are_durable_before_they_go_out_and_the_model_comes_after() -> None:
    play = Play()
    kinds = [type(e).__name__ for e in play.effects if type(e).__name__ in ("Save", "Send", "Distribute")]
    assert kinds == ["Save", "Send", "Send", "Send", "Distribute"]


@pytest.mark.parametrize(
    ("w_t", "w_e", "shares"),
    [
        (1.0, 0.0, {"a": 571, "b": 286, "c": 143}),
        (0.75, 0.25, {"a": 507, "b": 334, "c": 159}),
        (0.5, 0.5, {"a": 453, "b": 377, "c": 170}),
        (0.0, 1.0, {"a": 364, "b": 454, "c": 182}),
    ],
)
def test_tuned_weights_change_the_next_round_as_the_arithmetic_says(
    w_t: float, w_e: float, shares: dict[str, int]
) -> None:
    play = Play()
    for board in "ab":
        play.train(board)
    play.feed(ev.Weigh(w_t, w_e, "me"))
    assert play.shares() == {"a": 334, "b": 333, "c": 333}
    play.train("c")
    told = play.rounds.preview(Weights(w_t, w_e))
    play.feed(ev.Folded(1, MODEL))
    assert play.shares() == shares
    assert told is not None
    assert told.shares == shares
    assert play.rows("control")[0]["from_round"] == 2


def test_a_run_ends_with_rounds_times_budget_accepted() -> None:
    play = Play()
    for _ in range(3):
        play.end_round()
    finished = [e for e in play.effects if isinstance(e, ev.Finished)]
    assert finished == [ev.Finished("run1", "all 3000 samples are accepted", True)]
    assert all(isinstance(play.said[board][-1], StandBy) for board in "abc")


def test_a_late_joiner_is_in_the_next_round() -> None:
    play = Play("ab")
    play.feed(ev.Born(birth("c")))
    assert isinstance(play.said["c"][-1], StandBy)
    play.end_round("ab")
    assert set(play.shares()) == {"a", "b", "c"}
    assert play.shares()["c"] > 0


def test_pause_ends_the_round_and_resume_goes_on() -> None:
    play = Play()
    play.feed(ev.Hold(True))
    play.end_round()
    assert (play.state.phase, play.state.round) == ("paused", 1)
    play.feed(ev.Hold(False))
    assert (play.state.phase, play.state.round) == ("running", 2)


def test_stop_aborts_what_is_open_and_keeps_what_was_accepted() -> None:
    play = Play()
    play.train("a")
    play.feed(ev.Halt("stopped by the operator"))
    assert play.state.phase == "done"
    assert play.state.accepted == 334
    assert [m for m in play.said["b"] if isinstance(m, Abort)]


def test_a_drained_board_gets_no_more_and_a_readmitted_one_does() -> None:
    play = Play()
    play.feed(ev.Admission("c", "drain"))
    play.end_round()
    assert set(play.shares()) == {"a", "b"}
    play.feed(ev.Admission("c", "readmit"))
    play.end_round("ab")
    assert set(play.shares()) == {"a", "b", "c"}


def test_a_forgotten_board_leaves_no_trace() -> None:
    play = Play()
    play.feed(ev.Admission("c", "forget"))
    play.end_round("ab")
    assert "c" not in play.state.control.memories
    assert "c" not in play.shares()


def test_a_round_without_any_update_changes_nothing_and_the_next_waits_a_little() -> None:
    play = Play()
    for board in "abc":
        play.feed(ev.Born(birth(board, f"boot-{board}2")))
    assert (play.state.merges, play.state.phase) == (0, "gathering")
    assert play.rows("round")[0]["accepted"] == 0
    play.wait(1.1)
    assert (play.state.phase, play.state.round) == ("running", 2)


def test_a_budget_below_the_number_of_boards_lets_some_attend() -> None:
    play = Play(budget=2, rounds=1)
    assert sorted(play.shares().values()) == [0, 1, 1]
    attending = [m for said in play.said.values() for m in said if isinstance(m, Attend)]
    assert len(attending) == 1


def test_named_boards_are_waited_for() -> None:
    play = Play("ab", boards=("a", "b", "c"))
    assert play.state.phase == "gathering"
    assert "c was never heard of" in play.state.reason
    play.feed(ev.Born(birth("c")))
    assert set(play.shares()) == {"a", "b", "c"}


def test_the_first_two_steps_of_a_new_process_are_no_reading() -> None:
    play = Play()
    play.now += 10
    play.feed(ev.Reported(play.report("a", steady=Steady())))
    play.feed(ev.Stored("a", play.state.assignments["a"].order))
    assert play.state.accepted == 334
    assert play.notes("unused_readings")
    for board in "bc":
        play.train(board)
    play.feed(ev.Folded(1, MODEL))
    assert "a not measured yet" in play.state.share_reason
