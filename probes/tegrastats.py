"""NVIDIA's `tegrastats`, for a Jetson whose INA files cannot be reached (a container, an unknown layout).

It prints current/average per rail in milliwatts; the average runs since the start and is not used.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from probes import Channel, Context, Finding, Reader
from probes._files import Trouble
from probes._jetson import is_jetson
from probes._rails_stream import Stream, StreamReader, findings, probe_once
from probes.ina3221 import find

COMMAND = ("tegrastats", "--interval", "1000")
INTERVAL_SECONDS = 1.0
RAIL = re.compile(r"\b([A-Z][A-Z0-9_]*) (\d+)(?:mW)?/(\d+)(?:mW)?(?=\s|$)")
MILLI = 1e-3


class Tegrastats:
    name = "tegrastats"

    def detect(self, context: Context) -> list[Finding]:
        if find(context):
            return []  # the same sensors, read without a process
        rails = probe_once(context, COMMAND, parse)
        if isinstance(rails, Trouble):
            absent = rails.status == "absent"
            return [] if absent else [Finding(self.name, rails.status, rails.reason)]
        return findings(self.name, rails, "tegrastats", INTERVAL_SECONDS)

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        ids = [channel.id for channel in channels]
        return [StreamReader(Stream(context, COMMAND, parse), self.name, ids)]


def create() -> Tegrastats:
    return Tegrastats()


def parse(line: str) -> Mapping[str, float] | None:
    """Watts by rail; None for a line without a Jetson's rails. `RAM 1/2MB` and `SWAP 0/2MB` are no rails."""
    rails = {name: int(now) * MILLI for name, now, _ in RAIL.findall(line)}
    return rails if is_jetson(rails) else None
