"""A Tasmota plug that feeds this board (`[energy.plug] kind = "tasmota"`): by HTTP or tele/X/SENSOR.

ENERGY.Total counts kilowatt-hours with three decimals by default (EnergyRes up to five); its clock has no
zone and is not used. Devices with several channels give arrays: `component` is the channel, from 1.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from decimal import Decimal
from typing import Any

from probes import Channel, Context, Finding, Reader
from probes._files import Trouble
from probes._plug import TIMEOUT_SECONDS, Plug, Reading, channels, decode, figure, parsed, settings, step_of
from probes._plug_reader import Asked, Heard, fetched
from probes._settings import SettingError

KILOWATT_HOUR = 3.6e6
STEP = Decimal("0.001")
REFRESH_SECONDS = 1.0
TELE_PERIOD_SECONDS = 300.0  # the default between two messages


class Tasmota:
    name = "tasmota"

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        plug = parsed(options, self.name)
        if plug is not None:
            _place(plug)

    def detect(self, context: Context) -> list[Finding]:
        try:
            plug = settings(context, self.name)
            if plug is None:
                return []
            _place(plug)
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        found: Reading | Trouble = Reading(0.0, 0.0) if plug.topic else ask(context, plug)
        if isinstance(found, Trouble):
            return [Finding(plug.place, found.status, found.reason)]
        window = TELE_PERIOD_SECONDS if plug.topic else REFRESH_SECONDS
        step = float(STEP) * KILOWATT_HOUR
        made = channels(plug, found, step_joules=step, window_seconds=window)
        return [Finding(one.id, "ok", channel=one) for one in made]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        plug = settings(context, self.name)
        if plug is None:
            return []
        wanted = [channel.id for channel in channels]
        if not plug.topic:
            return [Asked(context, lambda: ask(context, plug), wanted)]

        def parse(topic: str, payload: bytes) -> Reading | Trouble:
            found = decode(payload, topic)
            return found if isinstance(found, Trouble) else energy(found, _place(plug), topic)

        return [Heard(context, plug, (f"tele/{plug.topic}/SENSOR",), parse, wanted)]


def create() -> Tasmota:
    return Tasmota()


def ask(context: Context, plug: Plug) -> Reading | Trouble:
    """One status over HTTP."""
    url = f"{plug.url}/cm?cmnd=Status%2010"
    body = fetched(context, url, TIMEOUT_SECONDS)
    found = body if isinstance(body, Trouble) else decode(body, url)
    return found if isinstance(found, Trouble) else energy(found, _place(plug), url)


def energy(answer: Mapping[str, Any], place: int, where: str) -> Reading | Trouble:
    """The ENERGY object of an answer, also inside StatusSNS."""
    inner = answer.get("StatusSNS")
    table = (inner if isinstance(inner, dict) else answer).get("ENERGY")
    if not isinstance(table, dict):
        return Trouble("invalid", f"{where}: the answer has no ENERGY: does this plug meter?")
    total, watts = figure(_of(table, "Total", place), "it"), figure(_of(table, "Power", place), "it")
    if total is None and watts is None:
        return Trouble("invalid", f"{where}: ENERGY has neither Total nor Power for channel {place + 1}")
    # A total that happens to end in zeros prints fewer decimals: the default step is the coarsest believed.
    step = None if total is None else float(min(step_of(total), STEP)) * KILOWATT_HOUR
    joules = None if total is None else float(total) * KILOWATT_HOUR
    return Reading(joules, None if watts is None else float(watts), step)


def _of(table: Mapping[str, Any], key: str, place: int) -> dict[str, Any]:
    value = table.get(key)
    if isinstance(value, list):
        value = value[place] if place < len(value) else None
    return {"it": value}


def _place(plug: Plug) -> int:
    if not plug.component.isdigit() or plug.component == "0":
        raise SettingError(f"energy.plug.component: {plug.component!r} is no channel number from 1")
    return int(plug.component) - 1
