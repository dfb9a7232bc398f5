"""A run that was promised begins, whoever is killed while it is prepared, unless it is stopped before."""

from pathlib import Path

import pytest

from coordinator.evaluate import Answer
from edged import controls
from tests.coordinator.hall import Hall
from tests.coordinator.stand_ins import Asleep, Examiner


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    """Whose runs are being prepared for ever, until the coordinator is another one."""
    return Hall(tmp_path, examiner=Asleep)


def test_a_coordinator_killed_while_it_prepares_a_run_begins_it_after_its_start(hall: Hall) -> None:
    hall.add("a", "b")
    assert hall.start().ok
    hall.kill()
    assert hall.ask(controls.GetStatus()).data["preparing"] == "r1"
    hall.examiner = Examiner
    hall.kill()
    hall.until(hall.over)
    assert sum(row["accepted"] for row in hall.rows("round")) == 900
    assert [row["who"] for row in hall.rows("control")] == ["tester@bench"]
    hall.kill()
    assert hall.server.idle


def test_a_run_that_could_not_begin_is_not_tried_again(hall: Hall) -> None:
    hall.start(options={"broken": True})
    hall.examiner = Examiner
    hall.kill()
    hall.until(lambda: hall.server.runs.beginning is None)
    assert "has no option broken" in hall.server.runs.failure
    hall.kill()
    assert (hall.server.runs.beginning, hall.server.runs.failure) == (None, "")
    assert hall.start().ok


def test_a_run_that_is_being_prepared_can_be_stopped_and_its_name_given_to_another(hall: Hall) -> None:
    hall.add("a")
    hall.start(rounds=9)
    reply = hall.ask(controls.Stop())
    assert (reply.ok, reply.text) == (True, "run r1 is stopped before it began")
    assert "run r1 could not begin: stopped by tester@bench" in hall.ask(controls.GetStatus()).data["failure"]
    assert hall.start(rounds=1).ok
    examiner = hall.server._examiner
    assert isinstance(examiner, Asleep)
    hall.server.link.events.put(Answer(1, error="of the one that was stopped"))
    hall.turn()
    assert hall.server.runs.beginning == "r1"
    examiner.wake()
    hall.turn()
    assert hall.server.rounds is not None
    assert hall.server.rounds.state.settings.rounds == 1


def test_a_promise_that_this_program_cannot_read_ends_with_it_and_not_the_service(hall: Hall) -> None:
    hall.start()
    hall.server.store._connection.execute("UPDATE asked SET settings = '{}'")
    hall.kill()
    assert hall.server.idle
    assert hall.server.store.asked() is None
