"""What other regimes call a round is a period in asp, wherever somebody reads of it."""

import logging
import re
from pathlib import Path

import pytest

from coordinator.commands import exits
from coordinator.service import describe
from tests.coordinator.commands.desk import Desk
from tests.coordinator.hall import Hall

WORD = re.compile(r"\brounds?\b")


@pytest.fixture
def desk(tmp_path: Path) -> Desk:
    desk = Desk(Hall(tmp_path))
    desk.hall.add("a", "b", "c")
    return desk


def test_no_command_and_no_line_of_the_log_says_round_of_an_asynchronous_run(
    desk: Desk, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO, "coordinator")
    hall = desk.hall
    assert hall.start(regime="asp", policy="equal", rounds=50, budget=60, min_boards=3).ok
    assert "period" in desk.run("rounds").output
    hall.until(lambda: len(hall.rows("round")) == 2)
    said = {
        words: desk.run(*words.split())
        for words in ("weights --w-e 0.5", "policy equal", "boards drain b", "status", "top --once", "pause")
    }
    hall.until(lambda: hall.server.fleet_state().phase == "paused")
    hall.turn(1.0)
    period = hall.server.fleet_state().round
    for words in ("status", "boards", "resume", "rounds"):
        said[f"{words} later"] = desk.run(words)
    for words, done in said.items():
        assert done.status == exits.OK, words
        assert not WORD.search(done.output + done.complaint), words
    assert re.search(r"w_t 0\.5, w_e 0\.5 from period \d+ on", said["weights --w-e 0.5"].output)
    assert re.search(r"^b gets no samples from period \d+ on$", said["boards drain b"].output)
    assert "no board gets another order" in said["pause"].output
    assert re.search(r"held out after period \d+", said["status later"].output)
    hall.kill()
    hall.turn()
    logged = [record.getMessage() for record in caplog.records]
    assert f"run r1 goes on in period {period}" in logged
    assert f"run r1 is paused at period {period}" in logged
    assert not [text for text in logged if WORD.search(text)]
    assert f"period {period} of 50" in describe(hall.server)
