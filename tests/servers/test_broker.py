"""Starting a broker of one's own."""

import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from coordinator.broker import Broker, BrokerError, BrokerKind, find_mosquitto, start_broker

ROOT = Path(__file__).parents[2]
PARENT = """
import sys, time
from pathlib import Path
from coordinator.broker import start_broker
broker = start_broker(Path(sys.argv[1]), kind=sys.argv[2])
print(broker.pid, broker.port, flush=True)
time.sleep(60)
"""
kinds = pytest.mark.parametrize("kind", [pytest.param("mosquitto", marks=pytest.mark.server), "amqtt"])


def answers(port: int) -> bool:
    try:
        socket.create_connection(("127.0.0.1", port), timeout=1.0).close()
    except OSError:
        return False
    return True


def eventually(condition: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + 15.0
    while time.monotonic() < deadline:
        if condition():
            return True
        time.sleep(0.02)
    return False


def needs(kind: BrokerKind) -> None:
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")


@kinds
def test_it_listens_on_loopback_alone_and_comes_back_on_its_port(kind: BrokerKind, tmp_path: Path) -> None:
    needs(kind)
    broker = start_broker(tmp_path, kind=kind)
    port = broker.port
    assert answers(port)
    assert kind in str(broker)
    listening = Path("/proc/net/tcp").read_text() + Path("/proc/net/tcp6").read_text()
    hosts = {line.split()[1].split(":")[0] for line in listening.splitlines() if f":{port:04X} " in line[:50]}
    assert "0100007F" in hosts
    assert not any(set(host) == {"0"} for host in hosts)
    broker.stop()
    assert not answers(port)
    broker.start()
    assert broker.port == port
    assert answers(port)
    broker.stop()


@kinds
def test_it_ends_with_the_process_that_started_it(kind: BrokerKind, tmp_path: Path) -> None:
    needs(kind)
    command = [sys.executable, "-c", PARENT, str(tmp_path), kind]
    with subprocess.Popen(command, stdout=subprocess.PIPE, cwd=ROOT, text=True) as parent:
        assert parent.stdout is not None
        _, port = map(int, parent.stdout.readline().split())
        assert answers(port)
        os.kill(parent.pid, signal.SIGKILL)
    assert eventually(lambda: not answers(port))


@kinds
def test_a_port_that_is_taken_is_told(kind: BrokerKind, tmp_path: Path) -> None:
    needs(kind)
    with (
        socket.create_server(("127.0.0.1", 0)) as taken,
        pytest.raises(BrokerError, match="did not start on"),
    ):
        start_broker(tmp_path, taken.getsockname()[1], kind=kind)


@pytest.mark.server
def test_a_bad_configuration_is_told_in_mosquittos_words(tmp_path: Path) -> None:
    needs("mosquitto")
    broker = Broker("mosquitto", tmp_path, 1, "no_such_option 1\n")
    with pytest.raises(BrokerError, match="no_such_option"):
        broker.start()
