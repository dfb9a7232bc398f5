"""What an event means to a board: time, links, other coordinators and other boards."""

import subprocess
import sys
from pathlib import Path

import pytest
from msgspec.structs import replace

from edged import events as e
from edged.board import Board, Cue
from edged.events import Act, Phase
from edged.messages import Abort, Birth, Grant, StandBy
from edged.state import TABLE, ImpossibleError, step
from tests.edged.player import (
    Player,
    attend,
    birth,
    computing,
    fetching,
    order,
    waiting,
)


def test_an_older_coordinator_is_refused_and_told_why() -> None:
    player = Player(replace(order(), term=5))
    for stale in (order(2), attend(2), Abort(order().order, "old", 4), StandBy("old", 4)):
        assert player.feed(stale).cue is Cue.STRAY
        assert "older than 5" in player.board.reason
    assert player.board.order_id == order().order


def test_an_order_for_another_board_or_with_another_round_is_refused() -> None:
    player = Player()
    assert player.feed(order(board="pi5")).cue is Cue.STRAY
    assert "is for board pi5" in player.board.reason
    assert player.feed(replace(order(), round=7)).cue is Cue.STRAY
    assert player.board.phase is Phase.IDLE


def test_no_order_before_stock_is_taken() -> None:
    found = step(replace(Board("pi4", "mine"), up=True), order(), 1.0)
    assert found.cue is Cue.STRAY
    assert "taking stock" in found.reason


def test_a_training_without_a_sign_of_life_is_killed_at_its_deadline() -> None:
    player = computing()
    assert Act.KILL not in player.acts(e.Tick(), 59.0)
    player.feed(e.Progress(order().order, 8))
    assert Act.KILL not in player.acts(e.Tick(), 59.0)
    assert Act.KILL in player.acts(e.Tick(), 2.0)
    assert player.board.abandoned == order().order


def test_missing_chunks_are_asked_for_after_1_2_4_seconds_of_silence() -> None:
    player = fetching()
    ordered, asked = player.now, []
    for _ in range(80):
        if Act.WANT in player.acts(e.Tick(), 0.125):
            asked.append(player.now - ordered)
    assert asked == pytest.approx([1.0, 3.0, 7.0], abs=0.13)  # a tick late at most
    player.feed(e.Chunks("r.0", 3))
    assert Act.WANT in [act for _ in range(8) for act in player.acts(e.Tick(), 0.125)]


def test_nothing_is_asked_for_while_the_link_is_down() -> None:
    player = fetching()
    player.feed(e.LinkDown())
    assert [act for _ in range(40) for act in player.acts(e.Tick(), 1.0)] == []


def test_the_state_tells_every_sixteenth_chunk() -> None:
    player = fetching()
    told = [held for held in range(1, 41) if player.acts(e.Chunks("r.0", held))]
    assert told == [16, 32]


def test_the_heartbeat_is_ten_seconds_and_two_while_samples_move() -> None:
    player = computing()
    said = [tenth for tenth in range(1, 251) if Act.SAY in player.acts(e.Tick(), 0.1)]
    assert len(said) == 2
    moved = 0
    for tenth in range(100):
        player.feed(e.Progress(order().order, tenth + 1), 0.05)
        moved += Act.SAY in player.acts(e.Tick(), 0.05)
    assert 4 <= moved <= 5


def test_a_second_board_with_this_id_stops_the_work_and_takes_no_orders() -> None:
    player = computing()
    acts = player.acts(e.Foreign(birth(), retained=False))
    assert acts == [Act.CANCEL, Act.LOSE, Act.CLOSE, Act.BIRTH, Act.SAY]
    assert "attic at 192.0.2.9" in player.board.reason
    assert "clears by itself after 120 s alone" in player.board.reason
    assert player.board.abandoned == order(1).order
    assert player.feed(order(2)).cue is Cue.STRAY
    assert player.board.phase is Phase.IDLE


def test_the_second_board_is_forgotten_after_two_connected_minutes_without_it() -> None:
    player = Player(e.Foreign(birth(), retained=False))
    player.feed(e.LinkDown())
    assert player.feed(e.Tick(), 500.0).cue is Cue.NOTHING
    player.feed(e.LinkUp(2))
    assert player.feed(e.Tick(), 60.0).cue is not Cue.ALONE
    player.feed(e.Foreign(birth(), retained=False))
    assert player.feed(e.Tick(), 119.0).cue is not Cue.ALONE
    assert player.feed(e.Tick(), 2.0).cue is Cue.ALONE
    assert player.feed(order()).cue is Cue.FETCH


@pytest.mark.parametrize("link", ["up", "duplicate"])
def test_a_foreign_birth_while_connected_is_a_rivals(link: str) -> None:
    assert Player().feed(e.Foreign(birth("other", link), retained=False)).cue is Cue.RIVAL


def test_what_the_broker_kept_may_be_the_process_before_this_one() -> None:
    """Or what a broker that was restarted remembers from its disk: the same word again is no news."""
    player = Player()
    player.board = Board("pi4", "mine")
    for connection in (1, 2, 3):
        assert player.feed(e.Foreign(birth("before", "up"), retained=True)).cue is Cue.NOTHING
        player.feed(e.LinkUp(connection))
        player.feed(e.LinkDown())
    assert player.board.rival is None


@pytest.mark.parametrize(
    ("link", "rival"), [("up", True), ("duplicate", True), ("lost", True), ("closed", False)]
)
def test_a_foreign_boot_that_came_back_meanwhile_is_a_rivals(link: str, rival: bool) -> None:
    """Its will is kept because this board's return threw it out; a farewell is a process that ended."""
    player = Player()
    player.feed(e.LinkDown())
    player.feed(e.Foreign(replace(birth("other", "lost"), conn=1), retained=True))
    player.feed(e.LinkUp(2))
    player.feed(e.LinkDown())
    found = player.feed(e.Foreign(replace(birth("other", link), conn=2), retained=True))
    assert (found.cue is Cue.RIVAL) is rival
    assert player.feed(e.LinkUp(3)).board.rival is (player.board.rival if rival else None)


def test_the_own_words_are_nobody_elses() -> None:
    for retained in (True, False):
        assert Player().feed(e.Foreign(birth("mine"), retained)).cue is Cue.NOTHING


@pytest.mark.parametrize("written", [None, birth("other", "lost"), birth("other", "closed")])
def test_a_birth_that_was_overwritten_is_said_again(written: Birth | None) -> None:
    assert Player().acts(e.Foreign(written, retained=False)) == [Act.BIRTH]
    assert step(Board("pi4", "mine"), e.Foreign(written, retained=True), 1.0).cue is Cue.NOTHING


def test_a_process_that_is_asked_to_end_closes_and_abandons_its_order() -> None:
    player = computing()
    assert player.acts(e.Leave("SIGTERM")) == [Act.CANCEL, Act.LOSE, Act.CLOSE, Act.SAY]
    assert player.board.abandoned == order().order
    assert waiting().feed(e.Leave("SIGTERM")).board.abandoned is None


def test_an_impossible_event_names_phase_and_event() -> None:
    player = fetching()
    with pytest.raises(ImpossibleError, match=r"Grant \(leave to upload\) cannot happen while fetching"):
        player.feed(Grant(order().order, "coord", 1, ranges=((0, 1),)))


def test_every_act_and_every_cue_is_used() -> None:
    assert {cue for _, cue in TABLE} == set(Cue)
    # FORGET depends on how many models there are, so no row can say it.
    assert {act for row in TABLE.values() for act in row.acts} | {Act.FORGET} == set(Act)


def test_the_documented_states_are_those_of_the_table() -> None:
    script = Path(__file__).parents[2] / "scripts" / "board-states"
    assert subprocess.run([sys.executable, script, "--check"], check=False).returncode == 0, "run it again"
