"""Ceilings learnt downwards: three findings, twenty adjustments, never below what the whole needs."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.ceilings import CEILING, CONFIRMATIONS, LIFETIME, Ceilings


def raised(ceilings: Ceilings, before: float, after: float, speeds: tuple[float, float]) -> list[str]:
    """Board a is raised from one size to another, with these throughputs."""
    ceilings.changed({"a": before}, {"a": speeds[0]})
    return ceilings.hear({"a": after}, {"a": speeds[1]})


@pytest.mark.parametrize(
    ("raises", "ceiling"),
    [
        ([(100, 150, 10, 6)] * 3, 100.0),
        ([(100, 150, 10, 6)] * 2, None),
        ([(100, 150, 10, 9.5)] * 9, None),  # within the fall that may be noise
        ([(150, 100, 10, 6)] * 9, None),  # slower with less: not the size's doing
        ([(100, 150, 10, 6), (50, 150, 10, 6), (60, 150, 10, 6)], 100.0),  # 100 was fast
        ([(100, 150, 10, 6)] * 2 + [(100, 150, 10, 10)] + [(100, 150, 10, 6)] * 2, None),
        ([(100, 150, 10, 6)] * 2 + [(150, 100, 6, 10)] + [(100, 150, 10, 6)], 100.0),
    ],
)
def test_three_raises_that_made_a_board_slower(
    raises: list[tuple[float, float, float, float]], ceiling: float | None
) -> None:
    ceilings = Ceilings(0.1)
    for before, after, fast, slow in raises:
        raised(ceilings, before, after, (fast, slow))
    assert ceilings.state[CEILING].get("a") == ceiling


def test_one_raise_is_found_three_times_where_nothing_changes_in_between() -> None:
    ceilings = Ceilings(0.1)
    ceilings.changed({"a": 100, "b": 100}, {"a": 10, "b": 10})
    told = [ceilings.hear({"a": 150, "b": 50}, {"a": 5, "b": 10}) for _ in range(CONFIRMATIONS)]
    assert told[0] == ["a got slower with 150 samples than with 100: seen 1 of 3 times"]
    assert told[-1] == ["a got slower with 150 samples than with 100, the 3rd time: its ceiling is 100"]
    assert ceilings.caps(["a", "b"], [300, 300], [1, 1], 200) == [100, 300]


def test_a_ceiling_ends_after_twenty_adjustments_and_outlives_being_stored() -> None:
    ceilings = Ceilings(0.1)
    for _ in range(CONFIRMATIONS):
        raised(ceilings, 100, 150, (10, 5))
    for number in range(LIFETIME):
        ceilings = Ceilings(0.1, ceilings.state)
        assert ceilings.caps(["a"], [200], [1], 80) == [100], number
        ceilings.hear({"a": 80}, {"a": 10})
    assert ceilings.hear({"a": 80}, {"a": 10}) == ["a's ceiling of 100 has ended: larger is tried again"]
    assert ceilings.caps(["a"], [200], [1], 80) == [200]


def test_ceilings_that_leave_no_room_for_the_whole_are_ignored() -> None:
    ceilings = Ceilings(0.1)
    for _ in range(CONFIRMATIONS):
        raised(ceilings, 100, 150, (10, 5))
    bounds = ["a", "b"], [300, 200], [1, 1]
    assert ceilings.caps(*bounds, 300) == [100, 200]
    assert not ceilings.ignored(*bounds, 300)
    assert ceilings.caps(*bounds, 301) == [300, 200]
    assert ceilings.ignored(*bounds, 301)
    assert not Ceilings(0.1).ignored(*bounds, 301)


CHANGES = st.lists(
    st.tuples(
        st.booleans(),
        st.lists(st.integers(1, 200), min_size=3, max_size=3),
        st.lists(st.floats(0.1, 100), min_size=3, max_size=3),
    ),
    max_size=40,
)


@settings(max_examples=100, deadline=None)
@given(changes=CHANGES, whole=st.integers(3, 500))
def test_whatever_is_heard_the_caps_leave_room_and_respect_floors(
    changes: list[tuple[bool, list[int], list[float]]], whole: int
) -> None:
    boards, ceilings = ["a", "b", "c"], Ceilings(0.1)
    for applied, sizes, speeds in changes:
        now = dict(zip(boards, map(float, sizes), strict=True)), dict(zip(boards, speeds, strict=True))
        ceilings.hear(*now)
        if applied:
            ceilings.changed(*now)
        caps = ceilings.caps(boards, [whole] * 3, [1, 1, 1], whole)
        assert sum(caps) >= whole
        assert all(1 <= cap <= whole for cap in caps)
        state = ceilings.state
        assert all(age <= LIFETIME for age in state["ceiling's age"].values())
        assert set(state[CEILING]) == set(state["ceiling's age"])
