"""Log lines for the journal and for a terminal."""

import logging

import pytest

from edged.journal import Lines, as_error


def record(level: int, text: str) -> logging.LogRecord:
    return logging.LogRecord("edged", level, __file__, 1, text, None, None)


@pytest.mark.parametrize(
    ("level", "line"),
    [
        (logging.CRITICAL, "<3>CRITICAL x"),
        (logging.ERROR, "<3>ERROR x"),
        (logging.WARNING, "<4>WARNING x"),
        (logging.INFO, "<6>INFO x"),
        (logging.DEBUG, "<7>DEBUG x"),
    ],
)
def test_the_journal_hears_priorities(level: int, line: str) -> None:
    assert Lines({"JOURNAL_STREAM": "8:123"}).format(record(level, "x")) == line


def test_every_line_of_an_entry_has_its_priority() -> None:
    assert Lines({"JOURNAL_STREAM": "8:123"}).format(record(logging.ERROR, "a\nb")) == "<3>ERROR a\n<3>b"


def test_last_words_are_an_error_in_the_journal_alone() -> None:
    assert as_error("no such key", {"JOURNAL_STREAM": "8:123"}) == "<3>no such key"
    assert as_error("no such key", {}) == "no such key"


def test_a_terminal_gets_plain_lines() -> None:
    assert Lines({}).format(record(logging.ERROR, "x")) == "ERROR x"
