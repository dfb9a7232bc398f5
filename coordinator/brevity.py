"""Holds replies to what one message can carry: fewer rounds or rows; the reply says that it is shortened."""

from collections.abc import Callable
from typing import Any, Final

import msgspec
from msgspec import structs

from edged.codec import MAX_JSON_BYTES
from edged.controls import Reply

ROOM_BYTES: Final = 4096
"""For what stands around the data: topic, ids, text."""
LEAST_BYTES: Final = 8192
SPARED_FIRST: Final = ("decisions", "closed", "controls", "restarts", "board_rounds")
"""What a reply about rounds goes without where even one round is too much."""

Data = dict[str, Any]


def most_bytes(packet_bytes: int) -> int:
    """The data that a reply may have where the broker takes messages of this size."""
    return max(LEAST_BYTES, min(MAX_JSON_BYTES, packet_bytes) - ROOM_BYTES)


def size(value: Any) -> int:
    """Bytes of it as JSON."""
    return len(msgspec.json.encode(value))


def rounds(told: Callable[[int], Data], last: int, most: int) -> Data:
    """`told(last)`, or of as many of the newest rounds as fit; then `shortened` says so."""
    data = told(last)
    found = len(data["rounds"])
    count = min(last, found)
    while (bytes_ := size(data)) > most and count > 1:
        # A little less than in proportion, so that few attempts are enough.
        count = max(1, min(count - 1, int(0.9 * count * most / bytes_)))
        data = told(count)
    if count < found:
        data["shortened"] = f"the newest {count} of {found} rounds: more does not fit into one reply"
    for name in SPARED_FIRST:
        if size(data) <= most:
            break
        data[name] = []
        data["shortened"] = f"a round that does not fit into one reply: without its {name.replace('_', ' ')}"
    return data


def rows(key: str, found: list[Any], most: int) -> Data:
    """The first of these rows, as many as fit."""
    count = len(found)
    data: Data = {key: found}
    while (bytes_ := size(data)) > most and count:
        count = min(count - 1, int(0.9 * count * most / bytes_))
        text = f"the first {count} of {len(found)} {key}: more does not fit into one reply"
        data = {key: found[:count], "shortened": text}
    return data


def reply(whole: Reply, most: int) -> Reply:
    """The reply, or where it is still too large the refusal that says so."""
    text = whole.text or str(whole.data.get("shortened", ""))
    if (bytes_ := size(whole.data)) <= most:
        return structs.replace(whole, text=text)
    refusal = f"the answer has {bytes_:,} bytes, more than the {most:,} that a reply may have: ask for less"
    return Reply(whole.id, False, refusal)
