"""InfluxDB 2.x and 3.x by their rules, in a strict stand-in; and 2.x's way of writing at a real server."""

import json
import shutil
import subprocess
import time
import urllib.parse
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from msgspec import structs

from coordinator.broker import free_port
from coordinator.telemetry.chronicle import Chronicle
from coordinator.telemetry.lines import Writer
from coordinator.telemetry.sender import Sender
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TOKEN_VARIABLE, TelemetryError, TelemetryOptions
from coordinator.telemetry.setup import check, setup
from coordinator.telemetry.spool import Spool
from tests.coordinator.telemetry.takers import CHANNELS, SETTINGS, board_row, closed_row, power, round_row
from tests.servers.influx import answers
from tests.servers.stand_in_influx import TOKEN, StandIn

Serve = Callable[..., StandIn]


@pytest.fixture
def serve() -> Iterator[Serve]:
    """Start a stand-in of a generation."""
    started: list[StandIn] = []

    def start(generation: str) -> StandIn:
        started.append(StandIn(generation))
        return started[-1]

    yield start
    for one in started:
        one.close()


@pytest.fixture
def token(tmp_path: Path) -> str:
    file = tmp_path / "token"
    file.write_text(f"{TOKEN}\n")
    return str(file)


def client(stand_in: StandIn, token: str | None, **changes: object) -> InfluxServer:
    options = TelemetryOptions(url=stand_in.url, org="lab", bucket="fleet", token_file=token)
    return InfluxServer(structs.replace(options, **changes))


def lines() -> list[str]:
    """Lines of all measurements, as a run gives them."""
    chronicle, writer = Chronicle("lab", lambda name: ("", CHANNELS)), Writer()
    seen = [("begun", {"run": "r1", "settings": SETTINGS}), ("power", power()), ("board_round", board_row())]
    seen += [
        ("closed", closed_row()),
        ("round", round_row()),
        ("evaluation", {"run": "r1", "round": 1, "loss": 1}),
    ]
    points = [point for what, value in seen for point in chronicle.points(what, value)]
    return [writer.line(structs.replace(point, nanoseconds=time.time_ns())) for point in points]


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_a_new_server_is_set_up_checked_and_takes_all_that_a_run_gives(
    serve: Serve, token: str, generation: str
) -> None:
    stand_in = serve(generation)
    server = client(stand_in, token)
    assert server.which() == generation
    list(setup(server))
    list(setup(server))
    assert "InfluxQL" in list(check(server, "lab"))[-1]
    if generation == "v3":
        assert stand_in.buckets["edged"]["retention_period"] == "90d"
    assert server.write(lines()).kind == "stored"
    assert {key[0] for key in stand_in.points} == {"event", "power", "board_round", "round"}


def test_a_bucket_gets_its_retention_and_a_mapping_for_influxql(serve: Serve, token: str) -> None:
    stand_in = serve("v2")
    list(setup(client(stand_in, token, retention_days=7)))
    assert stand_in.buckets["fleet"]["retentionRules"] == [{"type": "expire", "everySeconds": 7 * 86_400}]
    [mapping] = stand_in.mappings
    assert (mapping["database"], mapping["bucketID"]) == ("edged", stand_in.buckets["fleet"]["id"])


def test_a_mapping_to_another_bucket_is_not_taken_over(serve: Serve, token: str) -> None:
    stand_in = serve("v2")
    stand_in.mappings.append({"database": "edged", "bucketID": "of somebody else"})
    with pytest.raises(TelemetryError, match="mapped to bucket of somebody else"):
        list(setup(client(stand_in, token)))


def test_without_the_mapping_check_says_what_dashboards_would_see(serve: Serve, token: str) -> None:
    stand_in = serve("v2")
    stand_in.buckets["fleet"] = {"id": "b0"}
    with pytest.raises(TelemetryError, match="database not found"):
        list(check(client(stand_in, token), "lab"))


@pytest.mark.parametrize(("generation", "api"), [("v2", "auto"), ("v3", "auto"), ("v3", "v3")])
def test_a_wrong_token_is_an_error_of_settings(serve: Serve, generation: str, api: str) -> None:
    verdict = client(serve(generation), None, api=api).write(["x"])
    assert verdict.kind == "settings"
    assert "token" in verdict.text


@pytest.mark.parametrize(
    ("generation", "changes", "says"),
    [("v2", {}, "bucket 'fleet' not found"), ("v2", {"org": "other"}, "organization name 'other' not found")],
)
def test_a_missing_bucket_or_organisation_is_named_with_the_way_out(
    serve: Serve, token: str, generation: str, changes: dict[str, object], says: str
) -> None:
    verdict = client(serve(generation), token, **changes).write(lines())
    assert verdict.kind == "settings"
    assert says in verdict.text
    assert "telemetry setup" in verdict.text


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_a_line_of_another_type_does_not_take_its_batch_with_it(
    serve: Serve, token: str, tmp_path: Path, generation: str
) -> None:
    stand_in = serve(generation)
    server = client(stand_in, token)
    list(setup(server))
    stand_in.types["round", "joules"] = "integer"
    spool = Spool(tmp_path / "spool", 1 << 20)
    sent = lines()
    spool.append("rounds", sent)
    sender = Sender(spool, server)
    sender.send_all()
    assert sender.now.refused == 1
    assert len(stand_in.points) == len(sent) - 1
    assert spool.oldest() is None
    spool.close()


def test_a_whole_batch_that_is_refused_for_one_line_is_halved_until_that_line_is_alone(
    serve: Serve, token: str, tmp_path: Path
) -> None:
    """3.x by 2.x's path takes all or nothing."""
    stand_in = serve("v3")
    server = client(stand_in, token, api="v2")
    stand_in.types["round", "joules"] = "integer"
    spool = Spool(tmp_path / "spool", 1 << 20)
    sent = lines()
    spool.append("rounds", sent)
    sender = Sender(spool, server)
    sender.send_all()
    assert len(stand_in.points) == len(sent) - 1
    assert sender.now.refused == spool.dropped["rounds"] == 1
    spool.close()


def test_a_busy_server_is_asked_again_when_it_says(serve: Serve, token: str, tmp_path: Path) -> None:
    stand_in = serve("v3")
    stand_in.sick, stand_in.after = 503, "9"
    spool = Spool(tmp_path / "spool", 1 << 20)
    spool.append("rounds", lines())
    sender = Sender(spool, client(stand_in, token))
    assert sender.send_all() == 9.0
    stand_in.sick = 0
    sender.send_all()
    assert spool.oldest() is None
    assert sender.now.state == "stored"
    spool.close()


@pytest.mark.parametrize("generation", ["v2", "v3"])
def test_the_stand_in_is_strict(serve: Serve, generation: str) -> None:
    """What it must refuse, so that the tests above could fail."""
    stand_in = serve(generation)
    stand_in.buckets["fleet"] = {"id": "b0"}
    path = "/api/v2/write?org=lab&bucket=fleet" if generation == "v2" else "/api/v3/write_lp?db=edged"
    wrong = "&precision=n" if generation == "v2" else "&precision=nanos"
    good = b"m,a=1 x=1.5 1790000000000000000"
    assert _posted(stand_in, path, good, f"Token {TOKEN}") == 204
    assert _posted(stand_in, path + wrong, good, f"Token {TOKEN}") == 400
    assert _posted(stand_in, path, good, "Basic abc") == 401
    assert _posted(stand_in, path, b"m,a=1 x=1i 1790000000000000001", f"Token {TOKEN}") >= 400
    assert _posted(stand_in, path, b"m,a=1 y= 1790000000000000001", f"Token {TOKEN}") >= 400
    new_tag = _posted(stand_in, path, b"m,a=1,b=2 x=1.5 1790000000000000001", f"Token {TOKEN}")
    assert new_tag == (204 if generation == "v2" else 400)


def _posted(stand_in: StandIn, path: str, body: bytes, authorization: str) -> int:
    request = urllib.request.Request(stand_in.url + path, body, {"Authorization": authorization})
    try:
        with urllib.request.urlopen(request, timeout=10) as answer:
            return int(answer.status)
    except urllib.error.HTTPError as error:
        with error:
            return error.code


@pytest.mark.server
def test_the_write_path_of_2_x_at_a_real_server_that_speaks_it(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """VictoriaMetrics takes it and shows numbers by PromQL; it is no InfluxDB otherwise."""
    if shutil.which("victoria-metrics") is None:
        pytest.skip("victoria-metrics is not installed")
    monkeypatch.setenv(TOKEN_VARIABLE, TOKEN)
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = ["victoria-metrics", f"-httpListenAddr=127.0.0.1:{port}", f"-storageDataPath={tmp_path / 'vm'}"]
    command += ["-retentionPeriod=1", "-influx.databaseNames=edged", "-search.latencyOffset=0s"]
    with (tmp_path / "log").open("wb") as log, subprocess.Popen(command, stdout=log, stderr=log) as process:
        try:
            _until(lambda: answers(f"{url}/health"))
            server = InfluxServer(TelemetryOptions(url=url, api="v2", org="lab"))
            assert server.write(lines()).kind == "stored"
            query = urllib.parse.urlencode({"query": 'power_watts{board="pi5",channel="pmic"}'})
            found: list[object] = []

            def shown() -> bool:
                with urllib.request.urlopen(f"{url}/api/v1/query?{query}", timeout=10) as answer:
                    found[:] = json.load(answer)["data"]["result"]
                return bool(found)

            _until(shown)
            assert found[0]["value"][1] == "5.5"  # type: ignore[index]
            assert found[0]["metric"]["basis"] == "calibrated"  # type: ignore[index]
            with pytest.raises(TelemetryError, match="cannot tell which InfluxDB"):
                list(check(InfluxServer(TelemetryOptions(url=url)), "lab"))
        finally:
            process.kill()


def _until(true: Callable[[], bool], seconds: float = 60.0) -> None:
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.1)
