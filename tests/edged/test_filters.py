"""A topic belongs to a connection if one of its filters says so, also after more filters came."""

import pytest

from edged.filters import MOST_TOPICS, Filters


@pytest.mark.parametrize(
    ("topic", "mine"),
    [
        ("edged/v1/lab/board/pi4/power", True),
        ("edged/v1/lab/board/pi4/birth", False),
        ("edged/v1/lab/fleet/state", True),
        ("edged/v1/lab/board/power", False),
    ],
)
def test_a_topic_is_ours_when_a_filter_matches(topic: str, mine: bool) -> None:
    filters = Filters()
    filters.add({"edged/v1/lab/board/+/power": 0, "edged/v1/lab/fleet/#": 1})
    assert [filters.match(topic), filters.match(topic)] == [mine, mine]


def test_an_answer_is_found_anew_once_more_is_asked_for() -> None:
    filters = Filters()
    filters.add({"a/+": 0})
    assert not filters.match("b/c")
    filters.add({"b/+": 1})
    assert filters.match("b/c")
    assert filters.asked == {"a/+": 0, "b/+": 1}


def test_topics_without_end_are_answered_but_not_all_remembered() -> None:
    filters = Filters()
    filters.add({"update/+": 1})
    assert all(filters.match(f"update/{number}") for number in range(2 * MOST_TOPICS))
    assert filters._known.cache_info().currsize == MOST_TOPICS
