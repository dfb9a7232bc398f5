"""Arithmetic of wants and grants, held to sets of numbers."""

from itertools import pairwise

from hypothesis import given, settings
from hypothesis import strategies as st

from edged.ranges import Range, clip, merge, next_grant, size, subtract

ranges = st.lists(st.tuples(st.integers(-5, 40), st.integers(-5, 40)), max_size=8)
few = settings(deadline=None, max_examples=100)


def numbers(pieces: list[Range]) -> set[int]:
    return {number for start, stop in pieces for number in range(start, stop)}


def assert_normal(pieces: list[Range]) -> None:
    assert all(start < stop for start, stop in pieces)
    assert all(left[1] < right[0] for left, right in pairwise(pieces))


def test_the_wants_of_three_boards_are_answered_once() -> None:
    assert merge([(0, 4)], [(2, 6), (9, 10)], [(6, 7)]) == [(0, 7), (9, 10)]


def test_a_grant_fills_the_window_and_not_more() -> None:
    assert next_grant([(0, 100)], [], 8) == [(0, 8)]
    assert next_grant([(3, 100)], [(0, 8)], 8) == [(8, 11)]
    assert next_grant([(0, 100)], [(0, 8)], 8) == []


@few
@given(ranges, ranges)
def test_merge_is_the_union(one: list[Range], other: list[Range]) -> None:
    merged = merge(one, other)
    assert numbers(merged) == numbers(one) | numbers(other)
    assert_normal(merged)


@few
@given(ranges, ranges)
def test_subtract_is_the_difference(one: list[Range], other: list[Range]) -> None:
    left = subtract(one, other)
    assert numbers(left) == numbers(one) - numbers(other)
    assert_normal(left)


@few
@given(ranges, st.integers(0, 30))
def test_clip_keeps_what_exists(one: list[Range], chunks: int) -> None:
    assert numbers(clip(one, chunks)) == numbers(one) & set(range(chunks))


@few
@given(ranges, ranges, st.integers(0, 12))
def test_a_grant_is_missing_new_and_within_the_window(
    missing: list[Range], granted: list[Range], window: int
) -> None:
    grant = next_grant(missing, granted, window)
    outstanding = numbers(missing) & numbers(granted)
    assert numbers(grant) <= numbers(missing) - numbers(granted)
    assert size(grant) == max(0, min(window - len(outstanding), len(numbers(missing) - numbers(granted))))
    assert_normal(grant)
