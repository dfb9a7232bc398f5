"""Real processes over a real broker: killed, restarted, joined late, two with one id. No sample is lost."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetBoards, GetStatus, SetWeights
from tests.scenarios.lab import Lab, check_account, check_decisions

BUDGET = 600
SCALE = "0.006"
"""Seconds a sample on an emulated Raspberry Pi 4: rounds of some seconds, in which things can be killed."""

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    made = Lab(tmp_path)
    made.start_coordinator()
    for board in ("rpi4", "rpi5", "n100"):
        made.start_board(board, "--emulate", board, "--speed-scale", SCALE)
    yield made
    made.close()


def held(lab: Lab, run: str, board: str, number: int) -> dict[str, object]:
    """The board's row of the round."""
    rows = [row for row in lab.rows("board_round", run) if row["board"] == board and row["round"] == number]
    return rows[0]


def wait_training(lab: Lab, run: str, board: str, number: int) -> None:
    """Until the round is under way and the board trains in it."""
    lab.wait_round(run, number)

    def trains() -> bool:
        boards = lab.ask(GetBoards()).data["boards"]
        return any(row["board"] == board and row["phase"] == "training" for row in boards)

    lab.wait(trains, f"{board} to train in round {number}")


def test_a_board_killed_in_a_round_costs_that_round_its_share_and_nothing_else(lab: Lab) -> None:
    run = lab.begin(budget=BUDGET, rounds=4, policy="equal", min_boards=3)
    wait_training(lab, run, "rpi4", 2)
    lab.kill("rpi4")
    lab.start_board("rpi4", "--emulate", "rpi4", "--speed-scale", SCALE)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 4)
    lost = held(lab, run, "rpi4", 2)
    assert lost["status"] == "abandoned"
    following = [row["pieces"] for row in lab.rows("board_round", run) if row["round"] == 3]
    first = min(piece for pieces in following for piece in pieces)
    assert first[:2] == lost["pieces"][0][:2]  # type: ignore[index]


def test_a_coordinator_killed_in_a_round_goes_on_with_it(lab: Lab) -> None:
    run = lab.begin(budget=BUDGET, rounds=3, policy="equal", min_boards=3)
    wait_training(lab, run, "rpi4", 2)
    lab.kill("coordinator")
    time.sleep(1.0)
    lab.start_coordinator()
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 3)
    rounds = lab.rows("round", run)
    assert [row["round"] for row in rounds] == [1, 2, 3]
    assert all(row["accepted"] == BUDGET for row in rounds)


def test_a_broker_restarted_in_a_round_loses_nobodys_work(lab: Lab) -> None:
    run = lab.begin(budget=BUDGET, rounds=3, policy="equal", min_boards=3)
    wait_training(lab, run, "rpi4", 2)
    lab.broker.kill()
    time.sleep(1.0)
    lab.broker.start()
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 3)
    assert [row["accepted"] for row in lab.rows("round", run)] == [BUDGET] * 3


def test_a_board_that_joins_late_shares_from_the_next_round_on_and_weights_tune_a_running_fleet(
    lab: Lab,
) -> None:
    run = lab.begin(budget=BUDGET, rounds=6, policy="adaptive", min_boards=3)
    lab.wait_round(run, 1)
    lab.start_board("visionfive2", "--emulate", "visionfive2", "--speed-scale", SCALE)
    lab.wait_round(run, 3)
    reply = lab.ask(SetWeights(w_e=0.5))
    assert reply.ok, reply.text
    told, from_round = reply.data["shares"], reply.from_round
    assert from_round is not None
    refused = lab.ask(SetWeights(w_e=7.0))
    assert not refused.ok
    assert "between 0 and 1" in refused.text
    lab.finish(run)
    check_account(lab, run, BUDGET, 6)
    rows = {row["round"]: row for row in lab.rows("round", run)}
    assert rows[from_round]["w_e"] == 0.5
    assert rows[from_round - 1]["w_e"] == 0.0
    assert set(told) <= set(rows[from_round]["shares"])
    assert "visionfive2" in rows[6]["shares"]
    check_decisions(lab, run)


def test_two_boards_with_one_id_are_both_named_and_neither_trains(lab: Lab) -> None:
    lab.start_board("rpi5", "--emulate", "rpi5", "--speed-scale", SCALE, process="rival")

    def named() -> bool:
        boards = {row["board"]: row for row in lab.ask(GetBoards()).data["boards"]}
        return "duplicate id" in str(boards.get("rpi5", {}))

    lab.wait(named, "the duplicate id to show")
    run = lab.begin(budget=BUDGET, rounds=2, policy="equal", min_boards=2)
    lab.finish(run)
    assert [set(row["shares"]) for row in lab.rows("round", run)] == [{"rpi4", "n100"}] * 2
    assert "rpi5" in str(lab.ask(GetStatus()).data) or named()
