"""How an epoch is dealt by step: the global batch exact, every place once, sizes that change on the way."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.balance.plan import Plan, Terms


@pytest.mark.parametrize(
    ("samples", "drop_last", "totals"),
    [
        (300, False, [100, 100, 100]),
        (310, False, [100, 100, 100, 10]),
        (303, False, [100, 100, 100, 3]),
        (302, False, [100, 100, 102]),  # two samples do not reach three ranks
        (302, True, [100, 100, 100]),
        (7, False, [7]),
        (102, False, [102]),
    ],
)
def test_every_step_has_the_batch_and_the_last_what_is_left(
    samples: int, drop_last: bool, totals: list[int]
) -> None:
    terms = Terms(samples, 100, 3, drop_last=drop_last)
    assert [terms.total(step) for step in range(terms.steps)] == totals


@pytest.mark.parametrize(
    ("terms", "words"),
    [
        ({"batch": 0}, "batch_size = 0: it must be at least 1"),
        ({"batch": 2}, "batch_size = 2 does not reach over 3 ranks with at least 1 each"),
        ({"b_min": 5, "b_max": 4}, "b_min = 5 is above b_max = 4"),
        ({"b_min": 0}, "b_min = 0: every rank needs a sample in every step"),
        ({"b_min": 5}, "batch_size = 12 does not reach over 3 ranks with at least 5 each"),
        ({"b_max": 3}, "b_max = 3 on 3 ranks leaves no room for a step of 12 samples"),
        ({"samples": 61, "b_max": 4}, "b_max = 4 on 3 ranks leaves no room for a step of 13 samples"),
        ({"samples": 2}, "a data set of 2 samples does not fill one step of 12"),
        ({"samples": 11, "drop_last": True}, "a data set of 11 samples does not fill one step of 12"),
    ],
)
def test_terms_by_which_nothing_can_be_dealt_are_refused(terms: dict[str, int], words: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=words):
        msgspec.convert({"samples": 60, "batch": 12, "world": 3, **terms}, Terms)


@settings(max_examples=60, deadline=None)
@given(data=st.data(), world=st.integers(1, 5), b_min=st.integers(1, 3), drop_last=st.booleans())
def test_every_place_is_trained_once_by_one_rank_whatever_changes(
    data: st.DataObject, world: int, b_min: int, drop_last: bool
) -> None:
    batch = data.draw(st.integers(world * b_min, 40))
    samples = data.draw(st.integers(batch, 300))
    room = -(-2 * batch // world)
    terms = Terms(samples, batch, world, b_min, data.draw(st.none() | st.integers(room, 80)), drop_last)
    plan = Plan(terms)
    speeds = st.lists(st.floats(1e-2, 1e3), min_size=world, max_size=world)
    changes = data.draw(st.lists(st.tuples(st.integers(0, terms.steps), speeds), max_size=4))
    for step, found in sorted(changes):
        plan.change(step, found)
    places: list[int] = []
    for step in range(terms.steps):
        sizes = plan.sizes(step)
        assert sum(sizes) == terms.total(step)
        assert min(sizes) >= b_min
        assert terms.b_max is None or max(sizes) <= terms.b_max
        for rank in range(world):
            places += range(*plan.places(step, rank).indices(samples))
        assert sum(plan.weight(step, rank) for rank in range(world)) == pytest.approx(world)
    dealt = terms.steps * batch if drop_last else samples
    assert places == list(range(dealt))


def test_sizes_follow_the_speeds_from_the_agreed_step_on() -> None:
    plan = Plan(Terms(96, 24, 3))
    plan.change(2, [1000.0, 500.0, 250.0])
    assert [plan.sizes(step) for step in range(4)] == [[8, 8, 8], [8, 8, 8], [14, 7, 3], [14, 7, 3]]
    assert [plan.weight(2, rank) for rank in range(3)] == [14 / 8, 7 / 8, 3 / 8]
    plan.change(2, [1.0, 1.0, 2.0])
    assert plan.sizes(3) == [6, 6, 12]
    with pytest.raises(ValueError, match="sizes change from step 2 on already, not from 1 on"):
        plan.change(1, [1.0, 1.0, 1.0])
