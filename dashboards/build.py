#!/usr/bin/env python3
"""Builds dashboards/json from the panels beside it by Grafana's own builders; InfluxQL only, one datasource.

    python dashboards/build.py            # writes json/*.json, which are committed
It needs grafana-foundation-sdk (Python 3.11), users do not. Nothing here is read at run time.
"""

import json
import sys
from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from grafana_foundation_sdk.builders import barchart, piechart, stat, table, timeseries, xychart
from grafana_foundation_sdk.builders import dashboard as builders
from grafana_foundation_sdk.builders.common import StackingConfig, VizLegendOptions
from grafana_foundation_sdk.cog.encoder import JSONEncoder
from grafana_foundation_sdk.cog.variants import Dataquery
from grafana_foundation_sdk.models import common, dashboard

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))

from dashboards.board import BOARD  # noqa: E402
from dashboards.energy import ENERGY  # noqa: E402
from dashboards.health import HEALTH  # noqa: E402
from dashboards.learning import LEARNING  # noqa: E402
from dashboards.live import LIVE  # noqa: E402
from dashboards.queries import FLEET, Panel  # noqa: E402

UID = "edged-influxdb"
SOURCE = {"type": "influxdb", "uid": UID}


@dataclass
class InfluxQL(Dataquery):
    """A query as Grafana's InfluxDB datasource stores it; the SDK has no class for it."""

    query: str
    alias: str = ""
    format: str = "time_series"
    ref_id: str = "A"

    def to_json(self) -> dict[str, object]:
        """What goes into the dashboard."""
        own = {"refId": self.ref_id, "datasource": SOURCE, "rawQuery": True, "query": self.query}
        return {**own, "resultFormat": self.format, **({"alias": self.alias} if self.alias else {})}


class Built:
    """A value that is its own builder."""

    def __init__(self, value: Any) -> None:
        self._value = value

    def build(self) -> Any:
        """The value."""
        return self._value


DASHBOARDS = {
    "fleet-live": ("edged: fleet live", LIVE),
    "energy": ("edged: energy", ENERGY),
    "board": ("edged: board", BOARD),
    "learning": ("edged: learning", LEARNING),
    "health": ("edged: health", HEALTH),
}
VARIABLES = (
    ("fleet", 'SHOW TAG VALUES FROM "fleet" WITH KEY = "fleet"', False),
    ("silo", f'SHOW TAG VALUES FROM "power" WITH KEY = "silo" WHERE {FLEET}', True),
    ("board", f'SHOW TAG VALUES FROM "power" WITH KEY = "board" WHERE {FLEET} AND "silo" =~ /^$silo$/', True),
    ("run", f'SHOW TAG VALUES FROM "round" WITH KEY = "run" WHERE {FLEET}', True),
)
ANNOTATIONS = (
    ("Weights and policy", "blue", "\"kind\" = 'weights' OR \"kind\" = 'policy'"),
    ("Alerts", "red", "\"kind\" = 'alert begins'"),
)


KINDS: dict[str, Any] = {
    "timeseries": timeseries.Panel,
    "stat": stat.Panel,
    "table": table.Panel,
    "barchart": barchart.Panel,
    "piechart": piechart.Panel,
    "xychart": xychart.Panel,
}


def panel(wanted: Panel) -> Any:
    """A Grafana panel."""
    made: Any = KINDS[wanted.kind]()
    made.title(wanted.title).unit(wanted.unit).datasource(dashboard.DataSourceRef("influxdb", UID))
    made.span(wanted.width).height(wanted.height).description(wanted.text or wanted.title)
    kind = "table" if wanted.rows else "time_series"
    queries = (InfluxQL(text, alias, kind, "ABCDEFGH"[i]) for i, (text, alias) in enumerate(wanted.queries))
    made.targets([Built(query) for query in queries])
    if wanted.kind == "timeseries":
        made.line_interpolation(common.LineInterpolation.LINEAR).fill_opacity(20 if wanted.stacked else 0)
        made.span_nulls(True).show_points(common.VisibilityMode.AUTO)
        legend = VizLegendOptions().display_mode(common.LegendDisplayMode.LIST)
        made.legend(legend.placement(common.LegendPlacement.BOTTOM).show_legend(True))
        if wanted.stacked:
            made.stacking(StackingConfig().mode(common.StackingMode.NORMAL))
    if wanted.band:
        made.override_by_name("low", [dashboard.DynamicConfigValue("custom.lineWidth", 0)])
        ends = (("custom.lineWidth", 0), ("custom.fillBelowTo", "low"), ("custom.fillOpacity", 20))
        made.override_by_name("high", [dashboard.DynamicConfigValue(name, value) for name, value in ends])
    if wanted.by_run:
        options = {"fields": ["run"], "keepFields": False}
        made.transformations([dashboard.DataTransformerConfig(id_val="partitionByValues", options=options)])
    return made


def built(name: str, title: str, panels: Iterable[Panel]) -> dict[str, Any]:
    """One dashboard as JSON."""
    made = builders.Dashboard(title).uid(f"edged-{name}").tags(["edged"]).refresh("5s").time("now-30m", "now")
    made.timezone("browser").tooltip(dashboard.DashboardCursorSync.CROSSHAIR).editable()
    for variable, query, many in VARIABLES:
        own = (
            builders.QueryVariable(variable).query(query).datasource(dashboard.DataSourceRef("influxdb", UID))
        )
        own.refresh(dashboard.VariableRefresh.ON_TIME_RANGE_CHANGED).sort(
            dashboard.VariableSort.ALPHABETICAL_ASC
        )
        made.with_variable(own.multi(many).include_all(many).all_value(".*") if many else own)
    for wanted in panels:
        made.with_panel(panel(wanted))
    found: dict[str, Any] = json.loads(JSONEncoder(sort_keys=True, indent=1).encode(made.build()))
    for variable in found["templating"]["list"]:
        # The SDK writes what only interval variables have; Grafana's types refuse it.
        for key in ("auto", "auto_count", "auto_min"):
            variable.pop(key, None)
    found["annotations"] = {"list": [annotation(*one) for one in ANNOTATIONS]}
    return found


def annotation(name: str, colour: str, where: str) -> dict[str, Any]:
    """Marks on the time axis, out of the events."""
    query = f'SELECT "text" FROM "event" WHERE ({where}) AND {FLEET} AND $timeFilter'
    # The fields that the InfluxDB datasource reads are not in the SDK's class.
    own = {"name": name, "enable": True, "iconColor": colour, "datasource": SOURCE}
    return {**own, "target": {"query": query, "rawQuery": True, "textColumn": "text", "refId": "Anno"}}


def all_built() -> dict[str, str]:
    """Name and text of every file."""
    found = {name: built(name, title, panels) for name, (title, panels) in DASHBOARDS.items()}
    return {f"{name}.json": json.dumps(one, indent=1, sort_keys=True) + "\n" for name, one in found.items()}


def main() -> None:
    """Write them."""
    for name, text in all_built().items():
        (HERE / "json" / name).write_text(text)


if __name__ == "__main__":
    main()
