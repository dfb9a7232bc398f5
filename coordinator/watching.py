"""Puts telemetry and the live page beside a coordinator, as its settings say, and ends them with it."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from coordinator import silos
from coordinator.history import History
from coordinator.telemetry.chronicle import Board
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TelemetryError
from coordinator.telemetry.sink import Sink
from coordinator.web.host import Host
from coordinator.web.settings import WebError

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)


@contextmanager
def watched(server: "Server", web: bool) -> Iterator[None]:
    """`web`: with the page, where one is configured. What cannot begin is logged with the way out; the
    coordinator goes on without it."""
    with ExitStack() as ends:
        if server.config.telemetry.url:
            try:
                ends.callback(telemetry(server).close)
            except (TelemetryError, ImportError, OSError) as error:
                LOG.error("no telemetry: %s", _words(error))
        if web:
            try:
                page = live_page(server)
                if page is not None:
                    ends.callback(page.close)
            except (WebError, ImportError, OSError) as error:
                LOG.warning("no live page: %s", _words(error))
        yield


def telemetry(server: "Server") -> Sink:
    """The sink, at work. Raises TelemetryError, ImportError, OSError."""
    config = server.config

    def board(name: str) -> Board:
        seen, rounds = server.fleet.boards.get(name), server.rounds
        silo = silos.name_of(rounds.state.settings, server.fleet, name) if rounds else silos.ALL
        if silo == silos.ALL:
            silo = seen.birth.silo if seen else ""
        return silo, seen.birth.channels if seen else ()

    options = config.telemetry
    influx = InfluxServer(options)
    sink = Sink(
        config.fleet,
        server.store.folder,
        options,
        influx,
        board,
        clock=server.tools.clock,
        wall=server.tools.wall,
    )
    if server.rounds is not None and server.rounds.state.phase != "done":
        run = server.rounds.state.run
        settings = msgspec.to_builtins(server.rounds.state.settings)
        sink.chronicle.begin(run, settings, server.store.history.rows("round", run))
    server.onlookers.append(sink.see)
    server.lookout.sink = sink
    sink.start()
    return sink


def live_page(server: "Server") -> Host | None:
    """The page, at work; None where it is off. Raises WebError, ImportError, OSError."""
    options = server.config.web
    if options.place() is None:
        return None
    folder = server.store.folder
    host = Host(options, server.link.events.put, lambda: History.open(folder), folder)
    try:
        host.start()
    except BaseException:
        host.close()
        raise
    server.onlookers.append(host.hub.see)
    return host


def _words(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'edged[coordinator]' brings it"
    return str(error)
