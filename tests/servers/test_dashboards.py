"""A real run over mosquitto fills a real InfluxDB, and every query of every dashboard finds rows in it."""

import json
import re
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from coordinator.telemetry.setup import points_of, setup
from edged.controls import SetWeights
from edged.messages import FleetState
from tests.coordinator.telemetry.takers import board_row
from tests.scenarios.lab import Lab
from tests.servers.influx import Influx, count

pytestmark = [pytest.mark.server, pytest.mark.slow]

DASHBOARDS = Path(__file__).resolve().parents[2] / "dashboards" / "json"
BOARDS = ("rpi4", "rpi5", "n100")
SCALE = "0.004"
RARE = {"Throttling", "Temperature", "Alerts"}
"""What shows something only where a board throttles, has a thermometer, or an alert begins; tried apart."""


class WatchedLab(Lab):
    """Its coordinator sends to an InfluxDB."""

    influx_url = ""

    def start_coordinator(self, tables: str = "") -> None:
        sends = f'[telemetry]\nurl = "{self.influx_url}"\n[web]\nlisten = "off"\n'
        super().start_coordinator(tables + sends)


@pytest.fixture
def lab(tmp_path: Path, start_influx: Callable[..., Influx]) -> Iterator[WatchedLab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    influx = start_influx()
    list(setup(influx.server()))
    folder = tmp_path / "lab"
    folder.mkdir()
    made = WatchedLab(folder)
    made.influx_url, made.influx = influx.url, influx  # type: ignore[attr-defined]
    made.start_coordinator()
    for board in BOARDS:
        made.start_board(board, "--emulate", board, "--speed-scale", SCALE)
    yield made
    made.close()


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
    return found


def has_rows(series: list[dict[str, Any]]) -> bool:
    return any(value is not None for one in series for row in one["values"] for value in row[1:])


def test_every_query_of_every_dashboard_finds_what_a_real_run_wrote(lab: WatchedLab) -> None:
    influx: Influx = lab.influx  # type: ignore[attr-defined]
    server = influx.server()
    run = lab.begin(budget=300, rounds=8, policy="adaptive", w_t=0.75, w_e=0.25, min_boards=3)
    lab.wait_round(run, 2)
    assert lab.ask(SetWeights(w_e=0.5)).ok
    lab.kill("rpi4")  # something for alerts and counters to show
    lab.start_board("rpi4", "--emulate", "rpi4", "--speed-scale", SCALE)
    lab.finish(run)
    lab.wait(lambda: points_of(server, run) == len(lab.rows("round", run)), "all rounds in the InfluxDB")
    evaluated = len(lab.rows("evaluation", run))
    lab.wait(lambda: count(server, "round", "heldout_loss") >= evaluated - 1, "held-out figures")
    time.sleep(6)  # one more word of the fleet
    asked = queries()
    assert len(asked) > 60
    without = [(d, panel) for d, panel, query in asked if not has_rows(server.query(filled(query)))]
    assert [one for one in without if one[1] not in RARE] == [], without
    told = {row["round"]: row["makespan_seconds"] for row in lab.rows("round", run)}
    found = server.query(f'SELECT "round", "makespan_seconds" FROM "round" WHERE "run" = \'{run}\'')
    assert {int(row[1]): row[2] for row in found[0]["values"] if row[2] is not None} == told
    bases = server.query('SHOW TAG VALUES FROM "power" WITH KEY = "basis"')[0]["values"]
    assert [row[1] for row in bases] == ["emulated"]


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


def test_a_recorded_run_is_written_afterwards_and_says_the_same(
    lab: WatchedLab, tmp_path: Path, start_influx: Callable[..., Influx]
) -> None:
    from typer.testing import CliRunner

    from coordinator.cli import app

    first: Influx = lab.influx  # type: ignore[attr-defined]
    run = lab.begin(budget=300, rounds=3, policy="adaptive", min_boards=3)
    lab.finish(run)
    lab.wait(lambda: points_of(first.server(), run) == len(lab.rows("round", run)), "all rounds")
    second = start_influx()
    list(setup(second.server()))
    command = ["telemetry", "import", run, "--store", str(lab.store), "--url", second.url, "--fleet", "lab"]
    done = CliRunner().invoke(app, command)
    assert done.exit_code == 0, done.output
    asked = 'SELECT "round", "makespan_seconds", "joules", "waiting_share" FROM "round" WHERE "ordered" > 0'
    both = [[row[1:] for row in one.server().query(asked)[0]["values"]] for one in (first, second)]
    assert both[0] == both[1]
    again = CliRunner().invoke(app, command)
    assert again.exit_code == 1
    assert "--again" in again.stderr
