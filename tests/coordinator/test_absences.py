"""Lost links, dead boards, deadlines, restarts: what is waited for, and what is made up for."""

import pytest

from coordinator import events as ev
from edged.messages import Abort, State, Train
from tests.coordinator.play import MODEL, Play, birth, restored


def test_a_killed_board_loses_its_pieces_to_the_head_of_the_next_round() -> None:
    play = Play()
    lost = play.state.assignments["b"].pieces
    play.feed(ev.Born(birth("b", "boot-new")))
    play.end_round("ac")
    row = play.rows("round")[0]
    assert (row["ordered"], row["accepted"], row["returned"], row["outstanding"]) == (1000, 667, 333, 333)
    first = [a.pieces[0] for a in play.state.assignments.values()]
    assert min(first, key=lambda p: (p.epoch, p.start)).start == lost[0].start
    assert sum(play.shares().values()) == 1000


def test_lost_samples_are_made_up_for_by_a_last_short_round() -> None:
    play = Play(rounds=1)
    play.feed(ev.Born(birth("c", "boot-new")))
    play.end_round("ab")
    assert sum(play.shares().values()) == 333
    play.end_round()
    assert play.state.accepted == 1000
    assert play.state.phase == "done"


def test_a_lost_link_ends_nothing() -> None:
    play = Play()
    play.feed(ev.Born(birth("b", link="lost")))
    assert play.state.open_count == 3
    play.feed(ev.Born(birth("b", conn=2)))
    play.end_round()
    assert play.state.accepted == 1000


def test_an_order_is_said_again_until_the_board_names_it() -> None:
    play = Play()
    sent = len(play.said["a"])
    for seconds in (1.9, 0.2, 3.8, 0.3):
        play.wait(seconds)
    assert len(play.said["a"]) == sent + 2
    order = play.state.assignments["a"].order
    play.feed(ev.Heard(State("a", "boot-a", 1, "fetching", order)))
    play.wait(40)
    assert len(play.said["a"]) == sent + 2
    assert isinstance(play.said["b"][-1], Train)


def test_an_order_is_said_again_at_once_after_a_birth() -> None:
    play = Play()
    order = play.state.assignments["a"].order
    play.feed(ev.Heard(State("a", "boot-a", 1, "training", order)))
    sent = len(play.said["a"])
    play.feed(ev.Born(birth("a", conn=2)))
    assert len(play.said["a"]) == sent + 1


def test_a_board_that_gives_up_is_not_waited_for() -> None:
    play = Play()
    order = play.state.assignments["a"].order
    play.feed(ev.Heard(State("a", "boot-a", 1, "idle", abandoned=order, reason="out of memory")))
    assert play.state.assignments["a"].status == "abandoned"
    assert play.state.assignments["a"].reason == "out of memory"


def gives_up(play: Play, board: str) -> None:
    a = play.state.assignments[board]
    state = State(board, f"boot-{board}", 1, "idle", abandoned=a.order, reason="disk full")
    play.feed(ev.Heard(state))


def test_a_board_that_left_the_pool_is_back_once_it_is_readmitted() -> None:
    play = Play(rounds=20)
    for _ in range(6):
        gives_up(play, "b")
        play.end_round("ac")
    assert play.shares()["b"] == 0
    play.end_round("ac")
    play.feed(ev.Admission("b", "readmit"))
    play.end_round("ac")
    share = play.shares()["b"]
    assert share > 0
    before = play.state.accepted
    play.end_round()
    assert play.state.accepted == before + 1000


def test_a_run_that_no_board_could_train_tells_why_and_goes_on_when_it_is_resumed() -> None:
    play = Play(rounds=2)
    while not play.state.paused:
        for board in "abc":
            gives_up(play, board)
        play.wait(40)
    assert play.state.reason == "6 rounds without one accepted update: disk full"
    play.feed(ev.Hold(False))
    play.end_round()
    play.end_round()
    assert (play.state.phase, play.state.accepted) == ("done", 2000)


def test_a_silent_board_is_given_up_at_its_deadline() -> None:
    play = Play(deadline_floor_seconds=30.0)
    for board in "bc":
        play.train(board)
    play.wait(299)
    assert play.state.assignments["a"].open
    play.wait(2)
    assert play.state.assignments["a"].status == "expired"
    assert isinstance(next(m for m in play.said["a"] if isinstance(m, Abort)), Abort)


def test_progress_moves_the_deadline_but_never_beyond_the_limit() -> None:
    play = Play(deadline_limit_seconds=1000.0)
    order = play.state.assignments["a"].order
    for board in "bc":
        play.train(board)
    for done in range(1, 12):
        play.wait(99)
        play.feed(ev.Heard(State("a", "boot-a", 1, "training", order, samples_done=done)))
    assert play.state.assignments["a"].status == "expired"
    assert play.now - 2.5 >= 990


@pytest.mark.parametrize("cut", ["own link", "all boards"])
def test_deadlines_stand_still_while_everybody_is_cut_off(cut: str) -> None:
    play = Play()
    if cut == "own link":
        play.feed(ev.OwnLink(False))
    else:
        for board in "abc":
            play.feed(ev.Born(birth(board, link="lost")))
    play.wait(100000)
    assert play.state.open_count == 3
    play.feed(ev.OwnLink(True))
    play.feed(ev.Born(birth("a", conn=2)))
    play.wait(100)
    assert play.state.open_count == 3
    play.wait(250)
    assert play.state.open_count == 0


def test_a_restarted_coordinator_goes_on_in_the_same_round() -> None:
    play = Play()
    play.train("a")
    play.feed(ev.Reported(play.report("b")))
    restored(play)
    assert [e.board for e in play.effects if isinstance(e, ev.Collect)][-1] == "b"
    for board in "abc":
        play.feed(ev.Born(birth(board)))
    assert play.said["c"][-1] == play.state.assignments["c"].message
    assert isinstance(play.said["c"][-1], Train)
    assert play.said["c"][-1].term == 2
    play.feed(ev.Stored("b", play.state.assignments["b"].order))
    play.now += 5
    play.train("c")
    play.feed(ev.Folded(1, MODEL))
    assert play.state.round == 2
    assert play.state.accepted == 1000


def test_a_coordinator_killed_while_merging_merges_again() -> None:
    play = Play()
    for board in "abc":
        play.train(board)
    fold = next(e for e in play.effects if isinstance(e, ev.Fold))
    restored(play)
    assert [e for e in play.effects if isinstance(e, ev.Fold)][-1] == fold


def test_a_merge_that_fails_pauses_and_resuming_tries_again() -> None:
    play = Play()
    for board in "abc":
        play.train(board)
    play.feed(ev.FoldFailed(1, "disk full"))
    assert "disk full" in play.state.reason
    again = play.feed(ev.Hold(False))
    assert [e for e in again if isinstance(e, ev.Fold)]


def test_a_board_restarted_while_the_coordinator_was_away_is_not_waited_for() -> None:
    play = Play()
    restored(play)
    play.feed(ev.Born(birth("a", "boot-new")))
    assert play.state.assignments["a"].status == "abandoned"
