"""The page's API over a whole coordinator: the commands' facts, changes with their round, and refusals."""

import re
from pathlib import Path
from typing import Any

import msgspec
import pytest

from coordinator.web import app
from tests.coordinator.telemetry.takers import board_row, round_row
from tests.coordinator.web.paged import Paged

TOKEN = "0123456789abcdef0123"
ROOT = Path(__file__).resolve().parents[3]


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
