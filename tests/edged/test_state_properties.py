"""What never happens to a board, whatever comes in whatever order."""

from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from edged import events as e
from edged.board import Board
from edged.events import Act, Phase
from edged.messages import Abort, Accepted, Grant, Refused, StandBy, Train
from edged.state import ImpossibleError, step
from tests.edged.player import CAN, SHA, UPDATE, attend, birth, order

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
