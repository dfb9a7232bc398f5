"""How a round of synchronous gradients is cut by step and rank."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from edged.dealing import cut, dealt, fault, offset, plan_of, schedule, step_sizes, steps_for, with_plan
from edged.groups import Rendezvous
from edged.messages import Manifest, Piece, Train


@st.composite
def rounds(draw: st.DrawFn) -> tuple[int, list[int], list[int], tuple[Piece, ...]]:
    """Steps, two splits of one budget, and pieces that hold it."""
    steps = draw(st.integers(1, 12))
    shares = draw(st.lists(st.integers(steps, 6 * steps + 5), min_size=1, max_size=5))
    budget, m = sum(shares), draw(st.integers(1, 5))
    while m * steps > budget:
        m -= 1
    cuts = sorted(draw(st.lists(st.integers(0, budget - m * steps), min_size=m - 1, max_size=m - 1)))
    spare = [high - low for low, high in zip([0, *cuts], [*cuts, budget - m * steps], strict=True)]
    bounds = sorted(draw(st.sets(st.integers(1, budget - 1), max_size=3))) if budget > 1 else []
    edges = list(zip([0, *bounds], [*bounds, budget], strict=True))
    pieces = tuple(Piece(number, 7 + low, 7 + high) for number, (low, high) in enumerate(edges))
    return steps, shares, [steps + extra for extra in spare], pieces


def places(pieces: tuple[Piece, ...] | list[Piece]) -> list[tuple[int, int]]:
    return [(piece.epoch, place) for piece in pieces for place in range(piece.start, piece.stop)]


def by_step(pieces: tuple[Piece, ...], rows: list[list[int]]) -> list[set[tuple[int, int]]]:
    """What all ranks together train in each step, each taking its own places in order."""
    own = [places(dealt(pieces, rows, rank)) for rank in range(len(rows))]
    found: list[set[tuple[int, int]]] = []
    for step in range(len(rows[0])):
        taken: list[tuple[int, int]] = []
        for rank, row in enumerate(rows):
            at = sum(row[:step])
            taken += own[rank][at : at + row[step]]
        assert len(taken) == len(set(taken))
        found.append(set(taken))
    return found


@settings(max_examples=150, deadline=None)
@given(case=rounds())
def test_the_samples_of_every_step_are_the_same_for_every_split(
    case: tuple[int, list[int], list[int], tuple[Piece, ...]],
) -> None:
    steps, one, other, pieces = case
    assert by_step(pieces, schedule(one, steps)) == by_step(pieces, schedule(other, steps))


@settings(max_examples=150, deadline=None)
@given(case=rounds())
def test_equal_steps_no_padding_and_every_sample_once(
    case: tuple[int, list[int], list[int], tuple[Piece, ...]],
) -> None:
    steps, shares, _, pieces = case
    rows = schedule(shares, steps)
    assert {len(row) for row in rows} == {steps}
    assert [sum(row) for row in rows] == shares
    columns = [sum(column) for column in zip(*rows, strict=True)]
    assert columns == step_sizes(sum(shares), steps)
    assert max(columns) - min(columns) <= 1
    assert min(min(row) for row in rows) >= 1
    everything = [place for rank in range(len(rows)) for place in places(dealt(pieces, rows, rank))]
    assert sorted(everything) == sorted(places(pieces))


def test_the_worked_example_of_wrap_around_remainders() -> None:
    rows = schedule((571, 286, 143), 10)
    assert rows[0] == [58, *[57] * 9]
    assert rows[1] == [28, *[29] * 6, 28, 28, 28]
    assert rows[2] == [*[14] * 7, 15, 15, 15]
    assert [sum(column) for column in zip(*rows, strict=True)] == [100] * 10
    assert offset([row[3] for row in rows], 2) == 57 + 29


def test_a_share_that_does_not_reach_over_the_steps_is_refused() -> None:
    with pytest.raises(ValueError, match="rank 1: 2 samples do not reach over 3 steps"):
        schedule((5, 2), 3)
    assert (steps_for(1000, 128), steps_for(1024, 128)) == (8, 8)
    assert cut((Piece(0, 10, 20), Piece(1, 0, 5)), 8, 12) == [Piece(0, 18, 20), Piece(1, 0, 2)]


def order(**changes: Any) -> Train:
    """A good order for the second of two ranks."""
    group = Rendezvous("all", ("a", "b"), 1, (6, 4), 2, "0" * 64, 30.0)
    plain = Train(
        "r.1.b.1",
        "r",
        1,
        1,
        "coord",
        1,
        "ddp",
        "digits",
        "h",
        "digits",
        "f",
        (Piece(0, 0, 10),),
        4,
        5,
        0.1,
        "r.0",
        Manifest(1, 1, "0" * 64),
        7,
        100,
        options={"b": 1, "a": 2},
    )
    return replace(with_plan(plain, group), **changes)


def test_a_plan_hash_is_that_of_what_all_ranks_share() -> None:
    first, group = order(), order().rendezvous
    assert group is not None
    assert fault(first) == ""
    other_rank = with_plan(replace(first, order="r.1.a.1", samples=6), replace(group, rank=0))
    assert other_rank.rendezvous is not None
    assert other_rank.rendezvous.plan == group.plan
    assert fault(other_rank) == ""
    assert plan_of(replace(first, options={"a": 2, "b": 1})) == group.plan
    assert plan_of(replace(first, learning_rate=0.2)) != group.plan
    assert plan_of(replace(first, rendezvous=replace(group, shares=(5, 5)))) != group.plan


@pytest.mark.parametrize(
    ("changes", "text"),
    [
        ({"rendezvous": None}, "names no ranks"),
        ({"samples": 5}, "its own is 4, the order says 5"),
        ({"pieces": (Piece(0, 0, 9),)}, "its pieces hold 9 samples, its shares 10"),
        ({"batches": (1, 3)}, "its batches are not those of its shares"),
        ({"momentum": 0.9}, "its plan hash is"),
    ],
)
def test_an_order_whose_parts_do_not_fit_says_which(changes: dict[str, Any], text: str) -> None:
    assert text in fault(order(**changes))
