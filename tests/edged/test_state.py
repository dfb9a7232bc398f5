"""The board's state machine: what it does in each situation, and what never happens whatever comes."""

import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from edged import events as e
from edged.board import Board, Cue
from edged.events import Act, Phase
from edged.messages import (
    Abort,
    Accepted,
    Attend,
    Birth,
    Grant,
    Manifest,
    Piece,
    Refused,
    StandBy,
    Train,
)
from edged.state import TABLE, ImpossibleError, Step, step

SHA = "ab" * 32
CAN = e.Inventory(tasks={"digits": "hash"}, pools={"digits": "print"}, regimes=("pma",))
MODEL = Manifest(length_bytes=1000, chunk_bytes=100, sha256=SHA)
UPDATE = Manifest(length_bytes=1000, chunk_bytes=100, sha256="cd" * 32)


def order(round_number: int = 1, attempt: int = 1, board: str = "pi4", **changes: object) -> Train:
    made = Train(
        order=f"r.{round_number}.{board}.{attempt}",
        run="r",
        round=round_number,
        attempt=attempt,
        boot="coord",
        term=1,
        regime="pma",
        task="digits",
        task_hash="hash",
        pool="digits",
        fingerprint="print",
        pieces=(Piece(0, 0, 40),),
        samples=40,
        batch=8,
        learning_rate=0.1,
        model=f"r.{round_number - 1}",
        manifest=MODEL,
        seed=1,
        pool_samples=100,
        deadline_seconds=60.0,
    )
    return replace(made, **changes)


def attend(round_number: int = 1, attempt: int = 1, board: str = "pi4") -> Attend:
    return Attend(
        f"r.{round_number}.{board}.{attempt}",
        run="r",
        round=round_number,
        boot="coord",
        term=1,
        reason="rest",
    )


def birth(boot: str = "other", link: str = "up") -> Birth:
    return Birth(board="pi4", boot=boot, conn=1, link=link, host="attic", address="192.0.2.9")


class Player:
    """A board that is fed one event after another."""

    def __init__(self, *played: e.Event) -> None:
        self.board = Board("pi4", "mine")
        self.now = 0.0
        self.last: Step
        for event in (e.LinkUp(1), CAN, *played):
            self.feed(event)

    def feed(self, event: e.Event, seconds: float = 0.1) -> Step:
        self.now += seconds
        self.last = step(self.board, event, self.now)
        self.board = self.last.board
        return self.last

    def acts(self, event: e.Event, seconds: float = 0.1) -> list[Act]:
        return [effect.act for effect in self.feed(event, seconds).effects]


def fetching() -> Player:
    return Player(order())


def training() -> Player:
    return Player(order(), e.ModelReady("r.0", SHA))


def computing() -> Player:
    return Player(order(), e.ModelReady("r.0", SHA), e.Began(order().order, 1.0))


def uploading() -> Player:
    first = order().order
    return Player(
        order(),
        e.ModelReady("r.0", SHA),
        e.Began(first, 1.0),
        e.Ended(first, 2.0, 40),
        e.Described(first, UPDATE),
    )


def waiting() -> Player:
    player = uploading()
    player.feed(Accepted(order().order, "coord", 1))
    return player


def test_an_order_is_fetched_trained_described_uploaded_and_accepted() -> None:
    player = Player()
    first = order().order
    assert player.acts(order()) == [Act.OPEN, Act.FETCH, Act.SAY]
    assert player.board.part == "communication"
    assert player.acts(e.ModelReady("r.0", SHA)) == [Act.TRAIN, Act.SAY]
    assert player.board.part == "overhead"
    player.feed(e.Began(first, 1.0))
    assert player.board.part == "compute"
    player.feed(e.Progress(first, 20))
    assert player.board.samples_done == 20
    assert player.acts(e.Ended(first, 2.0, 40)) == [Act.DESCRIBE]
    assert player.board.part == "overhead"
    assert player.acts(e.Described(first, UPDATE)) == [Act.TRAINED, Act.SAY]
    assert player.board.part == "communication"
    step_ = player.feed(Grant(first, "coord", 1, ranges=((0, 10),), window=4))
    assert [(effect.act, effect.ranges, effect.window) for effect in step_.effects] == [
        (Act.UPLOAD, ((0, 10),), 4)
    ]
    assert player.acts(Accepted(first, "coord", 1)) == [Act.DISCARD, Act.SAY]
    assert player.board.phase is Phase.WAITING
    assert player.board.part == "wait"


def test_a_model_that_is_held_is_not_fetched_again() -> None:
    player = waiting()
    assert player.acts(order(2, model="r.0")) == [Act.CLOSE, Act.OPEN, Act.TRAIN, Act.SAY]


def test_a_version_with_another_hash_is_fetched_again() -> None:
    player = waiting()
    other = replace(MODEL, sha256="ef" * 32)
    assert Act.FETCH in player.acts(order(2, model="r.0", manifest=other))


def test_two_models_are_kept_and_the_oldest_is_deleted() -> None:
    player = Player()
    for number in (1, 2, 3):
        player.feed(order(number))
        player.feed(e.ModelReady(f"r.{number - 1}", SHA))
    assert [effect.about for effect in player.last.effects if effect.act is Act.FORGET] == ["r.0"]
    assert [version for version, _ in player.board.models] == ["r.1", "r.2"]


@pytest.mark.parametrize("situation", [fetching, training, computing, uploading, waiting])
def test_the_same_order_again_changes_nothing_and_is_answered(situation: object) -> None:
    player = situation()  # type: ignore[operator]
    before = player.board
    acts = player.acts(order())
    assert Act.SAY in acts
    assert (Act.TRAINED in acts) is (before.phase is Phase.UPLOADING)
    assert not {Act.OPEN, Act.CLOSE, Act.TRAIN, Act.FETCH, Act.CANCEL, Act.LOSE, Act.DISCARD} & set(acts)
    assert replace(player.board, said_at=0, said_samples=0) == replace(before, said_at=0, said_samples=0)


def test_an_order_that_is_over_is_answered_with_the_state_and_its_closing_report() -> None:
    player = waiting()
    player.feed(order(2))
    assert player.acts(order(1)) == [Act.SAY, Act.CLOSED_AGAIN]
    assert player.board.order_id == order(2).order


@pytest.mark.parametrize(
    ("situation", "acts"),
    [
        (fetching, [Act.CLOSE]),
        (computing, [Act.CANCEL, Act.LOSE, Act.CLOSE]),
        (uploading, [Act.DISCARD, Act.LOSE, Act.CLOSE]),
        (waiting, [Act.CLOSE]),
    ],
)
def test_a_new_order_supersedes_the_active_one(situation: object, acts: list[Act]) -> None:
    player = situation()  # type: ignore[operator]
    found = player.feed(order(2))
    assert [effect.act for effect in found.effects] == [*acts, Act.OPEN, Act.FETCH, Act.SAY]
    assert {effect.about for effect in found.effects if effect.act in acts} == {order(1).order}
    assert not player.board.computing
    assert player.board.samples_done == 0


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


def test_an_order_that_the_board_cannot_train_is_abandoned_with_the_reason() -> None:
    player = Player(replace(order(), task="mnist"))
    assert player.board.phase is Phase.WAITING
    assert player.board.abandoned == order().order
    assert "mnist" in player.board.reason


def test_an_attending_board_waits() -> None:
    player = Player()
    assert player.acts(attend()) == [Act.OPEN, Act.SAY]
    assert player.board.part == "wait"


def test_an_abort_loses_the_compute_and_waits() -> None:
    player = computing()
    assert player.acts(Abort(order().order, "coord", 1, "deadline")) == [Act.CANCEL, Act.LOSE, Act.SAY]
    assert (player.board.phase, player.board.part, player.board.reason) == (Phase.WAITING, "wait", "deadline")


def test_a_refused_update_is_lost() -> None:
    player = uploading()
    assert player.acts(Refused(order().order, "coord", 1, "NaN in fc.weight")) == [
        Act.DISCARD,
        Act.LOSE,
        Act.SAY,
    ]
    assert "NaN" in player.board.reason


def test_a_failed_training_is_abandoned() -> None:
    player = computing()
    assert player.acts(e.Broke(order().order, "the loss is nan at step 3")) == [Act.LOSE, Act.SAY]
    assert player.board.abandoned == order().order
    assert player.board.reason == "the loss is nan at step 3"


def test_a_training_without_a_sign_of_life_is_killed_at_its_deadline() -> None:
    player = computing()
    assert Act.KILL not in player.acts(e.Tick(), 59.0)
    player.feed(e.Progress(order().order, 8))
    assert Act.KILL not in player.acts(e.Tick(), 59.0)
    assert Act.KILL in player.acts(e.Tick(), 2.0)
    assert player.board.abandoned == order().order


def test_last_words_of_a_cancelled_training_are_ignored() -> None:
    player = computing()
    player.feed(Abort(order().order, "coord", 1))
    for word in (e.Progress(order().order, 9), e.Ended(order().order, 3.0, 40), e.Broke(order().order, "x")):
        assert player.feed(word).cue is Cue.NOTHING
    assert player.board.abandoned is None


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


rounds = st.integers(1, 3)
attempts = st.integers(1, 2)
terms = st.integers(1, 2)
orders = st.builds(
    lambda r, a, t, b: replace(order(r, a, b), term=t),
    rounds,
    attempts,
    terms,
    st.sampled_from(["pi4", "pi5"]),
)
ids = st.builds(lambda r, a: order(r, a).order, rounds, attempts)
versions = st.sampled_from(["r.0", "r.1", "r.2"])
anything = st.one_of(
    orders,
    st.builds(attend, rounds, attempts),
    st.builds(Abort, ids, st.just("coord"), terms),
    st.builds(Accepted, ids, st.just("coord"), terms),
    st.builds(Refused, ids, st.just("coord"), terms, st.just("why")),
    st.builds(Grant, ids, st.just("coord"), terms, st.just(((0, 3),))),
    st.builds(StandBy, st.just("coord"), terms),
    st.builds(e.LinkUp, st.integers(1, 9)),
    st.just(e.LinkDown()),
    st.just(CAN),
    st.builds(
        e.Foreign,
        st.builds(birth, st.sampled_from(["other", "mine"]), st.sampled_from(["up", "lost"])),
        st.booleans(),
    ),
    st.builds(e.Chunks, versions, st.integers(1, 40)),
    st.builds(e.ModelReady, versions, st.just(SHA)),
    st.builds(e.ModelFailed, versions, st.just("why")),
    st.builds(e.Alive, ids),
    st.builds(e.Began, ids, st.just(1.0)),
    st.builds(e.Progress, ids, st.integers(0, 40)),
    st.builds(e.Ended, ids, st.just(2.0), st.just(40)),
    st.builds(e.Described, ids, st.just(UPDATE)),
    st.builds(e.Broke, ids, st.just("why")),
    st.just(e.Tick()),
)


@settings(max_examples=120, deadline=None)
@given(st.lists(st.tuples(anything, st.floats(0.0, 30.0)), max_size=50))
def test_whatever_comes_orders_open_and_close_one_at_a_time(played: list[tuple[e.Event, float]]) -> None:
    """In the agent's mode: impossible events are ignored. Each OPEN is closed before the next, TRAIN
    only inside.
    """
    board, now, opened = Board("pi4", "mine"), 0.0, ""
    for event, seconds in played:
        now += seconds
        try:
            found = step(board, event, now)
        except ImpossibleError:
            continue
        for effect in found.effects:
            if effect.act is Act.OPEN:
                assert opened == ""
                opened = effect.about
            elif effect.act is Act.CLOSE:
                assert opened == effect.about
                opened = ""
            elif effect.act in {Act.TRAIN, Act.FETCH, Act.DESCRIBE, Act.TRAINED, Act.UPLOAD, Act.LOSE}:
                assert opened == effect.about
        board = found.board
        assert opened == board.order_id
        assert (board.part is None) is (board.phase is Phase.IDLE) is (board.order is None)
        assert not (board.computing and board.phase is not Phase.TRAINING)
        assert len(board.models) <= 2


@settings(max_examples=60, deadline=None)
@given(st.lists(anything, max_size=40), orders)
def test_the_same_order_twice_changes_nothing(played: list[e.Event], again: Train) -> None:
    board = Board("pi4", "mine")
    for event in (*played, again):
        try:
            board = step(board, event, 1.0).board
        except ImpossibleError:
            continue
    assert step(board, again, 1.0).board == board
