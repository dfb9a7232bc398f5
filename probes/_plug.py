"""A metered plug that feeds this board: its settings, its two channels, and JSON that may be anything.

The owner says which plug it is; one that feeds several hosts is `shared` and its joules are not divided.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from probes import Channel, Context, Scope
from probes._files import Trouble
from probes._settings import SettingError, number, only, scope, word, words

KINDS = ("shelly", "tasmota", "zigbee2mqtt")
TIMEOUT_SECONDS = 2.0
KEYS = ("kind", "url", "topic", "component", "scope", "shared", "stale_seconds", "max_watts")
BROKER_KEYS = ("host", "port", "username", "password_file")
"""Of a plug that speaks to another broker than the fleet's; whoever makes the link reads them."""
ENERGY = "energy"
POWER = "power"


@dataclass(frozen=True, slots=True)
class Plug:
    """The `[energy.plug]` table. One of `url` and `topic` is set."""

    kind: str
    url: str
    topic: str
    component: str
    covers: Scope
    shared: tuple[str, ...]
    stale_seconds: float
    max_watts: float

    @property
    def place(self) -> str:
        """Where it is, for ids: without the scheme, without a path."""
        where = self.url.partition("://")[2].partition("/")[0] if self.url else self.topic
        return f"{self.kind}/{where.replace('/', '_')}/{self.component}"


@dataclass(frozen=True, slots=True)
class Reading:
    """What a plug says: joules since some start, watts now, the step of the joules. Any may be missing."""

    joules: float | None
    watts: float | None
    step_joules: float | None = None


def settings(context: Context, kind: str) -> Plug | None:
    """The plug of this kind, None where the configuration has none. Raises SettingError."""
    plug = parsed(context.options, kind)
    if plug is not None and plug.topic and context.mqtt_subscribe is None:
        raise SettingError("energy.plug.topic: there is no broker to hear it from here")
    return plug


def parsed(options: Mapping[str, Mapping[str, object]], kind: str) -> Plug | None:
    """As `settings`, without regard to what is there to hear it with."""
    table = options.get("plug")
    if table is None:
        return None
    said = word(table, "plug", "kind")
    if said not in KINDS:
        raise SettingError(f"energy.plug.kind: {said!r} is none of {', '.join(KINDS)}")
    if said != kind:
        return None
    only(table, "plug", (*KEYS, *BROKER_KEYS))
    url = str(table.get("url", ""))
    topic = str(table.get("topic", ""))
    if bool(url) == bool(topic):
        raise SettingError("energy.plug takes either url (asked over HTTP) or topic (heard over MQTT)")
    return Plug(
        kind=kind,
        url=url.rstrip("/"),
        topic=topic.strip("/"),
        component=word(table, "plug", "component", {"shelly": "switch:0"}.get(kind, "1")),
        covers=scope(table, "plug", "wall"),
        shared=words(table, "plug", "shared"),
        stale_seconds=number(table, "plug", "stale_seconds", 120.0),
        max_watts=number(table, "plug", "max_watts", 4000.0),
    )


def channels(plug: Plug, reading: Reading, *, step_joules: float, window_seconds: float) -> list[Channel]:
    """The counter and the watts of a plug, for what its answer holds."""
    found = []
    both = reading.joules is not None and reading.watts is not None
    note = f"feeds also {', '.join(plug.shared)}: its joules are not divided" if plug.shared else ""
    flags = ("shared-meter",) if plug.shared else ()
    for name, value in ((ENERGY, reading.joules), (POWER, reading.watts)):
        if value is None:
            continue
        counter = name == ENERGY
        found.append(
            Channel(
                id=f"{plug.place}/{name}",
                kind="counter" if counter else "power",
                scope=plug.covers,
                basis="measured",
                relative_uncertainty=0.02,
                source=f"{plug.kind} plug at {plug.url or plug.topic}, {plug.component}",
                resolution_joules=(reading.step_joules or step_joules) if counter else None,
                window_seconds=window_seconds,
                max_watts=plug.max_watts,
                # A restart loses what was not saved: up to a watt-hour, and the counter's own step.
                back_step_joules=3600.0 + (reading.step_joules or step_joules) if counter else 0.0,
                twin=f"{plug.place}/{POWER if counter else ENERGY}" if both else None,
                meter_id=f"{plug.url or plug.topic}/{plug.component}",
                counts_suspend=True,
                note=note,
                flags=flags,
            )
        )
    return found


def decode(body: bytes, where: str) -> dict[str, Any] | Trouble:
    """A JSON object, decimals kept as they were written; anything else is named by how it begins."""
    try:
        found = json.loads(body, parse_float=Decimal, parse_constant=_no_constant)
    except (ValueError, RecursionError):
        start = body[:30].decode("utf-8", "replace").strip()
        return Trouble("invalid", f"{where}: answered {start!r}, which is no JSON")
    return (
        found if isinstance(found, dict) else Trouble("invalid", f"{where}: answered JSON that is no object")
    )


def figure(table: Mapping[str, Any], key: str) -> Decimal | None:
    """A number of a plug's answer; None where it is missing, null or no number."""
    value = table.get(key)
    if isinstance(value, bool) or not isinstance(value, (int, Decimal)):
        return None
    exact = Decimal(value)
    return exact if abs(exact) < 10**15 else None


def step_of(value: Decimal) -> Decimal:
    """The step that the printed decimals allow: 3.185 steps by 0.001."""
    exponent = value.as_tuple().exponent
    return Decimal(1).scaleb(min(exponent, 0)) if isinstance(exponent, int) else Decimal(1)


def _no_constant(said: str) -> None:
    raise ValueError(said)
