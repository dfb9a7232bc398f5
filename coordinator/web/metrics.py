"""/metrics for Prometheus: the present facts, from the same answers as the page and `status`.

A figure that is not known has no sample: a 0 would be a lie.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Any

Data = Mapping[str, Any]
Column = tuple[str, str, Callable[[Data], Any]]


def exposition(status: Data, boards: list[Data], watts: Data) -> bytes:
    """The text format."""
    from prometheus_client import CollectorRegistry, generate_latest
    from prometheus_client.registry import Collector

    class Present(Collector):
        def collect(self) -> Iterable[Any]:
            yield from _fleet(status)
            yield from _boards(boards, watts)

    registry = CollectorRegistry()
    registry.register(Present())
    return generate_latest(registry)


def _fleet(status: Data) -> Iterable[Any]:
    from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily

    fleet, run, link = status["fleet"], status.get("run"), status["link"]
    last = fleet.get("last") or {}
    yield _gauge(
        "edged_broker_up", "1 while the coordinator is connected to the broker", link["stage"] == "up"
    )
    if run is not None:
        labels = {"run": run["run"]}
        for name, text, value in (
            ("edged_round", "Number of the running round", run["round"]),
            ("edged_rounds", "Rounds of the run", run["settings"]["rounds"]),
            ("edged_accepted_samples", "Samples accepted in all", run["accepted"]),
            ("edged_weight_energy", "w_e", fleet.get("w_e")),
            ("edged_weight_time", "w_t", fleet.get("w_t")),
            (
                "edged_makespan_seconds",
                "Longest compute window of the last round",
                last.get("makespan_seconds"),
            ),
        ):
            yield _gauge(name, text, value, labels)
    joules = GaugeMetricFamily(
        "edged_round_joules", "Compute joules of the last round, by basis", labels=["basis"]
    )
    for basis, value in (last.get("compute_joules_by_basis") or {}).items():
        joules.add_metric([basis], value)
    yield joules
    pushes = fleet.get("pushes") or {}
    for name, text, column in (
        ("edged_board_updates", "Asynchronous updates taken in, in this run", "updates"),
        ("edged_board_updates_too_old", "Asynchronous updates refused for their age, in this run", "dropped"),
    ):
        counter = CounterMetricFamily(name, text, labels=["board"])
        for board, pushed in pushes.items():
            counter.add_metric([board], pushed[column])
        yield counter
    alerts = GaugeMetricFamily("edged_alert", "1 for each alert that holds", labels=["kind", "board"])
    for alert in status["alerts"]:
        alerts.add_metric([alert["kind"], alert["board"]], 1)
    yield alerts
    odd = CounterMetricFamily("edged_odd", "Refused, repeated or odd things", labels=["board", "what"])
    for board, counters in status["counters"].items():
        for name, count in counters.items():
            odd.add_metric([board, name], count)
    yield odd
    telemetry = status.get("telemetry")
    if telemetry is not None:
        yield _gauge("edged_spool_bytes", "Time series that wait to be sent", telemetry["spool_bytes"])
        yield _gauge("edged_telemetry_up", "1 while the server takes points", telemetry["state"] == "stored")
        dropped = CounterMetricFamily(
            "edged_spool_dropped", "Points that will never be sent", labels=["lane"]
        )
        for lane, count in telemetry["dropped"].items():
            dropped.add_metric([lane], count)
        yield dropped


def _boards(boards: list[Data], watts: Data) -> Iterable[Any]:
    from prometheus_client.core import GaugeMetricFamily

    columns: tuple[Column, ...] = (
        ("edged_board_up", "1 while the board's link is up", lambda row: row["link"] == "up"),
        ("edged_board_share_samples", "Samples of its present order", lambda row: row.get("samples")),
        ("edged_board_cost", "c_i of the policy", lambda row: row.get("cost")),
        ("edged_board_seconds_per_sample", "Moving average", lambda row: row.get("seconds_per_sample")),
        ("edged_board_temperature_celsius", "Now", lambda row: watts.get(row["board"], {}).get("celsius")),
    )
    for name, text, of in columns:
        family = GaugeMetricFamily(name, text, labels=["board"])
        for row in boards:
            if (value := of(row)) is not None:
                family.add_metric([row["board"]], float(value))
        yield family
    based: tuple[Column, ...] = (
        ("edged_board_watts", "Headline scope, now", lambda row: watts.get(row["board"], {}).get("watts")),
        ("edged_board_joules_per_sample", "Moving average", lambda row: row.get("joules_per_sample")),
    )
    for name, text, of in based:
        family = GaugeMetricFamily(name, text, labels=["board", "basis", "scope"])
        for row in boards:
            if (value := of(row)) is not None:
                family.add_metric(
                    [row["board"], row.get("basis") or "", row.get("scope") or ""], float(value)
                )
        yield family


def _gauge(name: str, text: str, value: float | bool | None, labels: Mapping[str, str] | None = None) -> Any:
    from prometheus_client.core import GaugeMetricFamily

    labels = labels or {}
    family = GaugeMetricFamily(name, text, labels=list(labels))
    if value is not None:
        family.add_metric(list(labels.values()), float(value))
    return family
