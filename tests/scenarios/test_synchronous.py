"""Synchronous gradients between real processes over loopback: runs, a killed rank, silos; no sample lost."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetBoards
from tests.scenarios.bridge import Bridge, bridges_work, ip
from tests.scenarios.lab import Lab, check_account

BUDGET, BATCH = 600, 60
SCALE = "0.006"
"""Seconds a sample on an emulated Raspberry Pi 4: rounds of some seconds, in which things can be killed."""
BOARDS = ("rpi4", "rpi5", "n100")

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    made = Lab(tmp_path)
    made.start_coordinator()
    yield made
    made.close()


def start(lab: Lab, board: str, *options: str) -> None:
    lab.start_board(board, "--emulate", board.split("-", maxsplit=1)[0], "--speed-scale", SCALE, *options)


def begin(lab: Lab, **changes: Any) -> str:
    plain = {"budget": BUDGET, "batch": BATCH, "regime": "ddp", "policy": "adaptive", "learning_rate": 0.05}
    return lab.begin(**{**plain, **changes})


def wait_stepping(lab: Lab, run: str, board: str, number: int) -> None:
    """Until the board makes steps in that round."""
    lab.wait_round(run, number)

    def steps() -> bool:
        rows = {row["board"]: row for row in lab.ask(GetBoards()).data["boards"]}
        row = rows.get(board, {})
        return bool(row.get("samples_done")) and str(row.get("order", "")).split(".")[1] == str(number)

    lab.wait(steps, f"{board} to step in round {number}")


def losses(lab: Lab, run: str) -> list[float]:
    return [row["silos"]["all"]["loss"] for row in lab.rows("round", run)]


def accuracy(lab: Lab, run: str, number: int) -> float:
    """Held-out, after that round."""

    def measured() -> list[dict[str, Any]]:
        return [row for row in lab.rows("evaluation", run) if row["round"] == number]

    return float(lab.wait(measured, f"the figures of round {number}")[0]["accuracy"])


def test_a_whole_run_learns_and_shares_follow_the_ranks(lab: Lab) -> None:
    for board in BOARDS:
        start(lab, board)
    run = begin(lab, rounds=4, min_boards=3)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 4)
    found = losses(lab, run)
    assert found[-1] < 0.5 * found[0]
    boards = lab.rows("board_round", run)
    for number in range(1, 5):
        ranks = [row for row in boards if row["round"] == number]
        assert len({row["checksum"] for row in ranks}) == 1
        assert sum(row["uploaded"] for row in ranks) == 1
        assert all(row["deviation"] == 0.0 and "split-derived" in row["flags"] for row in ranks)
        assert {row["steps"] for row in ranks} == {10}
    shares = lab.rows("round", run)[-1]["shares"]
    assert shares["n100"] > shares["rpi5"] > shares["rpi4"]
    for row in lab.rows("closed", run):
        parts = row["parts"].values()
        assert all(part["joules"] is not None for part in parts)
    assert accuracy(lab, run, 4) > 0.8


def test_a_rank_killed_in_its_steps_costs_one_attempt_and_no_sample(lab: Lab) -> None:
    for board in BOARDS:
        start(lab, board)
    run = begin(lab, rounds=3, min_boards=3, policy="equal", budget=1800)
    wait_stepping(lab, run, "rpi4", 2)
    lab.kill("rpi4")
    start(lab, "rpi4")
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 1800, 3)
    second = lab.rows("round", run)[1]["silos"]["all"]
    assert second["attempts"] == 2
    assert second["boards"] == ["n100", "rpi5"]
    lost = [row for row in lab.rows("closed", run) if row["order"].endswith(".2.n100.1")]
    assert lost[0]["parts"]["lost"]["seconds"] > 0
    assert lost[0]["parts"]["compute"]["seconds"] == 0
    assert lab.rows("round", run)[2]["silos"]["all"]["boards"] == ["n100", "rpi4", "rpi5"]


def test_two_silos_train_apart_and_their_models_are_merged(lab: Lab) -> None:
    silos = {"rpi4": "attic", "rpi5": "attic", "n100": "cellar", "rpi5-2": "cellar"}
    for board, silo in silos.items():
        start(lab, board, "--silo", silo)
    run = begin(lab, rounds=3, min_boards=4, regime="hfl-ddp", optimizer_state="keep", momentum=0.5)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    rows = lab.rows("round", run)
    assert sum(row["accepted"] for row in rows) == BUDGET * 3
    for row in rows:
        assert {name: silo["accepted"] for name, silo in row["silos"].items()} == {
            "attic": 300,
            "cellar": 300,
        }
        assert row["shares"]["rpi4"] + row["shares"]["rpi5"] == 300
    boards = lab.rows("board_round", run)
    sums = {(row["round"], row["silo"]): row["checksum"] for row in boards}
    assert all(row["checksum"] == sums[row["round"], row["silo"]] for row in boards)
    assert sums[1, "attic"] != sums[1, "cellar"]
    assert accuracy(lab, run, 3) > 0.5


@pytest.mark.parametrize("policy", ["ema-batch", "omnilearn"])
def test_ranks_change_their_batches_within_the_first_round(lab: Lab, policy: str) -> None:
    for board in BOARDS:
        start(lab, board)
    run = begin(lab, rounds=2, min_boards=3, policy=policy, policy_options={"every": 5}, budget=1200)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 1200, 2)
    first = {r["board"]: r for r in lab.rows("board_round", run) if r["round"] == 1}
    assert {row["samples"] for row in first.values()} == {400}
    trained = {board: row["trained_samples"] for board, row in first.items()}
    assert sum(trained.values()) == 1200
    assert trained["n100"] > 1.5 * trained["rpi4"]


def test_boards_in_networks_apart_and_a_pair_that_cannot_reach_each_other(tmp_path: Path) -> None:
    if find_mosquitto() is None or not bridges_work():
        pytest.skip("needs mosquitto, and leave to make network namespaces")
    bridge = Bridge([*BOARDS, "orangepi5"])
    lab = Lab(tmp_path, bridge=bridge)
    try:
        ip("-n", bridge.space("rpi4"), "route", "add", "unreachable", bridge.address("n100"))
        lab.start_coordinator()
        for board in bridge.boards:
            start(lab, board)
        run = begin(lab, rounds=2, min_boards=4)
        row = lab.finish(run)
        assert row["complete"], row["reason"]
        check_account(lab, run, BUDGET, 2)
        first = lab.rows("round", run)[0]["silos"]["all"]
        assert len(first["boards"]) == 3
        assert set(first["left_out"]) < {"rpi4", "n100"}
        assert "cannot reach" in first["failures"][0]
        assert (
            bridge.address("n100") in first["failures"][0] or bridge.address("rpi4") in first["failures"][0]
        )
        assert all(bridge.moved(board)[0] > 1e5 for board in first["boards"])
    finally:
        lab.close()
        bridge.close()
