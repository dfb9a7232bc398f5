"""Odd things are counted and logged as sentences: who, what, and how often so far."""

import logging

import pytest

from coordinator.counters import Counters
from coordinator.events import Note


def test_a_note_is_logged_as_a_sentence_and_not_again_within_a_minute(
    caplog: pytest.LogCaptureFixture,
) -> None:
    counters = Counters()
    for now in (0.0, 1.0, 61.0):
        counters.note(Note("pi4", "stray_reports", "a report is of another run (r2)"), now)
    counters.note(Note("-", "failed_merges", "the disk is full"), 0.0)
    assert [record.getMessage() for record in caplog.records] == [
        "pi4: a report is of another run (r2) (stray reports 1)",
        "pi4: a report is of another run (r2) (stray reports 3)",
        "the coordinator: the disk is full (failed merges 1)",
    ]
    assert all(record.levelno == logging.WARNING for record in caplog.records)
