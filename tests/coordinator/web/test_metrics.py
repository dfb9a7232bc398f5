"""What Prometheus is told: in its own format, without what is not known."""

from prometheus_client.parser import text_string_to_metric_families

from coordinator.telemetry.settings import TelemetryOptions
from coordinator.telemetry.sink import Sink
from edged.messages import Birth
from tests.coordinator.telemetry.takers import Taker
from tests.coordinator.web.paged import Paged


def test_metrics_are_in_prometheus_own_format_and_leave_out_what_is_unknown(paged: Paged) -> None:
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
