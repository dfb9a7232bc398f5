"""The board's daemon as its owner runs it: `edged run` over a real mosquitto, with real training."""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import Broker, find_mosquitto, free_port
from edged import tasks, weights
from edged.link import LinkConfig
from edged.messages import Piece, Train
from edged.paho_link import PahoLink
from edged.schedule import subseed
from tests.edged.stand_in import StandIn, train_order

pytestmark = [pytest.mark.slow, pytest.mark.server]

MEGABYTE = 1 << 20
LARGE_TASK = '''
"""The digits with a model of 40 MB."""
from edged.tasks.digits import Options, DEFAULTS, inspect, load, batch, loss_sum, evaluate
from edged.tasks import digits
NAME = "large"
SUMMARY = "digits, with ten million weights that take no part"

def model(options, seed):
    import torch
    net = digits.model(options, seed)
    net.register_buffer("ballast", torch.arange(10_000_000, dtype=torch.float32))
    return net
'''


class Daemon:
    """One `edged run` and what it logs."""

    def __init__(self, folder: Path, port: int, fleet: str, *flags: str, board: str = "pi4") -> None:
        self.log_path = folder / f"{fleet}-{board}-{time.monotonic_ns()}.log"
        command = [sys.executable, "-m", "edged", "run", "--board", board, "--fleet", fleet]
        command += ["--broker", f"127.0.0.1:{port}", "--pool", "digits=builtin", "--threads", "1"]
        with self.log_path.open("wb") as log:
            self.process = subprocess.Popen(
                [*command, "--runtime", str(folder / "runtime"), "--tasks", str(folder / "tasks"), *flags],
                stderr=log,
                env={**os.environ, "OMP_NUM_THREADS": "1"},
            )

    @property
    def log(self) -> str:
        return self.log_path.read_text()

    def status(self, key: str) -> int:
        """A figure of the process in bytes: VmRSS now, VmHWM at most so far."""
        text = Path(f"/proc/{self.process.pid}/status").read_text()
        found = re.search(rf"^{key}:\s+(\d+) kB", text, re.MULTILINE)
        assert found
        return int(found[1]) * 1024

    def children(self) -> list[int]:
        text = Path(f"/proc/{self.process.pid}/task/{self.process.pid}/children").read_text()
        return [int(word) for word in text.split()]

    def end(self, signal_number: int = signal.SIGTERM) -> tuple[int, float]:
        """Exit code and seconds that it took."""
        began = time.monotonic()
        self.process.send_signal(signal_number)
        return self.process.wait(30), time.monotonic() - began


Start = Callable[..., Daemon]


@pytest.fixture(scope="module")
def mosquitto(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Broker]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    broker = Broker("mosquitto", tmp_path_factory.mktemp("mosquitto"), free_port())
    broker.start()
    yield broker
    broker.stop()


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    (tmp_path / "tasks").mkdir()
    started: list[Daemon] = []

    def run(port: int, fleet: str, *flags: str) -> Daemon:
        started.append(Daemon(tmp_path, port, fleet, *flags))
        return started[-1]

    yield run
    for daemon in started:
        if daemon.process.poll() is None:
            daemon.process.kill()
            daemon.process.wait()


@pytest.fixture
def coordinate(tmp_path: Path) -> Iterator[Callable[[int, str], StandIn]]:
    links: list[PahoLink] = []

    def make(port: int, fleet: str) -> StandIn:
        links.append(PahoLink(LinkConfig("127.0.0.1", port, f"edged-{fleet}-coordinator")))
        return StandIn(links[-1], fleet)

    yield make
    for link in links:
        link.close()


class Lesson:
    """A model of a task on disk, and orders from it."""

    def __init__(self, folder: Path, name: str = "digits") -> None:
        self.path = folder / f"{name}.safetensors"
        folders = [folder / "tasks"]
        task = tasks.find(name, folders)
        weights.save(self.path, task.model(tasks.options_of(task, {}), subseed(1, "init")).state_dict())
        self.known: dict[str, Any] = {
            "task": name,
            "task_hash": tasks.task_hash(name, folders),
            "fingerprint": task.inspect(tasks.BUILTIN).fingerprint,
        }

    def order(self, number: int = 1, samples: int = 40) -> Train:
        cut = (Piece(0, 0, samples),)
        return train_order(self.path, number, pieces=cut, samples=samples, **self.known)


def progress(coordinator: StandIn, order: Train) -> bool:
    """Whether samples of the order are trained already."""
    state = coordinator.states[-1]
    return state.order == order.order and state.samples_done > 0


def test_a_day_of_a_board(
    mosquitto: Broker, start: Start, coordinate: Callable[..., StandIn], tmp_path: Path
) -> None:
    """Trains two orders in one child, survives the child's kill -9, and ends cleanly; small all the while."""
    coordinator = coordinate(mosquitto.port, "day")
    daemon = start(mosquitto.port, "day", "--emulate", "rpi4", "--speed-scale", "0.002")
    coordinator.until_ready()
    birth = coordinator.births[-1]
    assert birth.emulates == "rpi4"
    assert birth.address == "127.0.0.1"
    assert birth.pools["digits"].samples == 1437
    assert [channel.basis for channel in birth.channels] == ["emulated"]

    lesson = Lesson(tmp_path)
    first = lesson.order(1)
    coordinator.send(first)
    coordinator.offer(lesson.path, first.manifest, first.model)
    report = coordinator.until_report("trained", first.order)
    assert report.samples == 40
    assert report.parts.compute.seconds >= 40 * 0.002
    assert report.energy.basis == "emulated"
    assert report.energy.joules == pytest.approx(5.0 * report.parts.compute.seconds, rel=1e-3)
    coordinator.until_phase("waiting", first.order)
    (tmp_path / "update").write_bytes(coordinator.update(first.order))
    weights.check(tmp_path / "update", weights.schema(lesson.path))
    (child,) = daemon.children()

    second = lesson.order(2, samples=1400)
    coordinator.send(second)
    coordinator.until(lambda: progress(coordinator, second), "progress")
    assert coordinator.states[-1].model == "r.0"
    assert daemon.children() == [child]
    os.kill(child, signal.SIGKILL)
    coordinator.until_phase("waiting", second.order)
    assert coordinator.states[-1].abandoned == second.order
    assert "SIGKILL: killed, out of memory?" in coordinator.states[-1].reason

    third = lesson.order(3)
    coordinator.send(third)
    lost = coordinator.until_report("closed", second.order)
    assert lost.parts.lost.seconds > 0
    assert lost.parts.compute.seconds == 0
    coordinator.until_report("trained", third.order)
    coordinator.until_phase("waiting", third.order)
    assert daemon.status("VmHWM") <= 40 * MEGABYTE
    mapped = Path(f"/proc/{daemon.process.pid}/maps").read_text()
    assert not [name for name in ("torch", "numpy") if name in mapped]

    code, seconds = daemon.end()
    assert (code, seconds < 5) == (0, True)
    coordinator.until(lambda: coordinator.births[-1].link == "closed", "farewell")
    assert coordinator.until_report("closed", third.order).parts.wait.seconds > 0
    assert not any((tmp_path / "runtime" / "day-pi4" / "models").iterdir())


def test_a_forty_megabyte_model_never_enters_the_agent(
    mosquitto: Broker, start: Start, coordinate: Callable[..., StandIn], tmp_path: Path
) -> None:
    coordinator = coordinate(mosquitto.port, "large")
    daemon = start(mosquitto.port, "large")
    (tmp_path / "tasks" / "large.py").write_text(LARGE_TASK)
    daemon.end()
    daemon = start(mosquitto.port, "large")
    coordinator.until(lambda: coordinator.births and "large" in coordinator.births[-1].tasks, "the task")
    lesson = Lesson(tmp_path, "large")
    order = lesson.order(1)
    assert order.manifest.length_bytes > 40_000_000
    coordinator.send(order)
    coordinator.until_phase("fetching", order.order)
    coordinator.offer_paced(lesson.path, order.manifest, order.model)
    report = coordinator.until_report("trained", order.order)
    assert report.manifest is not None
    coordinator.until_phase("waiting", order.order)
    assert len(coordinator.update(order.order)) == report.manifest.length_bytes
    assert daemon.status("VmHWM") <= 40 * MEGABYTE
    assert daemon.end()[0] == 0


def test_a_broker_that_restarts_while_the_board_trains_costs_nothing(
    start: Start, coordinate: Callable[..., StandIn], tmp_path: Path, mosquitto: Broker
) -> None:
    (tmp_path / "own").mkdir()
    broker = Broker("mosquitto", tmp_path / "own", free_port())
    broker.start()
    try:
        coordinator = coordinate(broker.port, "restart")
        start(broker.port, "restart", "--emulate", "rpi4", "--speed-scale", "0.002")
        coordinator.until_ready()
        lesson = Lesson(tmp_path)
        order = lesson.order(1, samples=1400)
        coordinator.send(order)
        coordinator.offer(lesson.path, order.manifest, order.model)
        coordinator.until(lambda: progress(coordinator, order), "progress")
        # Sessions are clean: what was said while the other side was away is said again when it asks.
        coordinator.repeats = order
        broker.stop()
        broker.start()
        report = coordinator.until_report("trained", order.order)
        assert report.samples == 1400
        coordinator.until_phase("waiting", order.order)
        assert coordinator.states[-1].conn >= 2
        assert coordinator.states[-1].abandoned is None
    finally:
        broker.stop()


def test_two_boards_with_one_id_name_each_other_and_take_no_order(
    mosquitto: Broker, start: Start, coordinate: Callable[..., StandIn], tmp_path: Path
) -> None:
    coordinator = coordinate(mosquitto.port, "twins")
    start(mosquitto.port, "twins")
    coordinator.until_ready()
    start(mosquitto.port, "twins")
    coordinator.until(
        lambda: len({one.boot for one in coordinator.births if one.link == "duplicate"}) == 2, "both say so"
    )
    told = [one for one in coordinator.births if one.link == "duplicate"]
    assert all("at 127.0.0.1" in one.rival for one in told)
    order = Lesson(tmp_path).order(1)
    seen = len(coordinator.states)

    def refused() -> bool:
        coordinator.send(order)
        time.sleep(0.1)
        return any(
            "no orders until the other board is gone" in one.reason for one in coordinator.states[seen:]
        )

    coordinator.until(refused, "a refusal")
    assert all(one.phase == "idle" for one in coordinator.states[seen:])


def test_a_broker_that_is_not_there_is_named_and_the_daemon_ends_in_time(start: Start) -> None:
    port = free_port()
    daemon = start(port, "alone")
    end = time.monotonic() + 30
    while f"127.0.0.1:{port}" not in daemon.log or "TCP" not in daemon.log:
        assert time.monotonic() < end, daemon.log
        time.sleep(0.05)
    code, seconds = daemon.end(signal.SIGINT)
    assert (code, seconds < 5) == (0, True)


def test_what_cannot_be_emulated_ends_with_code_78_and_the_boards_there_are(start: Start) -> None:
    daemon = start(free_port(), "odd", "--emulate", "abacus")
    assert daemon.process.wait(30) == 78
    assert "no board named 'abacus'" in daemon.log
    assert "rpi4" in daemon.log
