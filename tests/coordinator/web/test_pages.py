"""The page's API over a whole coordinator: the commands' facts, changes with their round, and refusals."""

import json
import re
import socket
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from typer.testing import CliRunner

from coordinator.cli import app as commands
from coordinator.commands import exits
from coordinator.telemetry.settings import TelemetryOptions
from coordinator.telemetry.sink import Sink
from coordinator.web import app, hub
from coordinator.web.settings import WebError, WebOptions
from edged.messages import Birth
from tests.coordinator.telemetry.takers import Taker, board_row, power, round_row
from tests.coordinator.web.paged import Paged

TOKEN = "0123456789abcdef0123"
ROOT = Path(__file__).resolve().parents[3]


@pytest.fixture
def paged(tmp_path: Path) -> Iterator[Paged]:
    made = Paged(tmp_path)
    yield made
    made.close()


def events(paged: Paged, *wanted: str, meanwhile: Callable[[], object] = lambda: None) -> dict[str, str]:
    """Read the stream until each wanted event came; the first data of each. `meanwhile`: once it flows."""

    def read() -> dict[str, str]:
        found: dict[str, str] = {}
        with socket.create_connection(("127.0.0.1", paged.port), timeout=60) as stream:
            stream.sendall(b"GET /api/events HTTP/1.1\r\nHost: localhost\r\n\r\n")
            text = b""
            until = time.monotonic() + 60
            while not set(wanted) <= set(found):
                assert time.monotonic() < until, (wanted, found)
                text += stream.recv(65536)
                meanwhile()
                for part in text.decode(errors="replace").split("\n\n"):
                    name, _, data = part.partition("\ndata: ")
                    if "event: " in name and data:
                        found.setdefault(name.rpartition("event: ")[2], data)
        return found

    return paged.aside(read)


def test_the_page_and_its_files_are_served_without_any_other_host(paged: Paged) -> None:
    page = paged.get("/")
    assert page.status == 200
    assert "default-src 'none'" in page.headers["content-security-policy"]
    files = {path.name: paged.get(f"/static/{path.name}") for path in sorted(app.STATIC.iterdir())}
    assert {"page.css", "main.js", "charts.js", "login.html"} <= set(files)
    assert {answer.status for answer in files.values()} == {200}
    for name, answer in {**files, "/": page}.items():
        assert not re.search(r"https?://|[\"'(]//", answer.body.decode()), name
    assert len(paged.get("/plotly.js").body) > 1_000_000
    assert b"PLOTLY_VERSION" not in page.body


@pytest.mark.parametrize(
    "path", ["/static/../app.py", "/static/%2e%2e%2fapp.py", "/static/app.py", "/static/x.js"]
)
def test_nothing_but_its_files_is_served(paged: Paged, path: str) -> None:
    assert paged.get(path).status == 404


def test_a_run_is_told_as_it_was_recorded(paged: Paged) -> None:
    paged.run(rounds=3)
    paged.finished()
    paged.until(lambda: len(paged.get("/api/rounds").json["rounds"]) == 3)
    data = paged.get("/api/rounds").json
    recorded = paged.hall.rows("round")
    boards = paged.hall.server.store.history.board_rounds("r1")
    assert len(boards) == 3 * 3
    assert [row["makespan_seconds"] for row in data["rounds"]] == [
        row["makespan_seconds"] for row in recorded
    ]
    for row in boards:
        assert data["boards"][row["board"]][row["round"] - 1]["samples"] == row["samples"]
    stored = paged.get("/api/rounds?run=r1&last=2").json
    assert [row["round"] for row in stored["rounds"]] == [2, 3]
    assert paged.get("/api/runs").json[0]["run"] == "r1"
    state = paged.get("/api/state").json
    assert {row["board"] for row in state["boards"]} == {"b0", "b1", "b2"}


@pytest.mark.parametrize(("regime", "policy"), [("pma", "adaptive"), ("asp", "equal")])
def test_what_is_loaded_from_the_store_is_what_was_told_live(paged: Paged, regime: str, policy: str) -> None:
    paged.run(rounds=4, regime=regime, policy=policy)
    for board in paged.hall.boards:
        board.waited_seconds = 0.5
    paged.finished()

    def told() -> list[Any]:
        series = (paged.host.hub.series, paged.host.hub.stored("r1"))
        both = [msgspec.json.decode(msgspec.json.encode(one.data())) for one in series]
        for data in both:
            for row in (*data["rounds"], *data["changes"]):
                row.pop("at", None)
        return both

    paged.until(lambda: len(told()[0]["rounds"]) == 4 and told()[0] == told()[1])


def test_joules_that_are_not_known_are_null_with_the_reason(paged: Paged) -> None:
    paged.run(rounds=2)
    paged.finished()
    paged.until(lambda: len(paged.get("/api/rounds").json["rounds"]) == 2)
    why = "the sensor fell silent"
    paged.hall.server.tell("board_round", board_row("b0", 3, joules=None, joules_reason=why))
    paged.hall.server.tell("round", round_row(3, joules_unknown_of=["b0"]))
    paged.until(lambda: len(paged.get("/api/rounds").json["rounds"]) == 3)
    found = paged.get("/api/rounds").json
    known, unknown = found["boards"]["b0"][1], found["boards"]["b0"][2]
    assert (known["joules"] > 0, known["joules_reason"]) == (True, None)
    assert (unknown["joules"], unknown["joules_reason"]) == (None, why)
    assert found["rounds"][2]["joules_unknown_of"] == ["b0"]


def test_a_weight_is_previewed_and_then_set_from_the_next_round_on(paged: Paged) -> None:
    paged.run(rounds=60)
    paged.until(lambda: paged.get("/api/preview?w_e=0.5").status == 200)
    paged.until(lambda: paged.get("/api/preview?w_e=0.5").json["seconds"])
    before = paged.hall.server.rounds.state.control.w_e  # type: ignore[union-attr]
    preview = paged.get("/api/preview?w_e=0.5").json
    assert preview["used"] is True
    assert sum(preview["shares"].values()) == 300
    assert preview["present_seconds"] is not None
    assert paged.hall.server.rounds.state.control.w_e == before == 0.0, "a preview changes nothing"  # type: ignore[union-attr]
    told = paged.ask("POST", "/api/weights", {"w_e": 0.5, "who": "ann"})
    assert told.status == 200
    from_round = told.json["from_round"]
    paged.until(lambda: any(r["round"] == from_round for r in paged.get("/api/rounds").json["rounds"]))
    rows = {row["round"]: row for row in paged.get("/api/rounds").json["rounds"]}
    assert (rows[from_round - 1]["w_e"], rows[from_round]["w_e"]) == (0.0, 0.5)
    [change] = [one for one in paged.get("/api/rounds").json["changes"] if one["what"] == "weights"]
    assert change["who"].startswith("ann at 127.0.0.1")


@pytest.mark.parametrize(
    ("body", "headers", "status", "says"),
    [
        ({"w_e": 7}, {}, 409, "between 0 and 1"),
        ({"w_e": "x"}, {}, 400, "w_e"),
        ({"w_e": 0.5, "policy": "equal"}, {}, 400, "policy"),
        (b"not json", {"Content_Type": "application/json"}, 400, ""),
        (b'{"w_e": 0.5}', {"Content_Type": "text/plain"}, 415, "application/json"),
        (b'{"w_e": ' + b" " * 9000 + b"0.5}", {"Content_Type": "application/json"}, 400, "too long"),
        ({"w_e": 0.5}, {"Origin": "http://evil.example"}, 403, "may change nothing"),
        ({"w_e": 0.5}, {"Host": "evil.example"}, 403, "127.0.0.1"),
    ],
)
def test_what_is_wrong_with_a_change_is_said_and_changes_nothing(
    paged: Paged, body: Any, headers: dict[str, str], status: int, says: str
) -> None:
    paged.run(rounds=60)
    paged.until(lambda: paged.get("/api/preview?w_e=0.5").status == 200)
    answer = paged.ask("POST", "/api/weights", body, **headers)
    assert answer.status == status
    assert says in answer.body.decode()
    assert paged.hall.rows("control")[1:] == []


def test_without_a_run_a_change_is_refused_in_words(paged: Paged) -> None:
    assert "no run is going on" in paged.ask("POST", "/api/weights", {"w_e": 0.5}).json["error"]
    assert "no run" in paged.get("/api/advice").json["error"]
    assert "needed" in paged.get("/api/preview?w_e=x").json["error"]
    assert "no run nonesuch" in paged.get("/api/rounds?run=nonesuch").json["error"]


def test_a_page_of_another_site_may_ask_nothing(paged: Paged) -> None:
    assert paged.get("/api/state", Sec_Fetch_Site="cross-site").status == 403
    assert paged.get("/api/state", Host="rebound.example:8765").status == 403
    assert paged.get("/api/state", Host="localhost").status == 200


def test_a_reader_hears_rounds_states_boards_and_watts(paged: Paged) -> None:
    paged.run(rounds=300)
    paged.until(lambda: paged.get("/api/state").json["status"]["run"])
    paged.power("b0", 4.5)
    heard = lambda: paged.host.hub.see("power", power("b1", 6.5))  # noqa: E731
    found = events(paged, "rows", "state", "boards", "status", "watts", meanwhile=heard)
    assert '"run":"r1"' in found["state"]
    assert json.loads(found["watts"])["b1"]["watts"] == 6.5
    paged.until(lambda: paged.get("/api/state").json["watts"])
    assert paged.get("/api/state").json["watts"]["b0"]["watts"] == 4.5


def test_readers_that_go_away_are_forgotten(paged: Paged) -> None:
    paged.run(rounds=300)
    for _ in range(3):
        events(paged, "rows")
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


def test_metrics_are_in_prometheus_own_format_and_leave_out_what_is_unknown(paged: Paged) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    paged.run(rounds=2)
    paged.finished()
    paged.power("b1", 7.5)
    paged.until(lambda: paged.get("/api/state").json["watts"])
    text = paged.get("/metrics").body.decode()
    found = {family.name: family for family in text_string_to_metric_families(text)}
    up = {sample.labels["board"]: sample.value for sample in found["edged_board_up"].samples}
    assert up == {"b0": 1.0, "b1": 1.0, "b2": 1.0}
    watts = {sample.labels["board"]: sample.value for sample in found["edged_board_watts"].samples}
    assert watts == {"b1": 7.5}, "b0 and b2 have told none"
    assert found["edged_round"].samples[0].value == 2
    assert found["edged_broker_up"].samples[0].value == 1


def test_metrics_have_the_alerts_and_what_waits_to_be_sent(paged: Paged) -> None:
    sink = Sink(
        "main", paged.hall.folder, TelemetryOptions(url="http://127.0.0.1:1"), Taker(), lambda name: ("", ())
    )
    paged.hall.server.lookout.sink = sink
    sink.spool.append("rounds", ["a line"])
    paged.run(rounds=5000)
    paged.hall.until(lambda: len(paged.hall.rows("round")) >= 2)
    paged.hall.boards[1].mute = True
    paged.hall.server.boards.born(Birth("b1", paged.hall.boards[1].boot, 1, "lost"))
    paged.until(lambda: paged.get("/api/state").json["status"]["alerts"])
    lines = paged.get("/metrics").body.decode().splitlines()
    assert 'edged_alert{board="b1",kind="board-silent"} 1.0' in lines
    assert "edged_spool_bytes 7.0" in lines
    assert 'edged_spool_dropped_total{lane="rounds"} 0.0' in lines


def test_metrics_of_an_asynchronous_run_count_updates_and_know_no_makespan(paged: Paged) -> None:
    from prometheus_client.parser import text_string_to_metric_families

    paged.run(rounds=500, regime="asp", policy="equal")
    paged.hall.until(lambda: len(paged.hall.rows("round")) >= 2)
    text = paged.get("/metrics").body.decode()
    found = {family.name: family.samples for family in text_string_to_metric_families(text)}
    updates = {sample.labels["board"]: sample.value for sample in found["edged_board_updates"]}
    assert set(updates) == {"b0", "b1", "b2"}
    assert min(updates.values()) > 0
    refused = {sample.labels["board"]: sample.value for sample in found["edged_board_updates_too_old"]}
    assert refused == {"b0": 0.0, "b1": 0.0, "b2": 0.0}
    assert found["edged_round_joules"] != []
    assert found["edged_makespan_seconds"] == []


def test_every_path_that_answers_programs_is_documented() -> None:
    paths = re.findall(r'Route\("(/api/\w+|/metrics|/healthz)"', Path(app.__file__).read_text())
    text = (ROOT / "docs" / "operate.md").read_text()
    assert len(paths) >= 9
    assert [path for path in paths if path not in text] == []


def test_health_names_what_is_wrong(paged: Paged) -> None:
    assert paged.get("/healthz").json == {"ok": True, "wrong": []}
    paged.hall.broker.stop()
    paged.until(lambda: paged.get("/healthz").status == 503)
    assert "broker" in paged.get("/healthz").json["wrong"][0]


def test_with_a_token_only_who_knows_it_sees_anything(tmp_path: Path) -> None:
    file = tmp_path / "token"
    file.write_text(TOKEN)
    paged = Paged(tmp_path, str(file))
    try:
        for path in ("/", "/api/state", "/metrics", "/api/events", "/static/main.js"):
            assert paged.get(path).status == 401
        assert paged.get("/healthz").status == 200
        assert paged.get("/api/state", Authorization=f"Bearer {TOKEN}").status == 200
        assert paged.get("/api/state", Authorization=f"Bearer {TOKEN}x").status == 401
        form = {"Content_Type": "application/x-www-form-urlencoded"}
        assert paged.ask("POST", "/login", b"token=wrong", **form).status == 401
        answer = paged.ask("POST", "/login", f"token={TOKEN}".encode(), **form)
        assert answer.status == 303
        assert "httponly" in answer.headers["set-cookie"].lower()
        assert paged.get("/", Cookie=answer.headers["set-cookie"].partition(";")[0]).status == 200
    finally:
        paged.close()


@pytest.mark.parametrize(
    ("listen", "says"),
    [
        ("0.0.0.0:80", "needs a token"),
        ("[::]:80", "needs a token"),
        ("nonsense", "host:port"),
        ("1.2.3.4:x", "host:port"),
    ],
)
def test_an_address_that_others_reach_wants_a_token(listen: str, says: str) -> None:
    with pytest.raises(WebError, match=says):
        WebOptions(listen=listen).token({})


@pytest.mark.parametrize("listen", ["0.0.0.0:80", "nonsense"])
def test_serve_refuses_such_an_address_before_it_begins(listen: str, tmp_path: Path) -> None:
    done = CliRunner().invoke(commands, ["serve", "--web", listen, "--store", str(tmp_path / "store")])
    assert done.exit_code == exits.CONFIG
    assert listen in done.stderr
    assert len(done.stderr.strip().splitlines()) == 1
    assert not (tmp_path / "store").exists()


def test_a_token_that_is_short_is_refused() -> None:
    with pytest.raises(WebError, match="16 at least"):
        WebOptions().token({"EDGED_WEB_TOKEN": "short"})
    assert WebOptions(listen="0.0.0.0:80").token({"EDGED_WEB_TOKEN": TOKEN}) == TOKEN


def test_a_port_that_is_taken_is_named_with_the_way_out(paged: Paged) -> None:
    from coordinator.web.host import Host

    options = WebOptions(listen=f"127.0.0.1:{paged.port}")
    with pytest.raises(WebError, match="give another port"):
        Host(options, lambda item: None, lambda: None, Path())  # type: ignore[arg-type, return-value]
