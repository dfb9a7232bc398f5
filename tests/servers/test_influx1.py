"""A real InfluxDB 1.6: set up, checked, written to while it dies, with everything that it refuses."""

import time
from collections.abc import Callable
from pathlib import Path

import pytest
from msgspec import structs

from coordinator.telemetry.chronicle import Chronicle
from coordinator.telemetry.lines import Writer
from coordinator.telemetry.schema import point
from coordinator.telemetry.sender import Sender
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TelemetryError
from coordinator.telemetry.setup import check, points_of, setup
from coordinator.telemetry.sink import Sink
from coordinator.telemetry.spool import Spool
from tests.coordinator.telemetry.takers import CHANNELS, SETTINGS, board_row, power, round_row
from tests.servers.influx import Influx, count

pytestmark = pytest.mark.server

StartInflux = Callable[..., Influx]


@pytest.fixture
def influx(start_influx: StartInflux) -> Influx:
    found = start_influx()
    for _ in setup(found.server()):
        pass
    return found


def line(measurement: str, tags: dict[str, str], values: dict[str, object], stamp: int = 0) -> str:
    made = point(measurement, tags, values)  # type: ignore[arg-type]
    assert made is not None
    return Writer().line(structs.replace(made, nanoseconds=stamp or time.time_ns()))


def until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.05)


def test_setup_makes_what_is_missing_and_may_be_said_again(start_influx: StartInflux) -> None:
    server = start_influx().server()
    with pytest.raises(TelemetryError, match=r"database not found.*telemetry setup"):
        list(check(server, "lab"))
    list(setup(server))
    list(setup(server))
    policies = server.query('SHOW RETENTION POLICIES ON "edged"')[0]["values"]
    assert {row[0]: (row[1], row[-1]) for row in policies}["edged"] == ("2160h0m0s", True)
    assert "InfluxQL" in list(check(server, "lab"))[-1]


def test_a_retention_policy_that_is_missing_is_an_error_of_settings_and_no_outage(influx: Influx) -> None:
    verdict = influx.server(retention_policy="week").write([line("event", {}, {"count": 1})])
    assert verdict.kind == "settings"
    assert "week" in verdict.text
    list(setup(influx.server(retention_policy="week", retention_days=7)))
    assert influx.server(retention_policy="week").write([line("event", {}, {"count": 1})]).kind == "stored"


def test_users_and_passwords(start_influx: StartInflux, tmp_path: Path) -> None:
    influx = start_influx(auth=True)
    password = tmp_path / "password"
    password.write_text("right one\n")
    influx.server().query("CREATE USER admin WITH PASSWORD 'right one' WITH ALL PRIVILEGES")
    named = {"username": "admin", "password_file": str(password)}
    list(setup(influx.server(**named)))
    assert "InfluxQL" in list(check(influx.server(**named), "lab"))[-1]
    verdict = influx.server(username="admin").write([line("event", {}, {"count": 1})])
    assert verdict.kind == "settings"
    assert "admin" in verdict.text
    with pytest.raises(TelemetryError, match="authorization failed"):
        influx.server(username="admin").query("SHOW DATABASES")


def test_whatever_stands_in_names_and_texts_comes_back_as_it_was_written(influx: Influx) -> None:
    server = influx.server()
    texts = [
        "plain",
        'with "quotes" and, commas=signs',
        "emoji ⚡ and ü",
        "back\\slash\\",
        "'; DROP DATABASE edged",
    ]
    for number, text in enumerate(texts):
        tags = {"fleet": "lab", "board": f"{text} {number}"}
        assert server.write([line("event", tags, {"text": text, "count": 1})]).kind == "stored"
    found = server.query('SELECT "text" FROM "event" GROUP BY "board"')
    assert {series["values"][0][1] for series in found} == set(texts)
    names = {f"{text} {number}".replace("\\", "/") for number, text in enumerate(texts)}
    assert {series["tags"]["board"] for series in found} == names


def test_a_field_that_is_an_integer_there_loses_its_lines_and_no_other(
    influx: Influx, tmp_path: Path
) -> None:
    server = influx.server()
    assert server.write([f"round,fleet=lab joules=1i {time.time_ns()}"]).kind == "stored"
    spool = Spool(tmp_path / "spool", 1 << 20)
    lines = [line("round", {"fleet": "lab", "run": f"r{n}"}, {"ordered": n}) for n in range(20)]
    lines.insert(7, line("round", {"fleet": "lab", "run": "wrong"}, {"joules": 2.5, "ordered": 99}))
    spool.append("rounds", lines)
    sender = Sender(spool, server)
    sender.send_all()
    assert count(server, "round", "ordered") == 20
    assert sender.now.refused == 1
    assert spool.oldest() is None
    spool.close()


def test_points_older_than_the_retention_are_counted_and_not_tried_for_ever(
    influx: Influx, tmp_path: Path
) -> None:
    server = influx.server()
    old = time.time_ns() - 100 * 86_400 * 10**9
    spool = Spool(tmp_path / "spool", 1 << 20)
    lines = [line("event", {"board": f"b{n}"}, {"count": n}, old if n % 4 == 0 else 0) for n in range(20)]
    spool.append("rounds", lines)
    sender = Sender(spool, server)
    sender.send_all()
    assert sender.now.refused == 5
    assert sender.now.state == "stored"
    assert count(server, "event", "count") == 15
    spool.close()


def test_a_server_that_is_killed_meanwhile_gets_everything_in_the_end(influx: Influx, tmp_path: Path) -> None:
    chronicle_of = lambda name: ("", CHANNELS)  # noqa: E731
    options = structs.replace(influx.options(), close_seconds=20.0)
    sink = Sink("lab", tmp_path, options, InfluxServer(options), chronicle_of)
    sink.start()
    sink.see("begun", {"run": "r1", "settings": SETTINGS})
    for number in range(1, 301):
        for board in ("pi4", "pi5"):
            sink.see("power", power(board))
            sink.see("board_round", board_row(board, number))
        sink.see("round", round_row(number))
        if number == 100:
            until(lambda: sink.sending.sent > 0)
            influx.kill()
        if number == 200:
            until(lambda: sink.sending.state == "away")
            influx.start()
    sink.close()
    server = influx.server()
    assert count(server, "round", "ordered") == points_of(server, "r1") == 300
    assert count(server, "board_round", "samples") == 600
    assert count(server, "power", "watts") == 300 * 2 * len(CHANNELS)
    assert sink.spool.dropped == {"rounds": 0, "power": 0}


def test_sending_twice_changes_nothing(influx: Influx) -> None:
    server = influx.server()
    chronicle = Chronicle("lab")
    chronicle.begin("r1", SETTINGS)
    stamped = [structs.replace(p, nanoseconds=time.time_ns()) for p in chronicle.points("round", round_row())]
    lines = [Writer().line(one) for one in stamped]
    assert server.write(lines).kind == server.write(lines).kind == "stored"
    assert count(server, "round", "ordered") == 1


def test_a_server_that_is_away_is_an_outage_with_its_address(tmp_path: Path) -> None:
    influx = Influx(tmp_path)
    verdict = influx.server(api="v1").write(["x"])
    assert verdict.kind == "away"
    assert influx.url in verdict.text
    with pytest.raises(TelemetryError, match=r"127\.0\.0\.1"):
        list(check(influx.server(), "lab"))
