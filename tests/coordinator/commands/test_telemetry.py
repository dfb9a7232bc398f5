"""`telemetry` and `dashboards` from the command line: what they need, what they write, how they fail."""

import json
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.commands import exits
from tests.servers.stand_in_influx import TOKEN, StandIn


def run(*arguments: str, **environment: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(app, [*arguments], env={"COLUMNS": "200", **environment})
    return done.exit_code, done.stdout, done.stderr


@pytest.fixture
def config(tmp_path: Path) -> Path:
    file = tmp_path / "coordinator.toml"
    file.write_text('fleet = "lab"\n')
    return file


def test_a_server_is_set_up_and_checked(config: Path) -> None:
    stand_in = StandIn("v2")
    try:
        config.write_text(f'fleet = "lab"\n[telemetry]\nurl = "{stand_in.url}"\norg = "lab"\n')
        given = {"EDGED_TELEMETRY_TOKEN": TOKEN}
        status, told, _ = run("telemetry", "setup", "--config", str(config), **given)
        assert status == exits.OK
        assert "bucket edged is there" in told
        status, told, _ = run("telemetry", "check", "--config", str(config), "--json", **given)
        assert status == exits.OK
        assert "read back through InfluxQL" in json.loads(told)["steps"][-1]
    finally:
        stand_in.close()


@pytest.mark.parametrize(
    ("arguments", "status", "says"),
    [
        (("telemetry", "dance"), exits.USAGE, "setup, check, or import RUN"),
        (("telemetry", "import"), exits.USAGE, "import RUN"),
        (("telemetry", "check"), exits.CONFIG, "--url"),
        (("telemetry", "check", "--url", "http://127.0.0.1:9"), exits.FAILED, "127.0.0.1:9"),
        (("dashboards", "export"), exits.USAGE, "export DIR"),
        (("dashboards", "install", "--url", "http://127.0.0.1:9"), exits.USAGE, "GRAFANA_TOKEN"),
    ],
)
def test_what_is_wrong_is_said_with_the_way_out(
    config: Path, arguments: tuple[str, ...], status: int, says: str
) -> None:
    more = ("--config", str(config)) if arguments[0] == "telemetry" else ()
    found, _, complaint = run(*arguments, *more)
    assert found == status, complaint
    assert says in complaint
    assert len(complaint.strip().splitlines()) == 1


def test_a_grafana_that_does_not_answer_is_named() -> None:
    status, _, complaint = run("dashboards", "install", "--url", "http://127.0.0.1:9", GRAFANA_TOKEN="t")
    assert status == exits.FAILED
    assert "127.0.0.1:9" in complaint


def grafana(taken: list[tuple[str, Any]]) -> ThreadingHTTPServer:
    """Takes folders and dashboards of who has the token; its folder is there already."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            status, told = 401, {"message": "Invalid API key"}
            if self.headers["Authorization"] == "Bearer right":
                status, told = (409, {}) if self.path == "/api/folders" else (200, {"url": "/d/x"})
                taken.append((self.path, body))
            self.send_response(status)
            self.end_headers()
            self.wfile.write(json.dumps(told).encode())

        def log_message(self, format: str, *arguments: object) -> None: ...

    return ThreadingHTTPServer(("127.0.0.1", 0), Handler)


def test_dashboards_are_installed_through_grafanas_api() -> None:
    taken: list[tuple[str, Any]] = []
    with grafana(taken) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://127.0.0.1:{server.server_port}"
        refused = run("dashboards", "install", "--url", url, GRAFANA_TOKEN="wrong")
        status, told, complaint = run("dashboards", "install", "--url", url, "--json", GRAFANA_TOKEN="right")
        server.shutdown()
    assert refused[0] == exits.FAILED
    assert "HTTP 401" in refused[2]
    assert status == exits.OK, complaint
    assert len(json.loads(told)["written"]) == 5
    folder, *dashboards = taken
    assert folder[0] == "/api/folders"
    assert [path for path, _ in dashboards] == ["/api/dashboards/db"] * 5
    assert {body["folderUid"] for _, body in dashboards} == {folder[1]["uid"]}
    titles = {body["dashboard"]["title"] for _, body in dashboards if body["overwrite"]}
    assert titles == {f"edged: {name}" for name in ("board", "energy", "fleet live", "health", "learning")}


def test_dashboards_go_where_grafana_looks_for_them(tmp_path: Path) -> None:
    status, told, _ = run("dashboards", "install", str(tmp_path), "--influx", "2", "--json")
    assert status == exits.OK
    written = [Path(place).relative_to(tmp_path).as_posix() for place in json.loads(told)["written"]]
    assert "etc/grafana/provisioning/datasources/edged.yaml" in written
    assert "var/lib/grafana/dashboards/edged/fleet-live.json" in written
    source = (tmp_path / "etc/grafana/provisioning/datasources/edged.yaml").read_text()
    assert "Token $EDGED_INFLUX_TOKEN" in source
    status, told, _ = run("dashboards", "export", str(tmp_path / "out"))
    assert status == exits.OK
    assert len(list((tmp_path / "out" / "json").glob("*.json"))) == 5
