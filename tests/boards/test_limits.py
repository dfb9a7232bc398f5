"""A board of 1 GB with one slow core, enforced by the kernel: it trains, and outlives a child it cannot feed.

No instruction set is emulated here, and no pace: the processes are this machine's own.
"""

import os
import signal
import socket
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetBoards
from tests.boards.limits import Limits, missing
from tests.scenarios.lab import ENVIRONMENT, Lab, check_account

pytestmark = [pytest.mark.boards, pytest.mark.slow, pytest.mark.server]

MEGABYTE = 1 << 20
OF_A_GIGABYTE = 768 * MEGABYTE
"""MemoryMax=75% of the unit, on a board of 1 GB."""
TOO_LITTLE = 150 * MEGABYTE
"""Enough for the agent; 220 MB are enough for a training process beside it, as it loads no compiler."""
SLOW = 0.25
WATCHDOG_SECONDS = 30.0
PATIENCE_SECONDS = 600.0


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    if reason := missing():
        pytest.skip(reason)
    made = Lab(tmp_path)
    made.start_coordinator()
    yield made
    made.close()


class Manager:
    """Hears what the daemon says to a service manager, and how far apart its signs of life are."""

    def __init__(self, place: Path) -> None:
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(place))
        self._socket.setblocking(False)
        self.environment = {
            **ENVIRONMENT,
            "NOTIFY_SOCKET": str(place),
            "WATCHDOG_USEC": str(int(WATCHDOG_SECONDS * 1e6)),
        }
        self.alive: list[float] = []

    def hear(self) -> None:
        while True:
            try:
                said = self._socket.recv(4096).decode()
            except BlockingIOError:
                return
            if said == "WATCHDOG=1":
                self.alive.append(time.monotonic())

    def close(self) -> None:
        self._socket.close()

    def longest_silence(self) -> float:
        return max(later - earlier for earlier, later in zip(self.alive, self.alive[1:], strict=False))


def board(lab: Lab) -> dict[str, Any]:
    rows = lab.ask(GetBoards()).data["boards"]
    return next((row for row in rows if row["board"] == "small" and row["pools"]), {})


def start(lab: Lab, limits: Limits, environment: dict[str, str]) -> int:
    """Its process id, once it can be ordered to train."""
    words = f"--board small --fleet lab --broker 127.0.0.1:{lab.broker.port} --pool digits=builtin"
    words += f" --runtime {lab.folder}/runtime"
    lab.start("small", "edged", "run", *words.split(), prefix=limits.prefix, environment=environment)
    lab.wait(lambda: board(lab), "the board", PATIENCE_SECONDS)
    return lab.processes["small"].pid


def ended(lab: Lab) -> None:
    os.killpg(lab.processes["small"].pid, signal.SIGKILL)
    lab.processes["small"].wait()


def test_a_board_of_one_gigabyte_and_a_quarter_of_a_core_trains(lab: Lab) -> None:
    """The watchdog is fed all the while, also while torch is imported."""
    limits = Limits("edged-test-slow", OF_A_GIGABYTE, SLOW)
    manager = Manager(lab.folder / "notify")
    try:
        start(lab, limits, manager.environment)
        run = lab.begin(budget=300, rounds=2, policy="equal", learning_rate=0.05)

        def over() -> Any:
            manager.hear()
            return lab.ended(run)

        row = lab.wait(over, "the end", PATIENCE_SECONDS)
        assert row["complete"], row["reason"]
        check_account(lab, run, 300, 2)
        assert manager.longest_silence() < WATCHDOG_SECONDS
        assert limits.kills() == 0
        assert limits.peak_bytes() < OF_A_GIGABYTE / 1.2
    finally:
        ended(lab)
        limits.close()
        manager.close()


def test_the_kernel_kills_the_child_and_not_the_agent(lab: Lab) -> None:
    """By the child's own score; the board says what happened and stays."""
    limits = Limits("edged-test-small", TOO_LITTLE, 1.0)
    try:
        agent = start(lab, limits, dict(ENVIRONMENT))
        run = lab.begin(budget=100, rounds=1, policy="equal", learning_rate=0.05)

        def abandoned() -> list[Any]:
            rows = lab.rows("board_round", run)
            return [row for row in rows if row["status"] == "abandoned"]

        found = lab.wait(abandoned, "the child's end", PATIENCE_SECONDS)
        assert "SIGKILL: killed, out of memory?" in found[0]["reason"]
        assert limits.kills() > 0
        assert lab.processes["small"].poll() is None
        assert board(lab)["link"] == "up"
        assert Path(f"/proc/{agent}/status").exists()
    finally:
        ended(lab)
        limits.close()
