"""A plug that speaks over a real broker is heard by the meter, also after the broker was gone."""

from __future__ import annotations

import json
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.broker import Broker
from edged.link import LinkConfig
from edged.paho_link import PahoLink
from edged.plugs import PlugLink, link_config
from probes import load
from probes._outside import real_context
from probes.meter import Meter

PATIENCE_SECONDS = 30.0
TOPIC = "zigbee2mqtt/desk"
pytestmark = pytest.mark.server


def until(true: Callable[[], bool], poke: Callable[[], object]) -> None:
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, "it did not come"
        poke()
        time.sleep(0.05)


def test_a_plug_is_heard_and_heard_again_after_the_broker_was_gone(mosquitto: Broker) -> None:
    board = LinkConfig(mosquitto.host, mosquitto.port, "edged-main-pi4", first_backoff_seconds=0.1)
    plugs = PlugLink(board, {})
    options = {"plug": {"kind": "zigbee2mqtt", "topic": TOPIC}}
    context = replace(real_context(Path("/nowhere"), options), mqtt_subscribe=plugs.subscribe)
    meter = Meter(context, [load("zigbee2mqtt")])
    meter.start()
    speaker = PahoLink(replace(board, client_id="plug"))
    speaker.start()
    watts = [70]

    def speak() -> None:
        watts[0] += 1
        speaker.publish(TOPIC, json.dumps({"power": watts[0], "energy": 41.49}).encode(), qos=0)

    def power() -> float | None:
        return next((one.watts for one in meter.live().channels if one.channel_id.endswith("/power")), None)

    until(lambda: (power() or 0) > 70, speak)
    heard = watts[0]
    mosquitto.kill()
    mosquitto.start()
    until(lambda: (power() or 0) > heard + 1, speak)
    meter.close()
    plugs.close()
    speaker.close()


@pytest.mark.parametrize(
    ("plug", "said"),
    [
        ({"host": 5}, "host 5 and port 1883 are no address"),
        ({"host": "home", "port": "x"}, "port 'x'"),
        ({"host": "home", "username": 7}, "energy.plug.username: 7 is no text"),
        ({"host": "home", "port": 0}, "need a host and a port"),
    ],
)
def test_an_address_that_is_none_is_refused(plug: dict[str, object], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        link_config(LinkConfig("fleet", 1883, "edged-main-pi4"), plug)


def test_a_plug_may_speak_on_a_broker_of_its_own() -> None:
    board = LinkConfig("fleet", 8883, "edged-main-pi4", tls=True, username="pi4")
    other = link_config(board, {"host": "home.lan", "username": "ha"})
    assert (other.host, other.port, other.tls, other.username) == ("home.lan", 1883, False, "ha")
    assert link_config(board, {}) == replace(board, client_id="edged-main-pi4-meter")
