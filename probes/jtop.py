"""Jetson rails from jetson-stats' service, by its `jtop` client in a child process; off by default.

`[energy.jtop] enabled = true`. The client changes its process's way of starting others and must match the
service's version, so it never runs here. Rails are added by our own rule: its total counts some twice.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Mapping, Sequence

from probes import Channel, Context, Finding, Reader, Status
from probes._files import Trouble
from probes._jetson import word
from probes._rails_stream import Stream, StreamReader, findings, probe_once

COMMAND = (sys.executable, "-m", "probes._jtop_child")
INTERVAL_SECONDS = 1.0
MILLI = 1e-3
SOCKET = "/run/jtop.sock"
REMEDIES: Mapping[Status, str] = {
    "absent": f"pip install 'edged[jetson]'; in a container also -v {SOCKET}:{SOCKET}",
    "denied": "sudo usermod -aG jtop edged",
    "invalid": "pip install the version of jetson-stats that `jtop --version` names on this board",
    "stale": "sudo systemctl start jtop",
}


class Jtop:
    name = "jtop"

    def detect(self, context: Context) -> list[Finding]:
        if context.options.get(self.name, {}).get("enabled") is not True:
            return []
        rails = probe_once(context, COMMAND, parse)
        if isinstance(rails, Trouble):
            return [Finding(self.name, rails.status, rails.reason, REMEDIES.get(rails.status, ""))]
        return findings(self.name, rails, "jtop", INTERVAL_SECONDS)

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        ids = [channel.id for channel in channels]
        return [StreamReader(Stream(context, COMMAND, parse), self.name, ids)]


def create() -> Jtop:
    return Jtop()


def parse(line: str) -> Mapping[str, float] | Trouble | None:
    """A line of the child: {"rail": {name: {"power": mW, "online": true}}} or {"error", "status"}."""
    try:
        said = json.loads(line)
    except ValueError:
        return None
    if not isinstance(said, dict):
        return None
    if "error" in said:
        status: Status = next((one for one in REMEDIES if one == said.get("status")), "invalid")
        return Trouble(status, str(said["error"])[:300])
    rails = said.get("rail")
    if not isinstance(rails, dict):
        return Trouble("invalid", "jtop names no rails")
    found = {}
    for name, values in rails.items():
        power = values.get("power") if isinstance(values, dict) and values.get("online", True) else None
        if isinstance(power, bool) or not isinstance(power, (int, float)) or word(name) == "NC":
            continue
        if math.isfinite(power) and power >= 0:
            found[word(name)] = power * MILLI
    return found or Trouble("invalid", "jtop shows no rail with a power")
