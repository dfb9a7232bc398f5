"""Servers for the tests: each in a directory of its own, on a free loopback port, ended with the tests."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator.broker import Broker, BrokerKind, find_mosquitto, free_port
from tests.servers.browser import Browser, find_chromium
from tests.servers.influx import Influx, find_influxd

StartBroker = Callable[..., Broker]
StartInflux = Callable[..., Influx]


@pytest.fixture
def start_mosquitto(tmp_path: Path) -> Iterator[StartBroker]:
    """Start a mosquitto with extra lines of configuration; several in one test if need be."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    started: list[Broker] = []

    def start(extra: str = "", port: int = 0) -> Broker:
        directory = tmp_path / f"mosquitto{len(started)}"
        directory.mkdir()
        broker = Broker("mosquitto", directory, port or free_port(), extra)
        broker.start()
        started.append(broker)
        return broker

    yield start
    for broker in started:
        broker.stop()


@pytest.fixture
def mosquitto(start_mosquitto: StartBroker) -> Broker:
    """A private mosquitto that lets anybody in."""
    return start_mosquitto()


@pytest.fixture
def start_influx(tmp_path: Path) -> Iterator[StartInflux]:
    """Start an InfluxDB 1.x; several in one test if need be."""
    if find_influxd() is None:
        pytest.skip("influxd is not installed")
    started: list[Influx] = []

    def start(auth: bool = False) -> Influx:
        folder = tmp_path / f"influx{len(started)}"
        folder.mkdir()
        started.append(Influx(folder, auth))
        started[-1].start()
        return started[-1]

    yield start
    for influx in started:
        influx.kill()


@pytest.fixture
def browser(tmp_path: Path) -> Iterator[Browser]:
    """Chromium with one empty tab."""
    if find_chromium() is None:
        pytest.skip("chromium is not installed")
    folder = tmp_path / "browser"
    folder.mkdir()
    made = Browser(folder)
    yield made
    made.close()


@pytest.fixture(scope="session")
def shared_brokers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[BrokerKind], Broker]]:
    """One broker of a kind for all tests that leave it running, by kind."""
    brokers: dict[str, Broker] = {}

    def get(kind: BrokerKind) -> Broker:
        if kind == "mosquitto" and find_mosquitto() is None:
            pytest.skip("mosquitto is not installed")
        if kind not in brokers:
            brokers[kind] = Broker(kind, tmp_path_factory.mktemp(kind), free_port())
        brokers[kind].start()
        return brokers[kind]

    yield get
    for broker in brokers.values():
        broker.stop()
