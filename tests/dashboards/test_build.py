"""Dashboards: as the builder makes them, by Grafana's own types, and of nothing that is not written."""

import importlib.util
import json
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from coordinator.telemetry.schema import MEASUREMENTS

ROOT = Path(__file__).resolve().parents[2]
FILES = sorted((ROOT / "dashboards" / "json").glob("*.json"))
SCHEMA = ROOT / "tests/data/grafana/dashboard-11.6.schema.json"
PANELS = {"timeseries", "stat", "table", "barchart", "piechart", "xychart"}
"""Of Grafana's own panels; its schema does not know their names."""
SHOWN = {
    "fleet-live": "watts joules_measured joules_estimated round accepted samples makespan_seconds longest "
    "waiting_share w_e",
    "energy": "joules_per_sample joules compute_joules wait_joules communication_joules joules_measured "
    "joules_emulated uncertainty_joules coverage time_only_joules predicted_joules cost",
    "board": "watts channel scope temperature_celsius throttled seconds_per_sample joules_per_sample "
    "seconds_per_sample_average joules_per_sample_average samples loss updates staleness_median",
    "learning": "heldout_loss heldout_seconds heldout_joules run policy",
    "health": "drops duplicates refusals reconnects alerts spool_bytes sampler_cpu_seconds updates_too_old",
}
"""What each is for, as fields and tags that its panels ask for."""
QUERY = re.compile(r'^SELECT (?P<what>.+?) FROM "(?P<measurement>\w+)" WHERE (?P<rest>.+)$')


def dashboard(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())
    return found


def queries(found: dict[str, Any]) -> list[str]:
    panels = [target["query"] for panel in found["panels"] for target in panel["targets"]]
    return panels + [one["target"]["query"] for one in found["annotations"]["list"]]


def test_there_are_the_five() -> None:
    assert [path.stem for path in FILES] == ["board", "energy", "fleet-live", "health", "learning"]


@pytest.mark.skipif(
    importlib.util.find_spec("grafana_foundation_sdk") is None,
    reason="grafana-foundation-sdk is not installed",
)
def test_what_is_committed_is_what_the_builder_makes() -> None:
    script = "import json, runpy; print(json.dumps(runpy.run_path('dashboards/build.py')['all_built']()))"
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout) == {path.name: path.read_text() for path in FILES}


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_grafanas_types_take_it(path: Path) -> None:
    found = dashboard(path)
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    errors = [
        f"{'/'.join(map(str, error.path))}: {error.message[:200]}" for error in validator.iter_errors(found)
    ]
    # `targets` and the query of an annotation are the datasource's own.
    assert [error for error in errors if "annotations/list" not in error] == []
    assert {panel["type"] for panel in found["panels"]} <= PANELS
    assert found.get("id") is None


def test_the_schema_catches_what_is_misspelt() -> None:
    found = dashboard(FILES[0])
    validator = jsonschema.Draft7Validator(json.loads(SCHEMA.read_text()))
    assert list(validator.iter_errors({**found, "refesh": "5s"}))
    assert list(validator.iter_errors({**found, "refresh": 5}))
    assert list(
        validator.iter_errors({**found, "panels": [{**found["panels"][0], "gridPos": {"w": "wide"}}]})
    )


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_every_name_in_a_query_is_written_by_the_coordinator(path: Path) -> None:
    for query in queries(dashboard(path)):
        found = QUERY.match(query)
        assert found, query
        table = MEASUREMENTS[found["measurement"]]
        plain = re.sub(r'AS "[^"]+"', "", query.replace(f'FROM "{found["measurement"]}"', ""))
        names = set(re.findall(r'"(\w+)"', re.sub(r"'[^']*'", "", plain)))
        assert names <= {*table.tags, *table.fields}, (query, names)
        assert "$timeFilter" in query


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_each_shows_what_it_is_for(path: Path) -> None:
    asked = {word for panel in dashboard(path)["panels"] for word in words(panel)}
    assert set(SHOWN[path.stem].split()) - asked == set()


def words(panel: dict[str, Any]) -> set[str]:
    return {word for target in panel["targets"] for word in re.findall(r'"(\w+)"', target["query"])}


def test_watts_are_stacked_and_bounds_are_a_band() -> None:
    panels = {path.stem: dashboard(path)["panels"] for path in FILES}
    [watts] = [panel for panel in panels["fleet-live"] if "watts" in words(panel)]
    assert watts["fieldConfig"]["defaults"]["custom"]["stacking"]["mode"] == "normal"
    [bounds] = [panel for panel in panels["energy"] if "uncertainty_joules" in words(panel)]
    filled = [one["value"] for each in bounds["fieldConfig"]["overrides"] for one in each["properties"]]
    assert "low" in filled


@pytest.mark.parametrize("path", FILES, ids=lambda path: path.stem)
def test_all_ask_one_datasource_by_its_fixed_name(path: Path) -> None:
    text = path.read_text()
    assert set(re.findall(r'"uid": "([^"]+)"', text)) == {"edged-influxdb", f"edged-{path.stem}"}
    assert "${DS_" not in text
    found = dashboard(path)
    assert [one["name"] for one in found["templating"]["list"]] == ["fleet", "silo", "board", "run"]


def test_the_provisioned_datasource_has_that_name_for_each_generation() -> None:
    yaml = importlib.import_module("yaml")  # it has no types

    for generation in (1, 2, 3):
        file = ROOT / f"dashboards/provisioning/datasource-influxdb{generation}.yaml"
        [source] = yaml.safe_load(file.read_text())["datasources"]
        assert (source["uid"], source["type"]) == ("edged-influxdb", "influxdb")
        assert source["jsonData"]["version"] == "InfluxQL"
        secret = source["secureJsonData"].get("httpHeaderValue1", "")
        assert secret.split(" ")[0] == {1: "", 2: "Token", 3: "Bearer"}[generation]
    rules = yaml.safe_load((ROOT / "dashboards/provisioning/alerting.yaml").read_text())["groups"][0]["rules"]
    assert {rule["uid"] for rule in rules} == {
        "edged-board-silent",
        "edged-round-late",
        "edged-energy-lost",
        "edged-spool-growing",
    }
    for rule in rules:
        query = rule["data"][0]["model"]["query"]
        found = QUERY.match(query.split(" GROUP BY")[0])
        assert found
        names = set(re.findall(r'"(\w+)"', found["what"]))
        assert names <= set(MEASUREMENTS[found["measurement"]].fields)
