"""Synchronous gradients between real processes: runs, silos, a pair apart, a killed rank; no sample lost.

All tests have the same boards, which are started once: torch is what takes the time. As root each board has a
network of its own, else all are on loopback, and only the test of networks is skipped.
"""

from collections.abc import Iterator
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetStatus
from tests.scenarios.bridge import Bridge, bridges_work, ip
from tests.scenarios.lab import Lab, check_account

BUDGET, BATCH = 600, 60
SCALE = "0.004"
"""Seconds a sample on an emulated Raspberry Pi 4: rounds of a second and more, in which one can be killed."""
SILOS = {"rpi4": "attic", "rpi5": "attic", "n100": "cellar", "orangepi5": "cellar"}
THREE = ["rpi4", "rpi5", "n100"]

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    bridge = Bridge(list(SILOS)) if bridges_work() else None
    made = Lab(tmp_path_factory.mktemp("lab"), bridge=bridge)
    try:
        made.start_coordinator()
        for board in SILOS:
            start(made, board)
        yield made
    finally:
        made.close()
        if bridge is not None:
            bridge.close()


def start(lab: Lab, board: str) -> None:
    """One board has its batches in parts of 5 samples, another finds out what fits into memory."""
    parts = {"rpi4": ["--micro-batch", "5"], "n100": []}.get(board, ["--micro-batch", "1000"])
    lab.start_board(board, "--emulate", board, "--speed-scale", SCALE, "--silo", SILOS[board], *parts)


def begin(lab: Lab, boards: list[str], **changes: Any) -> str:
    plain = {"budget": BUDGET, "batch": BATCH, "regime": "ddp", "policy": "adaptive", "learning_rate": 0.05}
    return lab.begin(**{**plain, "boards": boards, **changes})


def wait_stepping(lab: Lab, run: str, number: int) -> None:
    """Until the ranks of that round, of seconds and more, have been told to go."""
    lab.wait_round(run, number)

    def goes() -> bool:
        seen = lab.ask(GetStatus()).data["run"]
        return bool(seen["round"] == number and seen["groups"]["all"]["standing"] == "training")

    lab.wait(goes, f"steps of round {number}")


def losses(lab: Lab, run: str) -> list[float]:
    return [row["silos"]["all"]["loss"] for row in lab.rows("round", run)]


def accuracy(lab: Lab, run: str, number: int) -> float:
    """Held-out, after that round."""

    def measured() -> list[dict[str, Any]]:
        return [row for row in lab.rows("evaluation", run) if row["round"] == number]

    return float(lab.wait(measured, f"the figures of round {number}")[0]["accuracy"])


def test_two_silos_train_apart_and_their_models_are_merged(lab: Lab) -> None:
    run = begin(lab, list(SILOS), rounds=3, regime="hfl-ddp", optimizer_state="keep", momentum=0.5)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    rows = lab.rows("round", run)
    assert sum(row["accepted"] for row in rows) == BUDGET * 3
    for row in rows:
        accepted = {name: silo["accepted"] for name, silo in row["silos"].items()}
        assert accepted == {"attic": 300, "cellar": 300}
        assert row["shares"]["rpi4"] + row["shares"]["rpi5"] == 300
    boards = lab.rows("board_round", run)
    sums = {(row["round"], row["silo"]): row["checksum"] for row in boards}
    assert all(row["checksum"] == sums[row["round"], row["silo"]] for row in boards)
    assert sums[1, "attic"] != sums[1, "cellar"]
    assert accuracy(lab, run, 3) > 0.5


def test_a_whole_run_learns_and_shares_follow_the_ranks(lab: Lab) -> None:
    run = begin(lab, THREE, rounds=4)
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


@pytest.mark.parametrize("policy", ["ema-batch", "omnilearn"])
def test_ranks_change_their_batches_within_the_first_round(lab: Lab, policy: str) -> None:
    run = begin(lab, THREE, rounds=1, policy=policy, policy_options={"every": 5}, budget=1200)
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 1200, 1)
    first = {r["board"]: r for r in lab.rows("board_round", run)}
    assert {row["samples"] for row in first.values()} == {400}
    trained = {board: row["trained_samples"] for board, row in first.items()}
    assert sum(trained.values()) == 1200
    assert trained["n100"] > 1.5 * trained["rpi4"]


def test_a_coordinator_killed_while_ranks_step_goes_on_with_the_same_attempt(lab: Lab) -> None:
    """The ranks' reports come while it is away."""
    run = begin(lab, THREE, rounds=2, policy="equal", budget=1800)
    wait_stepping(lab, run, 1)
    lab.kill("coordinator")
    lab.start_coordinator()
    row = lab.finish(run)
    assert row["complete"], row["reason"]
    check_account(lab, run, 1800, 2)
    assert [row["silos"]["all"]["attempts"] for row in lab.rows("round", run)] == [1, 1]


def test_boards_in_networks_apart_and_a_pair_that_cannot_reach_each_other(lab: Lab) -> None:
    bridge = lab.bridge
    if bridge is None:
        pytest.skip("needs leave to make network namespaces")
    before = {board: bridge.moved(board)[0] for board in SILOS}
    route = bridge.space("rpi4"), "route", "{}", "unreachable", bridge.address("n100")
    ip("-n", *(word.format("add") for word in route))
    try:
        run = begin(lab, list(SILOS), rounds=2)
        row = lab.finish(run)
    finally:
        ip("-n", *(word.format("del") for word in route))
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 2)
    first = lab.rows("round", run)[0]["silos"]["all"]
    assert len(first["boards"]) == 3
    assert set(first["left_out"]) < {"rpi4", "n100"}
    assert "cannot reach" in first["failures"][0]
    assert any(bridge.address(board) in first["failures"][0] for board in ("n100", "rpi4"))
    assert all(bridge.moved(board)[0] - before[board] > 1e5 for board in first["boards"])


def test_a_rank_killed_in_its_steps_costs_one_attempt_and_no_sample(lab: Lab) -> None:
    run = begin(lab, THREE, rounds=3, policy="equal", budget=1800)
    wait_stepping(lab, run, 2)
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
