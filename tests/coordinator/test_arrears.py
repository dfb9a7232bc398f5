"""What a killed coordinator had not measured yet is measured after its start, or said to be lost."""

from pathlib import Path

import pytest

from coordinator.arrears import GONE
from tests.coordinator.hall import Hall
from tests.coordinator.stand_ins import Examiner, Unmeasuring


@pytest.fixture
def hall(tmp_path: Path) -> Hall:
    """Where a run goes on and nothing is measured until the coordinator is another one."""
    made = Hall(tmp_path, examiner=Unmeasuring)
    made.add("a", "b")
    return made


def run_to(hall: Hall, number: int, phase: str) -> None:
    def there() -> bool:
        state = hall.server.rounds.state if hall.server.rounds is not None else None
        return state is not None and (state.round, state.phase) == (number, phase)

    hall.until(there)


def kill(hall: Hall) -> None:
    hall.examiner = Examiner
    hall.kill()
    hall.until(lambda: hall.server.idle)
    hall.server.execution.flush(hall.now)


def test_a_finished_run_is_measured_to_its_end(hall: Hall) -> None:
    hall.start()
    run_to(hall, 3, "done")
    hall.server.store.checkpoints.model("r1.1").unlink()
    kill(hall)
    found = {row["round"]: row.get("accuracy") or row["error"] for row in hall.rows("evaluation")}
    assert found == {0: 0.5, 1: GONE, 2: 0.5, 3: 0.5}


def test_so_are_the_rounds_that_are_over_of_a_run_that_goes_on(hall: Hall) -> None:
    hall.start()
    run_to(hall, 2, "running")
    kill(hall)
    assert {row["round"]: row["accuracy"] for row in hall.rows("evaluation")} == dict.fromkeys(range(4), 0.5)


def test_a_run_without_figures_gets_none(hall: Hall) -> None:
    hall.start(evaluate=False)
    run_to(hall, 3, "done")
    kill(hall)
    assert hall.rows("evaluation") == []
