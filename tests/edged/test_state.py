"""What a board does with an order, in each situation."""

import pytest
from msgspec.structs import replace

from edged import events as e
from edged.board import Cue
from edged.events import Act, Phase
from edged.messages import Abort, Accepted, Grant, Refused
from tests.edged.player import (
    MODEL,
    SHA,
    UPDATE,
    Player,
    attend,
    computing,
    fetching,
    order,
    training,
    uploading,
    waiting,
)


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


def test_last_words_of_a_cancelled_training_are_ignored() -> None:
    player = computing()
    player.feed(Abort(order().order, "coord", 1))
    for word in (e.Progress(order().order, 9), e.Ended(order().order, 3.0, 40), e.Broke(order().order, "x")):
        assert player.feed(word).cue is Cue.NOTHING
    assert player.board.abandoned is None
