"""Asynchronous updates between real processes: kills of a board and of the coordinator, every sample once."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import AsynchronousSettings, GetBoards, GetStatus
from tests.scenarios.lab import Lab, check_account

BOARDS = ("rpi4", "rpi5", "n100")
SCALE = "0.004"

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    made = Lab(tmp_path)
    made.start_coordinator()
    for board in BOARDS:
        start(made, board)
    yield made
    made.close()


def start(lab: Lab, board: str) -> None:
    lab.start_board(board, "--emulate", board, "--speed-scale", SCALE)


def begin(lab: Lab, **changes: Any) -> str:
    grain = changes.pop("asynchronous")
    plain: dict[str, Any] = {"regime": "asp", "policy": "omnilearn", "min_boards": 3, "batch": 16}
    return lab.begin(**{**plain, "asynchronous": AsynchronousSettings(**grain), **changes})


def wait_pushes(lab: Lab, run: str, count: int, board: str = "") -> None:
    """Until so many updates are accepted (of that board)."""

    def enough() -> bool:
        rows = [row for row in lab.rows("push", run) if row["status"] == "accepted"]
        return len([row for row in rows if board in ("", row["board"])]) >= count

    lab.wait(enough, f"{count} updates {board}")


def accuracy(lab: Lab, run: str, number: int) -> float:
    """Held-out, after that period."""

    def measured() -> list[dict[str, Any]]:
        return [row for row in lab.rows("evaluation", run) if row["round"] == number]

    return float(lab.wait(measured, f"the figures of period {number}")[0]["accuracy"])


def check_pushes(lab: Lab, run: str) -> list[dict[str, Any]]:
    """Every version was made by one update, and by the one that the store names; sums by board agree."""
    rows = [row for row in lab.rows("push", run) if row["status"] == "accepted"]
    assert [row["model"] for row in rows] == list(range(1, len(rows) + 1))
    assert len({row["order"] for row in rows}) == len(rows)
    periods = lab.rows("round", run)
    assert sum(sum(row["updates"].values()) for row in periods) == len(rows)
    assert all(row["accepted"] + row["returned"] + row["open"] == row["ordered"] for row in periods)
    ages: dict[str, int] = {}
    for row in periods:
        for board, found in row["staleness"].items():
            ages[board] = ages.get(board, 0) + sum(found.values())
    assert ages == {board: sum(row["board"] == board for row in rows) for board in ages}
    return rows


def test_gradients_survive_the_kill_of_a_board_and_of_the_coordinator(lab: Lab) -> None:
    run = begin(lab, budget=480, rounds=4, learning_rate=0.02, asynchronous={})
    wait_pushes(lab, run, 4, "n100")
    lab.kill("n100")
    wait_pushes(lab, run, 20)
    start(lab, "n100")
    before = len(lab.rows("push", run))
    wait_pushes(lab, run, before + 10)
    lab.kill("coordinator")
    lab.start_coordinator()
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 480, 4)
    rows = check_pushes(lab, run)
    killed = [row for row in rows if row["board"] == "n100"]
    assert killed[-1]["model"] > before
    assert accuracy(lab, run, 4) > 0.5
    models = {path.name for path in (lab.store / "runs" / run).glob("model-*")}
    ends = {f"model-{row['model']:06d}.safetensors" for row in lab.rows("round", run)}
    assert models == {"model-000000.safetensors", *ends}
    for closed in lab.rows("closed", run):
        assert all(part["joules"] is not None for part in closed["parts"].values() if part["seconds"])
    status = lab.ask(GetStatus()).data
    assert set(status["fleet"]["pushes"]) == set(BOARDS)
    boards = {row["board"]: row for row in lab.ask(GetBoards()).data["boards"]}
    assert boards["n100"]["link"] == "up"


def test_models_are_mixed_in_by_their_age_and_a_killed_boards_share_is_dealt_again(lab: Lab) -> None:
    run = begin(lab, budget=480, rounds=3, asynchronous={"grain": "model", "bound": 6})
    lab.wait(lambda: lab.rows("decision", run), "the first decision")
    wait_pushes(lab, run, 1)
    slow = next(board for board in BOARDS if not _pushed(lab, run, board))
    lab.kill(slow)
    start(lab, slow)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 480, 3)
    for found in check_pushes(lab, run):
        assert found["factor"] == pytest.approx((found["staleness"] + 1) ** -0.5)
        assert found["staleness"] <= 6
    assert sum(row["returned"] for row in lab.rows("round", run)) > 0
    assert accuracy(lab, run, 3) > 0.5


def _pushed(lab: Lab, run: str, board: str) -> bool:
    return any(row["board"] == board for row in lab.rows("push", run))
