"""A recorded machine with its meter open; what is only told as layout or payload is made real first."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes import Context
from probes._recorded import lay_out
from probes._virtual import VirtualClock
from probes.meter import Found, Meter, Options
from tests.probes.machines import Broker, Pages, nvml

PLUG = {"meter-shelly-gen2": "shelly", "meter-tasmota": "tasmota", "meter-z2m": "zigbee2mqtt"}


class Machine:
    """A recorded machine with its meter open; what is only told as layout or payload is made real first."""

    def __init__(self, record: dict[str, Any], folder: Path) -> None:
        self.record = record
        self.folder = folder
        self.clock = VirtualClock()
        self.broker = Broker()
        self.context = self._context()
        # Nothing recorded hangs; however slow the machine, nothing is to be given up.
        self.meter = Meter(self.context, options=Options(hang_seconds=60.0, detect_seconds=60.0))
        self.meter.open()
        for topic, payload in self._messages():
            self.broker.publish(topic, payload)
        self.meter.sample()
        self.meter.new_run()

    @property
    def headline(self) -> str:
        return self.meter.live().headline_channel_id or ""

    def found(self, part: str) -> list[Found]:
        """Channels and places whose id has this as a part of its own."""
        word = re.compile(rf"(^|[/+ (:]){re.escape(part)}($|[/+ ):])", re.I)
        return [one for one in self.meter.channels() if word.search(one.source)]

    def watts(self) -> float | None:
        return self.meter.live().watts

    def _context(self) -> Context:
        kind = str(self.record["kind"])
        options: dict[str, dict[str, object]] = {}
        record = dict(self.record)
        layout: Mapping[str, str] = record.get("layout", {}) if kind.startswith("ina") else {}
        for path, told in layout.items():
            content = {"enable": "0\n", "sensor_name": "rail\n"}.get(Path(path).name, "0.000000\n")
            record.setdefault("files", {})[path] = content if "%" in told else f"{told}\n"
            if path.endswith("_label") and "%" not in told:
                record["files"][path.replace("_label", "_input")] = "5000\n"
                record["files"][re.sub(r"in(\d)_label", r"curr\1_input", path)] = "1000\n"
                record["files"][str(Path(path).parent / "name")] = "ina3221\n"
        if kind in PLUG:
            place = (
                {"topic": "zigbee2mqtt/plug"} if PLUG[kind] == "zigbee2mqtt" else {"url": "http://plug.test"}
            )
            options["plug"] = {"kind": PLUG[kind], **place}
        context = replace(lay_out(record, self.folder, options), clock=self.clock)
        pages = {}
        for asked, answer in record.get("payloads", {}).items():
            match = re.search(r"GET (\S+)", asked)
            if match is not None:
                pages[match.group(1)] = json.dumps(answer)
        loader = nvml(millijoules=5_000_000, milliwatts=70_000) if kind == "nvml" else context.load_module
        return replace(context, http_get=Pages(pages), mqtt_subscribe=self.broker, load_module=loader)

    def _messages(self) -> list[tuple[str, str]]:
        return [
            ("zigbee2mqtt/plug", json.dumps(answer))
            for asked, answer in self.record.get("payloads", {}).items()
            if asked.startswith("MQTT zigbee2mqtt/")
        ]
