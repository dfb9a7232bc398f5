"""Who reads the page's stream hears all that happens; who goes away or never reads is let go."""

import json
import socket

from coordinator.web import hub
from tests.coordinator.telemetry.takers import power
from tests.coordinator.web.paged import Paged


def test_a_reader_hears_rounds_states_boards_and_watts(paged: Paged) -> None:
    paged.run(rounds=300)
    paged.until(lambda: paged.get("/api/state").json["status"]["run"])
    paged.power("b0", 4.5)
    heard = lambda: paged.host.hub.see("power", power("b1", 6.5))  # noqa: E731
    found = paged.events("rows", "state", "boards", "status", "watts", meanwhile=heard)
    assert '"run":"r1"' in found["state"]
    assert json.loads(found["watts"])["b1"]["watts"] == 6.5
    paged.until(lambda: paged.get("/api/state").json["watts"])
    assert paged.get("/api/state").json["watts"]["b0"]["watts"] == 4.5


def test_readers_that_go_away_are_forgotten(paged: Paged) -> None:
    paged.run(rounds=300)
    for _ in range(3):
        paged.events("rows")
    paged.until(lambda: not paged.host.hub.readers)


def test_a_reader_that_never_reads_is_dropped_and_not_waited_for(paged: Paged) -> None:
    with socket.create_connection(("127.0.0.1", paged.port)) as stream:
        stream.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
        stream.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
        paged.until(lambda: paged.host.hub.readers)
        loop = paged.host.hub._loop
        assert loop is not None
        for _ in range(60 * hub.MOST_WAITING):
            loop.call_soon_threadsafe(paged.host.hub.publish, "state", "x" * 1000)
        paged.until(lambda: not paged.host.hub.readers)
        assert paged.host.hub.dropped_readers >= 1
    assert paged.get("/healthz").status == 200


def test_more_pages_than_it_can_serve_are_told_so(paged: Paged) -> None:
    streams = []
    for _ in range(hub.MOST_READERS):
        streams.append(socket.create_connection(("127.0.0.1", paged.port)))
        streams[-1].sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
    paged.until(lambda: len(paged.host.hub.readers) == hub.MOST_READERS)
    assert paged.get("/api/events").status == 503
    for stream in streams:
        stream.close()
