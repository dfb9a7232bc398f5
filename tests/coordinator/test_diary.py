"""The coordinator's log tells a run's story, a line for each thing that somebody will look for later."""

import logging
from pathlib import Path

import pytest

from coordinator.diary import Diary
from edged.controls import Pause, Resume, Stop
from edged.messages import FleetState
from tests.coordinator.hall import Hall


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    return Hall(tmp_path)


def test_begin_pause_resume_stop_and_end_are_logged(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordinator.diary")
    hall.add("a", "b")
    hall.start(rounds=9)
    hall.until(lambda: len(hall.rows("round")) == 1)
    hall.ask(Pause())
    hall.until(lambda: hall.server.fleet_state().phase == "paused")
    hall.turn(1.0)
    hall.ask(Resume())
    hall.ask(Stop())
    hall.until(hall.over)
    told = [record.getMessage() for record in caplog.records if record.name == "coordinator.diary"]
    assert told[0].startswith("run r1 begins: task digits, pool digits, 9 rounds of 300 samples")
    assert "run r1: pause, by tester@bench" in told
    assert sum("run r1 is paused at round" in text for text in told) == 1
    paused = next(text for text in told if "is paused" in text)
    assert ":" not in paused, "why shares are so is no reason of a pause"
    assert "run r1: resume, by tester@bench" in told
    assert "run r1: stop, by tester@bench" in told
    assert told[-1] == "run r1 is over: stopped by tester@bench"


def test_a_lost_order_and_an_empty_round_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordinator.diary")
    row = {"run": "r1", "round": 2, "board": "a", "status": "expired", "samples": 70, "reason": "silent"}
    Diary()("board_round", row)
    Diary()("board_round", {**row, "status": "accepted"})
    Diary()("round", {"run": "r1", "round": 2, "accepted": 0})
    assert [record.getMessage() for record in caplog.records] == [
        "run r1, round 2: a expired, 70 samples are dealt again: silent",
        "run r1, round 2: nothing was accepted, the model stays as it was",
    ]


def test_a_run_that_pauses_by_itself_says_why_once(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO, "coordinator.diary")
    diary, state = (
        Diary(),
        FleetState("c", 1, "up", "pi", run="r1", round=8, phase="paused", reason="no luck"),
    )
    diary("state", state)
    diary("state", state)
    assert [record.getMessage() for record in caplog.records] == ["run r1 is paused at round 8: no luck"]


def test_a_broker_that_refuses_us_is_a_warning(hall: Hall, caplog: pytest.LogCaptureFixture) -> None:
    hall.broker.stop()
    hall.turn(1.0)
    hall.turn(5.0)
    stages = [record for record in caplog.records if record.getMessage().startswith("the broker: ")]
    assert stages
    assert all(record.levelno == logging.WARNING for record in stages)
