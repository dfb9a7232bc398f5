"""What the service manager shows of a board: the round, the share and the watts, in one line."""

import socket
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from edged.agent import watts_in_words
from edged.notify import Notify
from probes.meter import Live
from tests.edged.desk import Desk


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(tmp_path / "notify"))
    made.setblocking(False)
    yield made
    made.close()


def status(manager: socket.socket, desk: Desk, says: str) -> str:
    """The first status line with these words."""
    until = time.monotonic() + 20
    while time.monotonic() < until:
        desk.turn()
        try:
            word = manager.recv(4096).decode()
        except BlockingIOError:
            time.sleep(0.05)
            continue
        if word.startswith("STATUS=") and says in word:
            return word.removeprefix("STATUS=")
    raise AssertionError(f"no status line with {says!r}")


def test_the_status_line_tells_round_share_and_watts(tmp_path: Path, manager: socket.socket) -> None:
    desk = Desk(tmp_path, Notify({"NOTIFY_SOCKET": manager.getsockname()}))
    desk.agent.begin()
    try:
        desk.stocked()
        assert status(manager, desk, " W ") == "idle; 2.0 W emulated (emulated/test)"
        order = desk.ordered(3)
        desk.coordinator.until_phase("waiting", order.order)
        found = status(manager, desk, "waiting, round 3")
        assert found.startswith(f"waiting, round 3 of {order.run}, {order.samples} samples")
        assert found.endswith("; 2.0 W emulated (emulated/test)")
    finally:
        desk.agent.end("the test is over")
        desk.meter.close()


def test_watts_that_nobody_measures_are_told_with_the_reason() -> None:
    live = Live(0.0, (), None, None, None, None, None, "nothing measures here", 0.0, 1.0)
    assert watts_in_words(live) == "no watts: nothing measures here"
