"""Foreign text on a terminal, in logs and in JSON: nothing steers, nothing forges a line."""

import json
import logging
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.cleaning import Lines, visible, visible_json
from coordinator.commands import _show

HOSTILE = "pi\x1b[2J\r\nboard b: fine\x9b31m\u202e\x07"


@given(st.text())
def test_nothing_steers_a_terminal_and_every_word_stays(text: str) -> None:
    shown = visible(text)
    assert not any(ord(c) < 32 or 127 <= ord(c) < 160 for c in shown)
    if text.isascii() and text.isprintable():
        assert shown == text


def test_control_characters_are_shown_as_escapes() -> None:
    assert visible(HOSTILE) == r"pi\x1b[2J\r\nboard b: fine\x9b31m\u202e\x07"
    assert visible("größer → 4 °C") == "größer → 4 °C"


@given(st.text())
def test_json_stays_the_same_document(text: str) -> None:
    document = visible_json(json.dumps({"a": text}, ensure_ascii=False, indent=2))
    assert json.loads(document) == {"a": text}
    assert "\x9b" not in document


def test_tables_and_lines_are_clean(capsys: pytest.CaptureFixture[str]) -> None:
    _show.table(HOSTILE, ["board", "reason"], [[HOSTILE, HOSTILE]])
    _show.line(HOSTILE)
    _show.progress(HOSTILE)
    _show.json({"a": HOSTILE})
    out, err = capsys.readouterr()
    assert "\x1b" not in out + err
    assert "\x9b" not in out + err
    assert out.count("\n") == 3 + 1 + 3
    assert err.count("\n") == 1


def test_a_rich_table_is_clean() -> None:
    from rich.console import Console

    console = Console(width=200, force_terminal=False)
    with console.capture() as captured:
        console.print(_show.rich_table(HOSTILE, ["reason"], [[HOSTILE]], "<"))
    assert "\x1b" not in captured.get()
    assert "\x9b" not in captured.get()


def test_a_log_line_stays_a_line_and_a_traceback_keeps_its_lines() -> None:
    record = logging.LogRecord("x", logging.WARNING, "", 0, "%s: lost", (HOSTILE,), None)
    assert "\n" not in Lines("%(message)s").format(record)
    try:
        raise ValueError(HOSTILE)
    except ValueError:
        record = logging.LogRecord("x", logging.ERROR, "", 0, "lost", (), sys.exc_info())
    written = Lines("%(message)s").format(record)
    assert "\x1b" not in written
    assert written.splitlines()[1].startswith("Traceback")
