"""Real runs over mosquitto fill a real InfluxDB, and every query of every dashboard finds rows in it."""

import importlib
import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from coordinator.broker import find_mosquitto
from coordinator.telemetry.setup import points_of, setup
from edged.controls import SetWeights
from edged.messages import FleetState
from tests.coordinator.telemetry.takers import board_row
from tests.scenarios.lab import Lab
from tests.servers.influx import Influx, count, find_influxd

pytestmark = [pytest.mark.server, pytest.mark.slow]

ROOT = Path(__file__).resolve().parents[2]
DASHBOARDS = ROOT / "dashboards" / "json"
RULES = ROOT / "dashboards" / "provisioning" / "alerting.yaml"
BOARDS = ("rpi4", "rpi5", "n100")
SCALE = "0.004"
RARE = {"Throttling", "Temperature", "Alerts"}
"""What shows something only where a board throttles, has a thermometer, or an alert begins; tried apart."""


class WatchedLab(Lab):
    """Its coordinator sends to an InfluxDB."""

    def __init__(self, folder: Path, influx: Influx) -> None:
        super().__init__(folder)
        self.influx, self.server = influx, influx.server()

    def start_coordinator(self, tables: str = "") -> None:
        sends = f'[telemetry]\nurl = "{self.influx.url}"\n[web]\nlisten = "off"\n'
        super().start_coordinator(tables + sends)

    def watched(self, run: str) -> str:
        """The run, once it is over and all of it is in the InfluxDB."""
        self.finish(run)
        self.wait(lambda: points_of(self.server, run) == len(self.rows("round", run)), f"all rounds of {run}")
        return run


class Watched(NamedTuple):
    lab: WatchedLab
    synchronous: str
    asynchronous: str


@pytest.fixture(scope="module")
def watched(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Watched]:
    """Two runs over mosquitto, of rounds and of asynchronous updates, in a store and in an InfluxDB."""
    if find_mosquitto() is None or find_influxd() is None:
        pytest.skip("mosquitto or influxd is not installed")
    folder = tmp_path_factory.mktemp("watched")
    for name in ("influx", "lab"):
        (folder / name).mkdir()
    influx = Influx(folder / "influx")
    influx.start()
    list(setup(influx.server()))
    lab = WatchedLab(folder / "lab", influx)
    lab.start_coordinator()
    for board in BOARDS:
        lab.start_board(board, "--emulate", board, "--speed-scale", SCALE)
    try:
        yield Watched(lab, rounds_of(lab), updates_of(lab))
    finally:
        lab.close()
        influx.kill()


def rounds_of(lab: WatchedLab) -> str:
    run = lab.begin(budget=300, rounds=8, policy="adaptive", w_t=0.75, w_e=0.25, min_boards=3)
    lab.wait_round(run, 2)
    assert lab.ask(SetWeights(w_e=0.5)).ok
    lab.kill("rpi4")  # something for alerts and counters to show
    lab.start_board("rpi4", "--emulate", "rpi4", "--speed-scale", SCALE)
    lab.watched(run)
    evaluated = len(lab.rows("evaluation", run))
    lab.wait(lambda: count(lab.server, "round", "heldout_loss") >= evaluated - 1, "held-out figures")
    return run


def updates_of(lab: WatchedLab) -> str:
    before = count(lab.server, "fleet", "boards_up")
    run = lab.begin(
        regime="asp", policy="omnilearn", budget=96, rounds=2, batch=16, learning_rate=0.02, min_boards=3
    )
    lab.watched(run)
    lab.wait(lambda: count(lab.server, "fleet", "boards_up") > before, "one more word of the fleet")
    return run


def importing(lab: WatchedLab, run: str, influx: Influx) -> list[str]:
    return ["telemetry", "import", run, "--store", str(lab.store), "--url", influx.url, "--fleet", "lab"]


def filled(query: str) -> str:
    """As Grafana sends it, with every variable set to all."""
    query = query.replace("$timeFilter", "time > now() - 1h").replace("$__interval", "10s")
    query = re.sub(r"/\^\$\w+\$/", "/.*/", query)
    assert "$" not in query, query
    return query


def queries() -> list[tuple[str, str, str]]:
    """(dashboard, panel, query)"""
    found = []
    for path in sorted(DASHBOARDS.glob("*.json")):
        dashboard = json.loads(path.read_text())
        for panel in dashboard["panels"]:
            found += [(path.stem, panel["title"], target["query"]) for target in panel["targets"]]
        found += [
            (path.stem, one["name"], one["target"]["query"]) for one in dashboard["annotations"]["list"]
        ]
        found += [(path.stem, v["name"], v["query"]) for v in dashboard["templating"]["list"]]
    [group] = importlib.import_module("yaml").safe_load(RULES.read_text())["groups"]  # it has no types
    return found + [("alerting", rule["uid"], rule["data"][0]["model"]["query"]) for rule in group["rules"]]


def has_rows(series: list[dict[str, Any]]) -> bool:
    return any(value is not None for one in series for row in one["values"] for value in row[1:])


def test_every_query_of_every_dashboard_finds_what_real_runs_wrote(watched: Watched) -> None:
    lab, run, _ = watched
    asked = queries()
    assert len(asked) > 60
    without = [(d, panel) for d, panel, query in asked if not has_rows(lab.server.query(filled(query)))]
    assert [one for one in without if one[1] not in RARE] == [], without
    told = {row["round"]: row["makespan_seconds"] for row in lab.rows("round", run)}
    found = lab.server.query(f'SELECT "round", "makespan_seconds" FROM "round" WHERE "run" = \'{run}\'')
    assert {int(row[1]): row[2] for row in found[0]["values"] if row[2] is not None} == told
    bases = lab.server.query('SHOW TAG VALUES FROM "power" WITH KEY = "basis"')[0]["values"]
    assert [row[1] for row in bases] == ["emulated"]


def test_updates_and_their_staleness_are_those_that_the_store_has(watched: Watched) -> None:
    lab, _, run = watched
    pushes = [row for row in lab.rows("push", run) if row["status"] == "accepted"]
    where = f'WHERE "run" = \'{run}\' GROUP BY "board"'
    found = lab.server.query(f'SELECT sum("updates"), max("staleness_most") FROM "board_round" {where}')
    told = {one["tags"]["board"]: tuple(one["values"][0][1:]) for one in found}
    assert told == {
        board: (len(ages), max(ages))
        for board in BOARDS
        if (ages := [row["staleness"] for row in pushes if row["board"] == board])
    }
    assert sum(updates for updates, _ in told.values()) == len(pushes) > 0
    assert lab.server.query(f'SELECT "makespan_seconds" FROM "round" WHERE "run" = \'{run}\'') == []


def test_heat_throttling_and_alerts_are_shown_where_there_are_any(
    start_influx: Callable[..., Influx],
) -> None:
    from msgspec import structs

    from coordinator.alerts import Alert
    from coordinator.telemetry.chronicle import Chronicle
    from coordinator.telemetry.lines import Writer
    from tests.coordinator.telemetry.takers import CHANNELS, power

    server = start_influx().server()
    list(setup(server))
    chronicle = Chronicle("lab", lambda name: ("", CHANNELS))
    points = chronicle.points("power", power()) + chronicle.points("board_round", board_row())
    fleet = (FleetState("c", 1, "up"), {"alerts": 1})
    points += chronicle.points("fleet", fleet) + chronicle.points(
        "alert", (Alert("board-silent", "pi4", "pi4: link lost"), True)
    )
    lines = [Writer().line(structs.replace(point, nanoseconds=time.time_ns())) for point in points]
    assert server.write(lines).kind == "stored"
    rare = [query for _, panel, query in queries() if panel in RARE]
    assert len(rare) >= len(RARE)
    for query in rare:
        assert has_rows(server.query(filled(query))), query


def test_recorded_runs_are_written_afterwards_and_say_the_same(
    watched: Watched, start_influx: Callable[..., Influx]
) -> None:
    from typer.testing import CliRunner

    from coordinator.cli import app

    lab = watched.lab
    second = start_influx()
    list(setup(second.server()))
    done = [CliRunner().invoke(app, importing(lab, run, second)) for run in watched[1:]]
    assert [one.exit_code for one in done] == [0, 0], [one.output for one in done]
    asked = 'SELECT "round", "makespan_seconds", "joules", "waiting_share" FROM "round" WHERE "ordered" > 0'
    both = [[row[1:] for row in one.query(asked)[0]["values"]] for one in (lab.server, second.server())]
    assert both[0] == both[1]
    ages = 'SELECT "board", "round", "updates", "staleness_median" FROM "board_round" WHERE "updates" >= 0'
    both = [sorted(row[1:] for row in one.query(ages)[0]["values"]) for one in (lab.server, second.server())]
    assert both[0] == both[1]
    again = CliRunner().invoke(app, importing(lab, watched.asynchronous, second))
    assert again.exit_code == 1
    assert "--again" in again.stderr
