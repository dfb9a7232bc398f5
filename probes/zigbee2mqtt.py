"""A metering plug behind zigbee2mqtt that feeds this board (`[energy.plug] kind = "zigbee2mqtt"`).

The cached state is published again when any part of it changes: a message is no reading, a change is.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from probes import Channel, Context, Finding, Reader
from probes._files import Trouble
from probes._plug import Reading, channels, decode, figure, parsed, settings, step_of
from probes._plug_reader import Heard
from probes._settings import SettingError

KILOWATT_HOUR = 3.6e6
STEP = Decimal("0.01")
REPORT_SECONDS = 60.0  # plugs report on change, or about this often


class Zigbee2Mqtt:
    name = "zigbee2mqtt"

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        plug = parsed(options, self.name)
        if plug is not None and plug.url:
            raise SettingError('energy.plug.url: zigbee2mqtt speaks MQTT; give topic = "zigbee2mqtt/<name>"')

    def detect(self, context: Context) -> list[Finding]:
        try:
            self.check(context.options)
            plug = settings(context, self.name)
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        if plug is None:
            return []
        step = float(STEP) * KILOWATT_HOUR
        made = channels(plug, Reading(0.0, 0.0), step_joules=step, window_seconds=REPORT_SECONDS)
        return [Finding(one.id, "ok", channel=one) for one in made]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        plug = settings(context, self.name)
        if plug is None:
            return []
        wanted = [channel.id for channel in channels]
        return [Heard(context, plug, (plug.topic,), parse, wanted)]


def create() -> Zigbee2Mqtt:
    return Zigbee2Mqtt()


def parse(topic: str, payload: bytes) -> Reading | Trouble:
    found = decode(payload, topic)
    return found if isinstance(found, Trouble) else state(found, topic)


def state(found: Mapping[str, Any], where: str) -> Reading | Trouble:
    """Energy in kilowatt-hours, power in watts; volts times amperes is no power on alternating current."""
    energy, power = figure(found, "energy"), figure(found, "power")
    if energy is None and power is None:
        return Trouble("invalid", f"{where}: the message has neither energy nor power")
    step = None if energy is None else float(min(step_of(energy), STEP)) * KILOWATT_HOUR
    joules = None if energy is None else float(energy) * KILOWATT_HOUR
    return Reading(joules, None if power is None else float(power), step)
