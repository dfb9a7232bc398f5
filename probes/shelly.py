"""A Shelly plug that feeds this board (`[energy.plug] kind = "shelly"`): Gen2 and later, Gen1 by HTTP.

Gen2: aenergy.total in watt-hours, apower in watts; Gen1: total in watt-minutes, lost at each restart.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from probes import Channel, Context, Finding, Reader
from probes._files import Trouble
from probes._plug import TIMEOUT_SECONDS, Plug, Reading, channels, decode, figure, parsed, settings
from probes._plug_reader import Asked, Heard, fetched
from probes._settings import SettingError

WATT_HOUR = 3600.0
WATT_MINUTE = 60.0
STEP_JOULES = 0.001 * WATT_HOUR
REFRESH_SECONDS = 1.0
METHODS = {"switch": "Switch", "pm1": "PM1", "em": "EM", "em1": "EM1"}


class Shelly:
    name = "shelly"

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        plug = parsed(options, self.name)
        if plug is not None:
            component(plug)

    def detect(self, context: Context) -> list[Finding]:
        try:
            plug = settings(context, self.name)
            if plug is None:
                return []
            component(plug)
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        step = WATT_MINUTE if plug.component == "gen1" else STEP_JOULES
        if plug.topic:
            # What it has is known once it speaks; the answers of its kind have both.
            made = channels(plug, Reading(0.0, 0.0), step_joules=step, window_seconds=REFRESH_SECONDS)
            return [Finding(one.id, "ok", channel=one) for one in made]
        found = ask(context, plug)
        if isinstance(found, Trouble):
            return [Finding(plug.place, found.status, found.reason)]
        made = channels(plug, found, step_joules=step, window_seconds=REFRESH_SECONDS)
        return [Finding(one.id, "ok", channel=one) for one in made]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        plug = settings(context, self.name)
        if plug is None:
            return []
        wanted = [channel.id for channel in channels]
        if not plug.topic:
            return [Asked(context, lambda: ask(context, plug), wanted)]
        topics = (f"{plug.topic}/status/{plug.component}", f"{plug.topic}/events/rpc")
        return [Heard(context, plug, topics, overlay(plug), wanted)]


def create() -> Shelly:
    return Shelly()


def component(plug: Plug) -> tuple[str, int]:
    """`switch:0` as (kind, number). Raises SettingError."""
    kind, _, place = plug.component.partition(":")
    if plug.component == "gen1":
        return "gen1", 0
    if kind not in METHODS or not place.isdigit():
        raise SettingError(
            f"energy.plug.component: {plug.component!r} is none of switch:0, pm1:0, em:0, em1:0, gen1"
        )
    return kind, int(place)


def ask(context: Context, plug: Plug) -> Reading | Trouble:
    """One status over HTTP; a three-phase meter keeps its energy in another component."""
    kind, place = component(plug)
    if kind == "gen1":
        answer = _get(context, f"{plug.url}/status")
        return answer if isinstance(answer, Trouble) else gen1(answer, plug.url)
    answer = _get(context, f"{plug.url}/rpc/{METHODS[kind]}.GetStatus?id={place}")
    if isinstance(answer, Trouble) or kind in ("switch", "pm1"):
        return answer if isinstance(answer, Trouble) else gen2(answer, plug.url)
    data = _get(context, f"{plug.url}/rpc/{METHODS[kind]}Data.GetStatus?id={place}")
    return data if isinstance(data, Trouble) else gen2({**answer, **data}, plug.url)


def gen2(answer: Mapping[str, Any], where: str) -> Reading | Trouble:
    """Switch, PM1 and EM statuses."""
    energy = answer.get("aenergy")
    total = figure(energy, "total") if isinstance(energy, dict) else None
    for key in ("total_act", "total_act_energy"):
        total = figure(answer, key) if total is None else total
    watts = figure(answer, "apower")
    for key in ("total_act_power", "act_power"):
        watts = figure(answer, key) if watts is None else watts
    if total is None and watts is None:
        return Trouble("invalid", f"{where}: the answer has neither energy nor power")
    joules = None if total is None else float(total) * WATT_HOUR
    return Reading(joules, None if watts is None else float(watts), STEP_JOULES)


def gen1(answer: Mapping[str, Any], where: str) -> Reading | Trouble:
    """`/status` of a first-generation plug: meters[0], or emeters[0] in watt-hours."""
    for key, unit in (("meters", WATT_MINUTE), ("emeters", WATT_HOUR)):
        meters = answer.get(key)
        if isinstance(meters, list) and meters and isinstance(meters[0], dict):
            total, watts = figure(meters[0], "total"), figure(meters[0], "power")
            if total is not None or watts is not None:
                joules = None if total is None else float(total) * unit
                return Reading(joules, None if watts is None else float(watts), unit)
    return Trouble("invalid", f"{where}: the answer has no meters")


def overlay(plug: Plug) -> Callable[[str, bytes], Reading | Trouble | None]:
    """NotifyStatus carries changed keys only: they are laid over the last full status."""
    status: dict[str, Any] = {}

    def parse(topic: str, payload: bytes) -> Reading | Trouble | None:
        found = decode(payload, topic)
        if isinstance(found, Trouble):
            return found
        if topic.endswith("/events/rpc"):
            parts = found.get("params")
            changed = parts.get(plug.component) if isinstance(parts, dict) else None
            if not isinstance(changed, dict):
                return None
            found = changed
        status.update(found)
        return gen2(status, topic)

    return parse


def _get(context: Context, url: str) -> dict[str, Any] | Trouble:
    body = fetched(context, url, TIMEOUT_SECONDS)
    return body if isinstance(body, Trouble) else decode(body, url)
