"""A coordinator begins only where no other serves the fleet, and knows the term of the one before."""

import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from coordinator.client import NoBrokerError
from coordinator.config import Broker, Config, StoreOptions
from coordinator.service import LiveCoordinatorError, describe, follow_run, opened, predecessor
from coordinator.store import StoreError
from coordinator.tools import Tools
from edged.controls import RunSettings
from edged.link import Announcement, Link, LinkConfig
from edged.memory_broker import MemoryBroker
from edged.memory_link import MemoryLink
from edged.messages import FleetState, encode
from edged.topics import Topics
from tests.coordinator.stand_ins import Crew, Examiner


@pytest.fixture
def broker() -> MemoryBroker:
    return MemoryBroker()


def config(folder: Path) -> Config:
    return Config(broker=Broker("memory", 1883), store=StoreOptions(str(folder)))


def client_of(broker: MemoryBroker) -> Callable[[LinkConfig], Link]:
    return lambda link_config: MemoryLink(broker, link_config)


def tools(broker: MemoryBroker) -> Tools:
    def make(link_config: LinkConfig, announcement: Announcement) -> Link:
        return MemoryLink(broker, link_config, announcement)

    return Tools(make, crew=Crew, examiner=Examiner)


def leave_word(broker: MemoryBroker, state: FleetState) -> None:
    broker.publish(Topics("main").of("fleet"), encode(state), True)


def test_in_a_new_fleet_nobody_was_before(broker: MemoryBroker, tmp_path: Path) -> None:
    assert predecessor(config(tmp_path), client_of(broker)) is None


def test_one_that_said_goodbye_is_not_waited_for(broker: MemoryBroker, tmp_path: Path) -> None:
    leave_word(broker, FleetState("c1", 7, "closed", "lab"))
    with opened(config(tmp_path), tools=tools(broker), make_link=client_of(broker)) as server:
        assert server.term == 8


def test_one_that_died_with_its_broker_is_found_out(broker: MemoryBroker, tmp_path: Path) -> None:
    leave_word(broker, FleetState("c1", 7, "up", "lab"))
    found = predecessor(config(tmp_path), client_of(broker))
    assert found is not None
    assert found.term == 7


def test_a_live_coordinator_is_named_with_its_host(broker: MemoryBroker, tmp_path: Path) -> None:
    with opened(config(tmp_path / "one"), tools=tools(broker), make_link=client_of(broker)) as live:
        loop = threading.Thread(target=live.run)
        loop.start()
        try:
            other = opened(config(tmp_path / "two"), tools=tools(broker), make_link=client_of(broker))
            with pytest.raises(LiveCoordinatorError, match=live.host), other:
                pass
        finally:
            live.stop()
            loop.join()
        assert live.deposed == ""


def test_one_store_is_for_one_coordinator(broker: MemoryBroker, tmp_path: Path) -> None:
    with opened(config(tmp_path), tools=tools(broker), make_link=client_of(broker)):
        again = opened(config(tmp_path), tools=tools(broker), make_link=client_of(broker))
        with pytest.raises(StoreError, match="in use"), again:
            pass
    with opened(config(tmp_path), tools=tools(broker), make_link=client_of(broker)) as server:
        assert server.term == 2


def test_an_absent_broker_is_an_error_or_is_waited_for(tmp_path: Path) -> None:
    nowhere = structs.replace(config(tmp_path), broker=Broker("127.0.0.1", 1))
    with pytest.raises(NoBrokerError, match=r"127\.0\.0\.1:1"), opened(nowhere):
        pass
    tried: list[str] = []

    def patient(error: NoBrokerError) -> bool:
        tried.append(str(error))
        return len(tried) < 3

    with pytest.raises(NoBrokerError), opened(nowhere, patient=patient):
        pass
    assert len(tried) == 3


def test_a_run_in_the_foreground_ends_with_its_run(broker: MemoryBroker, tmp_path: Path) -> None:
    rows: list[str] = []
    settings = RunSettings("digits", "digits", 100, 2, options={"broken": True})
    with opened(
        config(tmp_path),
        tools=tools(broker),
        make_link=client_of(broker),
        follow=lambda what, row: rows.append(what),
    ) as server:
        name = follow_run(server, settings, "me", lambda run: None)
        assert name.startswith("digits-")
        assert "could not begin" in describe(server)
    assert rows == ["failed"]
