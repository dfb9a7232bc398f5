"""Whatever bytes come on whatever topic: refused by name, counted, and the run goes on."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from edged import controls
from edged.messages import Birth, MessageError, Power, Report, State, Train, Want, decode, encode
from edged.topics import ROUTES
from tests.coordinator.hall import Hall

BOARD_ROUTES = [route.name for route in ROUTES if route.sender != "coordinator"]
FIELDS = {
    "board": st.sampled_from(["a", "b", "zz", "0" * 63]),
    "order": st.sampled_from(["r1.1.a.1", "r1.1.b.1", "r9.1.a.1", "r1.999999999.a.999999999"]),
    "chunk": st.integers(0, 10**9 - 1),
    "client": st.just("cli-9"),
    "version": st.sampled_from(["r1.0", "r1.1", "x.5"]),
}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=20),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=12), inner, max_size=4),
    max_leaves=12,
)


@pytest.fixture(scope="module")
def hall(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Hall]:
    """A coordinator whose run never gets far: its one board is slow."""
    hall = training(tmp_path_factory.mktemp("hall"))
    yield hall
    hall.server.close()


def training(folder: Path) -> Hall:
    hall = Hall(folder)
    hall.add("a", seconds_per_sample=1e6)
    hall.start()
    hall.until(lambda: hall.boards[0].phase == "training")
    return hall


def unharmed(hall: Hall) -> None:
    for _ in range(4):
        hall.turn()
    assert "internal_errors" not in hall.odd()
    assert hall.server.runs.active
    status = hall.ask(controls.GetStatus())
    assert status.data["run"]["run"] == "r1"
    assert status.data["link"]["stage"] == "up"


def near(message: msgspec.Struct) -> st.SearchStrategy[bytes]:
    """Messages with some fields replaced by anything, and then perhaps cut or with bytes changed."""
    plain = msgspec.to_builtins(message)
    wrong = st.dictionaries(st.sampled_from(sorted(plain)), JSON, max_size=3)

    def spoil(changes: dict[str, Any], seed: int) -> bytes:
        text = msgspec.json.encode({**plain, **changes})
        random_numbers = random.Random(seed)
        if seed % 3 == 1:
            return text[: random_numbers.randrange(len(text))]
        if seed % 3 == 2:
            place = random_numbers.randrange(len(text))
            return text[:place] + random_numbers.randbytes(3) + text[place + 1 :]
        return text

    return st.builds(spoil, wrong, st.integers(0, 10**6))


SAMPLES: dict[str, msgspec.Struct] = {
    "birth": Birth("b", "boot-b", 1, "up"),
    "state": State("a", "a-boot", 1, "training", "r1.1.a.1", model="r1.0"),
    "power": Power("a", "a-boot", "w", "measured", {"w": 1.0}, {"w": 2.0}, "r1.1.a.1", 5.0),
    "report": Report("a", "a-boot", "r1.1.a.1", "trained", 1, 300, 3),
    "want": Want("a", "a-boot", "r1.0", ((0, 3),)),
    "request": controls.Request("cli-9", "q1", controls.SetWeights(0.5)),
}


@settings(max_examples=120, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data())
def test_any_bytes_on_any_topic(hall: Hall, data: st.DataObject) -> None:
    for _ in range(3):
        route = data.draw(st.sampled_from(BOARD_ROUTES))
        pattern = next(r.pattern for r in ROUTES if r.name == route)
        fields: dict[str, Any] = {
            name: data.draw(values) for name, values in FIELDS.items() if f"<{name}>" in pattern
        }
        anything = st.binary(max_size=200) | JSON.map(msgspec.json.encode)
        payload = data.draw(
            near(SAMPLES[route]) if route in SAMPLES and data.draw(st.booleans()) else anything
        )
        hall.operator.publish(hall.topics.of(route, **fields), payload, retain=data.draw(st.booleans()))
    unharmed(hall)


def other_runs() -> list[tuple[str, msgspec.Struct, str]]:
    order = "r1.1.a.1"
    return [
        ("report", Report("a", "a-boot", "r2.1.a.1", "trained", 1), "stray_reports"),
        ("report", Report("a", "a-boot", "r1.7.a.1", "trained", 1), "stray_reports"),
        ("report", Report("a", "a-boot", "r1.1.b.1", "trained", 1), "stray_reports"),
        ("report", Report("a", "old-boot", order, "trained", 1), "stray_reports"),
        ("report", Report("a", "a-boot", order, "trained", 0), "older_terms"),
        ("report", Report("a", "a-boot", order, "closing", 1), "stray_reports"),
        ("report", Report("a", "a-boot", "r9.1.a.1", "closed", 1), "stray_reports"),
        ("report", Report("b", "a-boot", order, "trained", 1), "foreign_ids"),
        ("state", State("b", "a-boot", 1, "idle"), "foreign_ids"),
        ("state", State("a", "no-such-boot", 1, "idle"), "foreign_states"),
        ("power", Power("a", "no-such-boot"), "foreign_powers"),
        ("birth", Birth("a", "a-boot", 0, "lost"), "old_births"),
        ("want", Want("a", "a-boot", "r1.77", ((0, 1),)), "unknown_models"),
        ("want", Want("a", "a-boot", "r1.0", ((0, 10**9),)), "refused_wants"),
        ("want", Want("a", "a-boot", "r1.0", ((5, 2),)), "refused_wants"),
    ]


@pytest.mark.parametrize("case", range(len(other_runs())))
def test_what_does_not_belong_here_is_refused_by_name(tmp_path: Path, case: int) -> None:
    hall = training(tmp_path)
    route, message, counter = other_runs()[case]
    hall.operator.publish(hall.topics.of(route, board="a"), encode(message))
    unharmed(hall)
    assert hall.odd("a")[counter] >= 1
    assert counter in hall.ask(controls.GetBoards()).data["boards"][0]["counters"]
    assert counter in hall.ask(controls.GetStatus()).data["counters"]["a"]
    hall.server.close()


def test_a_request_that_is_not_understood_is_answered(hall: Hall) -> None:
    bad = b'{"client":"cli-1","id":"q9","do":{"action":"weights","w_e":"much"}}'
    hall.operator.publish(hall.topics.of("request"), bad)
    hall.turn()
    replies = []
    while not hall.operator.events.empty():
        event = hall.operator.events.get()
        if getattr(event, "topic", "").endswith("reply/cli-1"):
            replies.append(decode(controls.Reply, event.payload))  # type: ignore[attr-defined]
    assert "w_e" in next(reply.text for reply in replies if reply.id == "q9")


def test_no_message_can_carry_a_number_that_is_not_one() -> None:
    with pytest.raises(MessageError):
        decode(State, b'{"board":"a","boot":"b","conn":1,"phase":"idle","uptime_seconds":NaN}')


@pytest.mark.parametrize(
    ("spoil", "counter", "words"),
    [
        ("nan", "refused_updates", "not finite"),
        ("name", "refused_updates", "missing"),
        ("shape", "refused_updates", "shape"),
        ("hash", "refused_updates", "SHA-256"),
        ("length", "refused_reports", "announces"),
        ("samples", "refused_reports", "ordered"),
        ("seconds", "refused_reports", "claims"),
    ],
)
def test_a_lying_board_costs_its_share_of_the_round_and_no_more(
    tmp_path: Path, spoil: str, counter: str, words: str
) -> None:
    import numpy as np

    hall = Hall(tmp_path)
    _, liar = hall.add("a", "b")
    honest = liar.update

    def update(tensors: dict[str, Any]) -> dict[str, Any]:
        found = honest(tensors)
        if spoil == "nan":
            found["w"][7] = np.nan
        elif spoil == "name":
            found["v"] = found.pop("w")
        elif spoil == "shape":
            found["w"] = found["w"][:-1]
        return found

    publish = liar.publish

    def lie(route: str, payload: bytes, **fields: str | int) -> None:
        if route == "report" and spoil in ("hash", "length", "samples", "seconds"):
            report = decode(Report, payload)
            assert report.manifest is not None
            changes: dict[str, Any] = {
                "hash": {"manifest": msgspec.structs.replace(report.manifest, sha256="0" * 64)},
                "length": {"manifest": msgspec.structs.replace(report.manifest, length_bytes=1 << 40)},
                "samples": {"samples": report.samples * 1000},
                "seconds": {
                    "parts": msgspec.structs.replace(
                        report.parts, compute=msgspec.structs.replace(report.parts.compute, seconds=1e6)
                    )
                },
            }
            payload = encode(msgspec.structs.replace(report, **changes[spoil]))
        publish(route, payload, **fields)

    liar.update, liar.publish = update, lie  # type: ignore[method-assign]
    hall.start(rounds=2)
    hall.until(lambda: len(hall.rows("round")) == 1)
    first = hall.rows("round")[0]
    assert (first["ordered"], first["accepted"]) == (300, 150)
    assert hall.odd("b")[counter] >= 1
    assert words in hall.server.counters.of("b")[counter][1]
    liar.update, liar.publish = honest, publish  # type: ignore[method-assign]
    hall.until(hall.over)
    assert sum(row["accepted"] for row in hall.rows("round")) == 600
    hall.server.close()


def test_updates_for_nobody_are_dropped(tmp_path: Path) -> None:
    hall = training(tmp_path)
    order = hall.boards[0].order
    assert isinstance(order, Train)
    before = sorted((hall.folder / "store" / "runs").rglob("*"))
    for name in (order.order, "r1.1.a.9", "x.1.a.1"):
        hall.operator.publish(hall.topics.of("update", board="a", order=name, chunk=0), b"x" * 1024)
    hall.operator.publish(hall.topics.of("update", board="a", order="r1.1.b.1", chunk=0), b"x")
    unharmed(hall)
    assert hall.odd("a")["stray_chunks"] >= 3
    assert hall.odd("a")["foreign_ids"] >= 1
    assert sorted((hall.folder / "store" / "runs").rglob("*")) == before
    hall.server.close()
