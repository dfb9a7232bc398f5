"""The queue of pieces: nothing is dealt twice, nothing is forgotten."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.pieces import Queue
from edged.messages import Piece


def places(pieces: list[Piece]) -> list[tuple[int, int]]:
    return [(piece.epoch, place) for piece in pieces for place in range(piece.start, piece.stop)]


def test_a_round_goes_on_where_the_last_one_stopped() -> None:
    queue = Queue(100)
    assert queue.take(60) == (Piece(0, 0, 60),)
    assert queue.take(30) == (Piece(0, 60, 90),)


def test_a_round_that_reaches_the_end_goes_on_with_the_next_epoch() -> None:
    queue = Queue(100)
    queue.take(90)
    assert queue.take(25) == (Piece(0, 90, 100), Piece(1, 0, 15))


def test_lost_pieces_are_dealt_first() -> None:
    queue = Queue(100)
    first, second, _ = queue.take(30), queue.take(30), queue.take(30)
    queue.give_back(second)
    queue.give_back(first)
    assert queue.returned == [Piece(0, 0, 60)]
    assert queue.take(70) == (Piece(0, 0, 60), Piece(0, 90, 100))


def test_a_pool_without_samples_is_an_error() -> None:
    with pytest.raises(ValueError, match="no samples"):
        Queue(0).take(1)


@given(size=st.integers(1, 40), steps=st.lists(st.tuples(st.integers(0, 50), st.booleans()), max_size=12))
def test_every_place_is_kept_exactly_once(size: int, steps: list[tuple[int, bool]]) -> None:
    queue, kept = Queue(size), list[tuple[int, int]]()
    for samples, lost in steps:
        taken = queue.take(samples)
        assert sum(piece.samples for piece in taken) == samples
        if lost:
            queue.give_back(taken)
        else:
            kept += places(list(taken))
    waiting = places(queue.returned)
    reached = [(epoch, place) for epoch in range(queue.epoch) for place in range(size)]
    reached += [(queue.epoch, place) for place in range(queue.position)]
    assert sorted(kept + waiting) == reached
