"""What is kept and what is dropped while the broker is away."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.link import OutboxFullError, Priority
from edged.outbox import Item, Outbox, Put


def put(
    outbox: Outbox, topic: str, size: int = 100, priority: Priority = "report", latest: bool = False
) -> Put:
    qos = 0 if priority == "telemetry" else 1
    return outbox.put(topic, b"x" * size, qos=qos, retain=False, priority=priority, latest=latest)


def drain(outbox: Outbox) -> list[Item]:
    items = []
    while (item := outbox.take()) is not None:
        items.append(item)
        outbox.acknowledge(item.token)
    return items


def test_telemetry_goes_first_and_oldest_first() -> None:
    outbox = Outbox(1000)
    for number in range(8):
        put(outbox, f"power/{number}", priority="telemetry")
    assert outbox.queued_bytes == 8 * 114
    done = put(outbox, "report", size=400)
    assert [item.topic for item in done.dropped] == [f"power/{number}" for number in range(3)]
    assert drain(outbox)[0].topic == "report"


def test_a_report_pushes_out_chunks_only_when_no_telemetry_is_left() -> None:
    outbox = Outbox(1000)
    put(outbox, "chunk", size=600, priority="chunk")
    put(outbox, "power", size=200, priority="telemetry")
    done = put(outbox, "report", size=700)
    assert [item.topic for item in done.dropped] == ["power"]
    assert [item.topic for item in done.pushed_out] == ["chunk"]


def test_telemetry_pushes_out_nothing_but_telemetry() -> None:
    outbox = Outbox(1000)
    put(outbox, "report", size=900)
    done = put(outbox, "power", size=200, priority="telemetry")
    assert [item.topic for item in done.dropped] == ["power"]
    assert [item.topic for item in drain(outbox)] == ["report"]


def test_a_report_that_cannot_fit_is_refused_and_nothing_is_lost_for_it() -> None:
    outbox = Outbox(1000)
    put(outbox, "power", priority="telemetry")
    put(outbox, "report", size=500)
    with pytest.raises(OutboxFullError, match="late: 612 bytes do not fit; 626 of 1,000 bytes wait"):
        put(outbox, "late", size=600)
    assert sorted(item.topic for item in drain(outbox)) == ["power", "report"]


def test_the_latest_replaces_what_was_not_sent_yet() -> None:
    outbox = Outbox(10_000)
    for size in range(1, 5):
        put(outbox, "state", size=size, latest=True)
    put(outbox, "report")
    assert [(item.topic, len(item.payload)) for item in drain(outbox)] == [("state", 4), ("report", 100)]


def test_no_more_than_eight_chunks_are_on_their_way_and_telemetry_passes_them() -> None:
    outbox = Outbox(100_000)
    for number in range(20):
        put(outbox, f"chunk/{number}", priority="chunk")
    put(outbox, "power", priority="telemetry")
    sent = []
    while (item := outbox.take()) is not None:
        sent.append(item.topic)
    assert sent == [*(f"chunk/{number}" for number in range(8)), "power"]


def test_no_more_than_64_messages_are_on_their_way() -> None:
    outbox = Outbox(1_000_000)
    for number in range(100):
        put(outbox, f"report/{number}")
    assert sum(outbox.take() is not None for _ in range(100)) == 64


def test_after_a_lost_connection_the_unacknowledged_come_first_again() -> None:
    outbox = Outbox(10_000)
    for number in range(3):
        put(outbox, f"report/{number}")
    put(outbox, "power", priority="telemetry")
    first, second = outbox.take(), outbox.take()
    assert first is not None
    assert second is not None
    outbox.acknowledge(first.token)
    outbox.lost()
    assert [(item.topic, item.attempts) for item in drain(outbox)] == [
        ("report/1", 1),
        ("report/2", 0),
        ("power", 0),
    ]


def test_telemetry_on_its_way_is_given_up_with_the_connection() -> None:
    outbox = Outbox(10_000)
    put(outbox, "power", priority="telemetry")
    outbox.take()
    assert [item.topic for item in outbox.lost()] == ["power"]
    assert len(outbox) == 0
    assert outbox.queued_bytes == 0


operations = st.lists(
    st.one_of(
        st.tuples(
            st.just("put"),
            st.sampled_from(["report", "chunk", "telemetry"]),
            st.integers(0, 400),
            st.booleans(),
        ),
        st.tuples(st.sampled_from(["take", "acknowledge", "lose"])),
    ),
    max_size=60,
)


@settings(deadline=None, max_examples=100)
@given(operations)
def test_within_its_bound_it_loses_no_report_and_accounts_for_everything(
    steps: list[tuple[str, ...]],
) -> None:
    outbox = Outbox(2000, chunks_in_flight=2, messages_in_flight=4)
    kept: dict[int, str] = {}
    on_their_way: list[int] = []
    for step in steps:
        if step[0] == "put":
            _, priority, size, latest = step
            before = outbox.waiting
            try:
                done = put(outbox, priority, int(size), priority, bool(latest))  # type: ignore[arg-type]
            except OutboxFullError:
                assert priority != "telemetry"
                assert outbox.waiting == before
                continue
            if latest:
                for token in [t for t, p in kept.items() if p == priority and t not in on_their_way]:
                    del kept[token]
            kept[done.token] = priority
            for item in (*done.dropped, *done.pushed_out):
                assert item.priority != "report"
                kept.pop(item.token, None)
        elif step[0] == "take":
            taken = outbox.take()
            if taken is not None:
                on_their_way.append(taken.token)
        elif step[0] == "acknowledge" and on_their_way:
            token = on_their_way.pop()
            assert outbox.acknowledge(token) is not None
            del kept[token]
        elif step[0] == "lose":
            for item in outbox.lost():
                assert item.qos == 0
                del kept[item.token]
            on_their_way.clear()
        assert outbox.queued_bytes <= 2000
        assert outbox.in_flight == len(on_their_way) <= 4
        assert len(outbox) == len(kept)
    outbox.lost()
    left = {item.token for item in drain(outbox)}
    assert {token for token, priority in kept.items() if priority != "telemetry"} <= left
    assert outbox.queued_bytes == 0
