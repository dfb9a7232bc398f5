"""Metered plugs over HTTP and MQTT: units, steps, changed figures only, and answers that are no answers."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping

import pytest

from probes import Context, Finding, load
from probes._virtual import VirtualClock
from probes.meter import Energy, Meter
from tests.probes.machines import Broker, Pages

Make = Callable[..., Context]
URL = "http://192.0.2.7"
SWITCH = "/rpc/Switch.GetStatus?id=0"
STATUS10 = "/cm?cmnd=Status%2010"


def context_of(
    machine: Make, kind: str, pages: Pages | None = None, broker: Broker | None = None, **more: object
) -> Context:
    where: dict[str, object] = {"url": URL} if broker is None else {"topic": more.pop("topic", "plug")}
    options = {"plug": {"kind": kind, **where, **more}}
    return machine(options=options, http_get=pages or Pages({}), mqtt_subscribe=broker)


def detect(context: Context, kind: str) -> list[Finding]:
    return load(kind).detect(context)


def opened(context: Context, kind: str) -> Meter:
    meter = Meter(context, [load(kind)])
    meter.open()
    return meter


def status(total: float | None = 7258.589, watts: float | None = 60.0) -> str:
    table: dict[str, object] = {"id": 0}
    if total is not None:
        table["aenergy"] = {"total": total}
    if watts is not None:
        table["apower"] = watts
    return json.dumps(table)


def first(meter: Meter) -> tuple[str | None, str]:
    live = meter.live()
    return live.headline_channel_id, live.channels[0].reason


def test_a_shelly_is_asked_at_both_edges_and_counts_watt_hours(machine: Make, clock: VirtualClock) -> None:
    pages = Pages({SWITCH: status()})
    meter = opened(context_of(machine, "shelly", pages), "shelly")
    start = meter.mark()
    clock.advance(60.0)
    pages.pages[SWITCH] = status(7258.589 + 1.0)
    found = meter.window(start, meter.mark())
    assert found.joules == pytest.approx(3600.0)
    assert found.scope == "wall"
    assert found.resolution_joules == pytest.approx(3.6)
    assert found.meter_id == f"{URL}/switch:0"


@pytest.mark.parametrize(
    ("component", "pages", "joules", "watts"),
    [
        ("pm1:0", {"/rpc/PM1.GetStatus?id=0": status(2.0, 8.0)}, 7200.0, 8.0),
        (
            "em:0",
            {
                "/rpc/EM.GetStatus?id=0": '{"total_act_power": 310.5}',
                "/rpc/EMData.GetStatus?id=0": '{"total_act": 10.0}',
            },
            36000.0,
            310.5,
        ),
        ("gen1", {"/status": '{"meters": [{"power": 4.5, "total": 10}]}'}, 600.0, 4.5),
    ],
)
def test_every_kind_of_shelly_is_read_in_its_own_units(
    machine: Make, component: str, pages: Mapping[str, str], joules: float, watts: float
) -> None:
    context = context_of(machine, "shelly", Pages(pages), component=component)
    (reader,) = load("shelly").open(
        context, [one.channel for one in detect(context, "shelly") if one.channel]
    )
    values = {one.channel_id.rpartition("/")[2]: one.value for one in reader.read()}
    assert values == {"energy": pytest.approx(joules), "power": pytest.approx(watts)}


def run(meter: Meter, clock: VirtualClock, change: Callable[[int], None], seconds: int) -> Energy:
    start = meter.mark()
    for second in range(seconds):
        clock.advance(1.0)
        change(second)
        meter.sample()
    return meter.window(start, meter.mark())


@pytest.mark.parametrize(
    ("after", "joules", "flag"),
    [(544.587, 0.0, "back-step"), (0.0, None, "reset")],
)
def test_a_restarted_plug_steps_back_a_little_or_begins_anew(
    machine: Make, clock: VirtualClock, after: float, joules: float | None, flag: str
) -> None:
    pages = Pages({SWITCH: status(544.587493, None)})
    meter = opened(context_of(machine, "shelly", pages), "shelly")

    def restart(second: int) -> None:
        pages.pages[SWITCH] = status(after, None)

    found = run(meter, clock, restart, 3)
    assert found.joules == (None if joules is None else pytest.approx(joules))
    assert flag in found.flags


def test_a_plug_that_tells_its_joules_once_a_minute_loses_none(machine: Make, clock: VirtualClock) -> None:
    broker = Broker()
    meter = opened(context_of(machine, "shelly", broker=broker), "shelly")
    broker.publish("plug/status/switch:0", status(1000.0, 120.0))
    meter.sample()
    meter.new_run()

    def tell(second: int) -> None:
        if second % 60 == 59:
            counted = {"switch:0": {"aenergy": {"total": 1000.0 + 2.0 * (second + 1) / 60}}}
            broker.publish("plug/events/rpc", json.dumps({"params": counted}))

    found = run(meter, clock, tell, 300)
    assert found.joules == pytest.approx(300 * 120.0)
    assert not found.flags


def test_changed_keys_are_laid_over_the_last_status(machine: Make, clock: VirtualClock) -> None:
    broker = Broker()
    meter = opened(context_of(machine, "shelly", broker=broker, topic="plugs/board"), "shelly")
    broker.publish("plugs/board/status/switch:0", status(10.0, 60.0))
    meter.sample()
    meter.new_run()
    start = meter.mark()
    clock.advance(10.0)
    note = {"method": "NotifyStatus", "params": {"switch:0": {"aenergy": {"total": 10.5}}}}
    broker.publish("plugs/board/events/rpc", json.dumps(note))
    broker.publish("plugs/board/events/rpc", json.dumps({"params": {"wifi": {}}}))
    found = meter.window(start, meter.mark())
    assert (found.channel_id or "").endswith("/energy")
    assert found.joules == pytest.approx(1800.0)


@pytest.mark.parametrize(
    ("answer", "place", "joules", "step"),
    [
        ({"StatusSNS": {"ENERGY": {"Total": 3.185, "Power": 7}}}, "1", 3.185 * 3.6e6, 3600.0),
        ({"StatusSNS": {"ENERGY": {"Total": 3.18512, "Power": 7}}}, "1", 3.18512 * 3.6e6, 36.0),
        ({"StatusSNS": {"ENERGY": {"Total": [1.5, 2.5], "Power": [3, 4]}}}, "2", 9e6, 3600.0),
        ({"StatusSNS": {"ENERGY": {"Total": 3, "Power": 7}}}, "1", 3 * 3.6e6, 3600.0),
    ],
)
def test_a_tasmota_prints_its_own_step(
    machine: Make, answer: object, place: str, joules: float, step: float
) -> None:
    context = context_of(machine, "tasmota", Pages({STATUS10: json.dumps(answer)}), component=place)
    channels = [one.channel for one in detect(context, "tasmota") if one.channel]
    assert channels[0].resolution_joules == pytest.approx(step)
    (reader,) = load("tasmota").open(context, channels)
    assert reader.read()[0].value == pytest.approx(joules)


def test_zigbee2mqtt_repeats_itself_and_only_a_change_is_a_reading(
    machine: Make, clock: VirtualClock
) -> None:
    broker = Broker()
    context = context_of(machine, "zigbee2mqtt", broker=broker, topic="zigbee2mqtt/desk", stale_seconds=100)
    meter = opened(context, "zigbee2mqtt")
    assert first(meter) == (None, "nothing heard on zigbee2mqtt/desk for 0 s")
    state = {"energy": 41.49, "power": 71, "voltage": 243, "current": 0.38, "linkquality": 177}
    broker.publish("zigbee2mqtt/desk", json.dumps(state))
    meter.sample()
    meter.new_run()
    assert meter.live().headline_channel_id == "zigbee2mqtt/zigbee2mqtt_desk/1/power"
    assert meter.live().watts == pytest.approx(71.0)  # not the 92 VA of volts times amperes

    def chatter(second: int) -> None:
        broker.publish("zigbee2mqtt/desk", json.dumps({**state, "linkquality": second % 255}))

    found = run(meter, clock, chatter, 90)
    assert found.joules == pytest.approx(71.0 * 90)
    run(meter, clock, chatter, 20)
    (power,) = [one for one in meter.live().channels if one.channel_id.endswith("power")]
    assert power.status == "stale"
    assert "have not changed for 11" in power.reason


HTML = "<html><body>Login</body></html>"


@pytest.mark.parametrize("kind", ["shelly", "tasmota"])
@pytest.mark.parametrize(
    ("page", "said"),
    [
        (HTML, "which is no JSON"),
        ('{"aenergy": {"tot', "which is no JSON"),
        ("", "which is no JSON"),
        ("[1, 2]", "JSON that is no object"),
        ("{}", "answer has"),
        ('{"apower": NaN}', "which is no JSON"),
        (b"\xff\xfe\x00", "which is no JSON"),
        ("[" * 100_000, "which is no JSON"),
        (None, "404"),
    ],
)
def test_an_answer_that_is_none_is_a_status_with_a_reason(
    machine: Make, kind: str, page: str | bytes | None, said: str
) -> None:
    pages = Pages({} if page is None else {SWITCH: page, STATUS10: page})
    (only,) = detect(context_of(machine, kind, pages), kind)
    assert only.status in ("invalid", "absent")
    assert said in only.reason


def test_a_plug_that_begins_to_answer_html_is_a_gap_and_not_0_joules(
    machine: Make, clock: VirtualClock
) -> None:
    pages = Pages({SWITCH: status(None, 60.0)})
    meter = opened(context_of(machine, "shelly", pages), "shelly")

    def breaks(second: int) -> None:
        pages.pages[SWITCH] = status(None, 60.0) if second < 5 else HTML

    found = run(meter, clock, breaks, 20)
    assert found.joules is None
    assert found.partial_joules == pytest.approx(300.0)
    assert "no JSON" in meter.live().channels[0].reason


def test_a_plug_that_repeats_last_weeks_answer_is_stale(machine: Make, clock: VirtualClock) -> None:
    pages = Pages({SWITCH: status(7258.0, 60.0)})
    meter = opened(context_of(machine, "shelly", pages), "shelly")
    found = run(meter, clock, lambda second: None, 60)
    assert found.joules is None
    assert {one.status for one in meter.live().channels} == {"stale"}
    assert "an old answer" in meter.live().channels[0].reason
    pages.pages[SWITCH] = status(7258.0, 0.0)  # nothing plugged in: nothing to count
    idle = opened(context_of(machine, "shelly", pages), "shelly")
    assert run(idle, clock, lambda second: None, 60).joules == pytest.approx(0.0)


@pytest.mark.parametrize("body", ['{"energy": "many", "power": null}', HTML, "{}", '{"energy": 1e400}', "[]"])
def test_a_message_that_is_none_is_a_status_with_a_reason(machine: Make, body: str) -> None:
    broker = Broker()
    meter = opened(context_of(machine, "zigbee2mqtt", broker=broker, topic="zigbee2mqtt/desk"), "zigbee2mqtt")
    broker.publish("zigbee2mqtt/desk", body)
    meter.sample()
    assert {one.status for one in meter.live().channels} == {"invalid"}
    assert all(one.reason for one in meter.live().channels)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        ({"url": URL}, "energy.plug.kind is missing"),
        ({"kind": "fritz", "url": URL}, "'fritz' is none of shelly, tasmota, zigbee2mqtt"),
        ({"kind": "shelly"}, "takes either url"),
        ({"kind": "shelly", "url": URL, "topic": "x"}, "takes either url"),
        ({"kind": "shelly", "topic": "x"}, "there is no broker to hear it from"),
        ({"kind": "shelly", "url": URL, "component": "lamp:0"}, "'lamp:0' is none of switch:0"),
        ({"kind": "shelly", "url": URL, "scope": "roof"}, "'roof' is none of wall"),
        ({"kind": "shelly", "url": URL, "shared": "nas"}, "'nas' is no list of texts"),
    ],
)
def test_a_bad_plug_table_is_refused_with_its_key(
    machine: Make, options: dict[str, object], said: str
) -> None:
    (only, *_) = detect(machine(options={"plug": options}), "shelly")
    assert (only.status, only.channel) == ("invalid", None)
    assert said in only.reason


def test_a_shared_plug_is_flagged_and_not_divided(machine: Make, clock: VirtualClock) -> None:
    pages = Pages({SWITCH: status(None, 60.0)})
    meter = opened(context_of(machine, "shelly", pages, shared=["nas"]), "shelly")
    found = run(meter, clock, lambda second: None, 3)
    assert found.joules == pytest.approx(180.0)
    assert "shared-meter" in found.flags


def test_no_plug_in_the_configuration_is_nothing_to_say(machine: Make) -> None:
    for kind in ("shelly", "tasmota", "zigbee2mqtt"):
        assert detect(machine(), kind) == []
