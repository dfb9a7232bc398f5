"""Puts telemetry and the live page beside a coordinator, as its settings say, and ends them with it."""

import logging
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

import msgspec

from coordinator.telemetry.chronicle import Board
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TelemetryError
from coordinator.telemetry.sink import Sink

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
        yield


def telemetry(server: "Server") -> Sink:
    """The sink, at work. Raises TelemetryError, ImportError, OSError."""
    config = server.config

    def board(name: str) -> Board:
        seen = server.fleet.boards.get(name)
        return (seen.birth.silo, seen.birth.channels) if seen else ("", ())

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


def _words(error: Exception) -> str:
    if isinstance(error, ModuleNotFoundError):
        return f"{error.name} is not installed; pip install 'edged[coordinator]' brings it"
    return str(error)
