"""Topics: what is built parses back, what is hostile does not."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from edged.topics import ROUTES, VALID_ID, Topics, order_id, route, version_id

FIELDS: dict[str, str | int] = {
    "board": "pi5",
    "client": "cli-1",
    "chunk": 7,
    "version": "run1.2",
    "order": "run1.3.pi5.1",
}
TOPICS = Topics("lab")


@pytest.mark.parametrize("name", [row.name for row in ROUTES])
def test_every_topic_parses_back_to_its_parts(name: str) -> None:
    topic = TOPICS.of(name, **FIELDS)
    address = TOPICS.parse(topic)
    assert address is not None
    assert address.route.name == name
    for field in ("board", "client", "order", "version"):
        assert getattr(address, field) in ("", FIELDS[field])


@pytest.mark.parametrize(
    "topic",
    [
        "edged/v1/other/board/pi5/state",
        "edged/v1/lab/board/PI5/state",
        "edged/v1/lab/board//state",
        "edged/v1/lab/board/pi5/state/x",
        "edged/v1/lab/board/pi5/state\n",
        "edged/v1/lab/board/+/state",
        "edged/v1/lab/model/run1/3",
        "edged/v1/lab/model/run1.2/-3",
        "edged/v1/lab/board/pi5/update/run1.3.pi5/1",
        "edged/v1/lab/board/" + "a" * 64 + "/state",
    ],
)
def test_a_topic_that_is_none_of_ours_is_none(topic: str) -> None:
    assert TOPICS.parse(topic) is None


def test_an_id_that_would_widen_a_topic_is_refused() -> None:
    for board in ("a/b", "+", "#", "", "ä", "A"):
        with pytest.raises(ValueError, match="no topic"):
            TOPICS.of("state", board=board)


def test_filters_leave_out_what_is_not_given() -> None:
    assert TOPICS.filter("update", board="pi5") == "edged/v1/lab/board/pi5/update/+/+"
    assert TOPICS.filter("birth") == "edged/v1/lab/board/+/birth"


def test_birth_and_fleet_state_are_the_only_retained_topics() -> None:
    assert {row.name for row in ROUTES if row.retain} == {"birth", "fleet"}
    assert route("power").qos == 0


@given(st.text(max_size=80))
def test_any_text_is_a_topic_or_none(topic: str) -> None:
    for text in (topic, "edged/v1/lab/" + topic, "edged/v1/lab/board/" + topic):
        address = TOPICS.parse(text)
        if address is not None and address.board:
            assert VALID_ID.match(address.board)


def test_ids_of_orders_and_versions() -> None:
    assert order_id("run1", 3, "pi5", 1) == "run1.3.pi5.1"
    assert version_id("run1", 2) == "run1.2"
