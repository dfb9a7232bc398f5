"""Words to the service manager, over a real socket."""

import os
import socket
from collections.abc import Iterator
from pathlib import Path

import pytest

from edged.notify import Notify


@pytest.fixture
def manager(tmp_path: Path) -> Iterator[socket.socket]:
    made = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
    made.bind(str(tmp_path / "notify"))
    made.setblocking(False)
    yield made
    made.close()


def heard(manager: socket.socket) -> list[str]:
    found = []
    while True:
        try:
            found.append(manager.recv(4096).decode())
        except BlockingIOError:
            return found


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


def environment(manager: socket.socket, **more: str) -> dict[str, str]:
    return {"NOTIFY_SOCKET": manager.getsockname(), **more}


def test_ready_status_and_stopping_are_said(manager: socket.socket) -> None:
    notify = Notify(environment(manager))
    notify.ready()
    notify.status("waiting for\nbroker")
    notify.status("waiting for broker")
    notify.stopping()
    assert heard(manager) == ["READY=1", "STATUS=waiting for broker", "STOPPING=1"]


def test_a_status_that_is_work_to_find_is_looked_for_once_a_second(manager: socket.socket) -> None:
    clock, looked = Clock(), []
    notify = Notify(environment(manager), clock)

    def describe() -> str:
        looked.append(clock.now)
        return f"at {clock.now:g}"

    for _ in range(8):
        notify.status_of(describe)
        clock.now += 0.25
    assert looked == [100.0, 101.0]
    assert heard(manager) == ["STATUS=at 100", "STATUS=at 101"]


def test_without_a_manager_nobody_looks_for_a_status() -> None:
    Notify({}, Clock()).status_of(lambda: pytest.fail("looked for"))


def test_the_watchdog_is_fed_by_turns_and_at_most_once_a_second(manager: socket.socket) -> None:
    clock = Clock()
    notify = Notify(environment(manager, WATCHDOG_USEC="3000000", WATCHDOG_PID=str(os.getpid())), clock)
    for _ in range(100):
        notify.alive()
        clock.now += 0.1
    fed = heard(manager)
    assert set(fed) == {"WATCHDOG=1"}
    # Half of 3 s is the interval that systemd asks for; ours is shorter and never under a second.
    assert 10 / 1.5 <= len(fed) <= 10


@pytest.mark.parametrize(
    "watchdog", [{}, {"WATCHDOG_USEC": "0"}, {"WATCHDOG_USEC": "3000000", "WATCHDOG_PID": "1"}]
)
def test_a_watchdog_of_nobody_or_of_another_process_is_not_fed(
    manager: socket.socket, watchdog: dict[str, str]
) -> None:
    notify = Notify(environment(manager, **watchdog))
    notify.alive()
    assert heard(manager) == []


def test_outside_of_a_service_nothing_is_sent_and_a_lost_manager_is_no_error(tmp_path: Path) -> None:
    Notify({}).ready()
    Notify({"NOTIFY_SOCKET": str(tmp_path / "gone")}).ready()


def test_an_abstract_socket_is_understood() -> None:
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind("\0edged-test-notify-" + str(os.getpid()))
        manager.setblocking(False)
        Notify({"NOTIFY_SOCKET": "@edged-test-notify-" + str(os.getpid())}).ready()
        assert heard(manager) == ["READY=1"]
