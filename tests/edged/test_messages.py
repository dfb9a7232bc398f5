"""The words of the protocol: what is read, what is refused and how, and that old words stay readable."""

import pathlib
import subprocess
import sys
from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged import controls, fields, messages
from edged.messages import Birth, FleetState, Grant, MessageError, Order, Power, Report, State, Want

ROOT = pathlib.Path(__file__).resolve().parents[2]
CORPUS = sorted((ROOT / "tests/data/protocol/v1").glob("*.json"))
KINDS: dict[str, Any] = {
    "birth": Birth,
    "state": State,
    "power": Power,
    "report": Report,
    "want": Want,
    "order": Order,
    "fleet": FleetState,
    "request": controls.Request,
    "reply": controls.Reply,
}


TRAINED = b'{"board":"b","boot":"b","stage":"trained","term":1,'


def kind_of(path: pathlib.Path) -> Any:
    return KINDS[path.stem.split("-")[0]]


def read_or_refusal(kind: Any, payload: bytes) -> str:
    """Empty for a message, else the refusal's text; anything but a MessageError is passed on."""
    try:
        messages.decode(kind, payload)
    except MessageError as error:
        return str(error) or "a refusal without a text"
    return ""


def alike(known: Any, written: Any) -> Any:
    """What was written, without the fields that came after the known words, at any depth."""
    if isinstance(known, dict) and isinstance(written, dict):
        return {name: alike(value, written[name]) for name, value in known.items()}
    return written


@pytest.mark.parametrize("path", CORPUS, ids=lambda p: p.stem)
def test_what_version_one_wrote_is_still_read_and_written_alike(path: pathlib.Path) -> None:
    payload = path.read_bytes()
    message = messages.decode(kind_of(path), payload)
    known = {k: v for k, v in msgspec.json.decode(payload).items() if k != "mood"}
    assert alike(known, msgspec.json.decode(messages.encode(message))) == known


def test_the_corpus_has_every_message() -> None:
    read = [messages.decode(kind_of(path), path.read_bytes()) for path in CORPUS]
    found = {type(message) for message in read}
    found |= {type(message.do) for message in read if isinstance(message, controls.Request)}
    everything = {Birth, State, Power, Report, Want, FleetState, controls.Request, controls.Reply}
    assert everything | set(get_args(Order)) | set(get_args(controls.Action)) <= found


def test_words_of_a_later_version_are_kept_and_shown() -> None:
    payload = (ROOT / "tests/data/protocol/v1/state-from-a-later-version.json").read_bytes()
    assert messages.decode(State, payload).phase == "dreaming"
    assert messages.unknown_fields(State, payload) == {"mood": "fine"}


@pytest.mark.parametrize(
    ("kind", "payload", "text"),
    [
        (State, b'{"board":"B","boot":"b","conn":1,"phase":"x"}', "$.board"),
        (State, b'{"board":"a/#","boot":"b","conn":1,"phase":"x"}', "$.board"),
        (State, b'{"board":"b","boot":"b","conn":-1,"phase":"x"}', "$.conn"),
        (State, b'{"board":"b","boot":"b","conn":1,"phase":"x","uptime_seconds":1e999}', "$.uptime_seconds"),
        (State, b'{"board":"b","boot":"b","conn":1,"phase":"x","uptime_seconds":NaN}', "malformed"),
        (Report, TRAINED + b'"order":"r.1.b.1","parts":{"compute":{"joules":-1}}}', "$.parts.compute.joules"),
        (Report, TRAINED + b'"order":"r.1.b"}', "$.order"),
        (Order, b'{"kind":"explode"}', "$.kind"),
        (
            Order,
            b'{"kind":"grant","order":"r.1.b.1","boot":"x","term":1,"ranges":[[0,"a"]]}',
            "$.ranges[0][1]",
        ),
        (Want, b"[]", "array"),
        (Want, b"\xff\xfe", "malformed"),
        (Want, b"", "truncated"),
    ],
)
def test_a_wrong_field_is_refused_by_its_path(kind: type, payload: bytes, text: str) -> None:
    with pytest.raises(MessageError) as refused:
        messages.decode(kind, payload)
    assert text in str(refused.value)


def test_a_huge_payload_is_refused_before_it_is_read() -> None:
    with pytest.raises(MessageError, match="more than"):
        messages.decode(State, b" " * (messages.MAX_JSON_BYTES + 1))


def test_a_number_that_is_not_finite_is_not_sent() -> None:
    with pytest.raises(MessageError, match=r"Power\.watts\.x"):
        messages.encode(Power("b", "b", watts={"x": float("nan")}))
    with pytest.raises(MessageError, match="clock_seconds"):
        messages.encode(State("b", "b", 1, "idle", clock_seconds=float("inf")))


@settings(max_examples=300, deadline=None)
@given(payload=st.binary(max_size=200) | st.from_regex(rb"\A[\[{}\]\",:a-z0-9. -]{0,120}\Z"))
def test_any_bytes_are_a_message_or_a_clear_refusal(payload: bytes) -> None:
    for kind in KINDS.values():
        assert read_or_refusal(kind, payload) != "a refusal without a text"


json_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3),
    max_leaves=8,
)


@settings(max_examples=200, deadline=None)
@given(data=st.data())
def test_a_field_of_any_type_is_read_or_refused(data: st.DataObject) -> None:
    path = data.draw(st.sampled_from(CORPUS))
    body = msgspec.json.decode(path.read_bytes())
    body[data.draw(st.sampled_from(sorted(body)))] = data.draw(json_values)
    assert read_or_refusal(kind_of(path), msgspec.json.encode(body)) != "a refusal without a text"


def test_chunks_are_counted_up() -> None:
    assert [messages.Manifest(n, 10, "0" * 64).chunks for n in (1, 10, 11)] == [1, 1, 2]
    assert Grant("r.1.b.1", "c", 1, ()).window == 8


def test_the_document_says_what_the_code_says() -> None:
    printed = subprocess.run(
        [sys.executable, ROOT / "scripts/protocol-tables"], capture_output=True, text=True, check=True
    ).stdout
    document = (ROOT / "docs/protocol.md").read_text()
    assert document.split("from here on -->\n")[1].strip() == printed.strip()


@pytest.mark.parametrize(
    ("kind", "text"),
    [
        (fields.Id, "pi4\n"),
        (fields.OrderId, "r.1.pi4.1\n"),
        (fields.OrderId, "r.\u0661.pi4.1"),
        (fields.Version, "r.0\n"),
        (fields.Sha256, "ab" * 32 + "\n"),
    ],
)
def test_an_id_ends_where_it_ends_and_has_ascii_digits(kind: Any, text: str) -> None:
    """What passes here becomes a topic and a file name."""
    with pytest.raises(MessageError, match="matching regex"):
        messages.decode(kind, msgspec.json.encode(text))
