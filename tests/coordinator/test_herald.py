"""What the coordinator's link announces."""

from coordinator.herald import Herald
from edged.messages import FleetState, decode, encode
from edged.topics import Topics


def test_what_one_connection_says_is_not_taken_for_another_ones_or_for_a_state_in_between() -> None:
    """A link answers late words of older connections with its birth: alike, it would answer for ever."""
    state = FleetState("c1", 1, "up", "pi")
    herald = Herald(Topics("main"), state)
    words = [herald.payload(connection, link) for connection in (1, 2) for link in ("up", "lost", "closed")]
    assert len({*words, encode(state)}) == 7
    assert herald.payload(1, "up") == words[0]
    assert decode(FleetState, words[3]).conn == 2


def test_the_first_birth_knows_the_run_that_is_taken_up() -> None:
    herald = Herald(Topics("main"), FleetState("c1", 1, "up", "pi"))
    herald.begin(FleetState("c1", 1, "up", "pi", run="r1"))
    assert decode(FleetState, herald.payload(1, "up")).run == "r1"
