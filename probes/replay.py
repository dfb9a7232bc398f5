"""Plays a recorded trace as a sensor (`[energy.replay] path = FILE`), from the moment the meter opens it.

JSON lines: first the channel ({"channel": "wall", "scope": "wall", "kind": "power", "basis": "measured"}),
then readings ({"seconds": 0.1, "watts": 4.2} or {"seconds": 1, "joules": 12.5}). Flagged `replayed`.
"""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple, cast, get_args

from probes import Basis, Channel, Context, Cost, Finding, Kind, Reader, Sample
from probes._settings import SettingError, number, scope, word

LONGEST_LINES = 5_000_000


class TraceError(ValueError):
    """The text names file, line and what was wrong there."""


class Trace(NamedTuple):
    channel: Channel
    readings: tuple[tuple[float, float], ...]  # seconds since the start, value


class Replay:
    name = "replay"

    def detect(self, context: Context) -> list[Finding]:
        try:
            path = _path(context)
            if path is None:
                return []
            trace = load(path)
        except (TraceError, SettingError) as error:
            return [Finding(self.name, "invalid", str(error))]
        return [Finding(trace.channel.id, "ok", channel=trace.channel)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        path = _path(context)
        return [Player(context, load(path))] if path is not None and channels else []


class Player:
    """Gives at each call what has come due since the last one; after the end it is stale."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, trace: Trace) -> None:
        self._context = context
        self._readings = trace.readings
        self._next = 0
        self._since = context.clock.monotonic()
        self.channel_ids: tuple[str, ...] = (trace.channel.id,)

    def read(self) -> list[Sample]:
        now, boot = self._context.clock.monotonic(), self._context.clock.boottime()
        name = self.channel_ids[0]
        due = []
        while self._next < len(self._readings) and self._since + self._readings[self._next][0] <= now:
            seconds, value = self._readings[self._next]
            at = self._since + seconds
            due.append(Sample(name, at, boot - (now - at), value))
            self._next += 1
        if not due and self._next == len(self._readings):
            due.append(Sample(name, now, boot, None, "stale", "the trace has ended"))
        return due

    def close(self) -> None: ...


def create() -> Replay:
    return Replay()


def load(path: Path) -> Trace:
    """A trace of one file. Raises TraceError."""
    try:
        with path.open(encoding="utf-8") as lines:
            head, *rest = (line for _, line in zip(range(LONGEST_LINES), lines, strict=False) if line.strip())
    except (OSError, UnicodeDecodeError) as error:
        raise TraceError(f"{path}: {error}") from None
    except ValueError:
        raise TraceError(f"{path}: is empty") from None
    table = _object(path, 1, head)
    kind = str(table.get("kind", "power"))
    basis = str(table.get("basis", "measured"))
    if kind not in get_args(Kind) or basis not in get_args(Basis):
        raise TraceError(f"{path}, line 1: kind {kind!r} or basis {basis!r} is not known")
    try:
        covers = scope(table, "replay", "wall")
        channel = Channel(
            id=f"replay/{word(table, 'replay', 'channel', 'trace')}",
            kind=cast("Kind", kind),
            scope=covers,
            basis=cast("Basis", basis),
            relative_uncertainty=number(table, "replay", "relative_uncertainty", 0.02),
            source=f"trace {path.name}",
            flags=("replayed",),
        )
    except SettingError as error:
        raise TraceError(f"{path}, line 1: {error}") from None
    key = "watts" if kind == "power" else "joules"
    readings: list[tuple[float, float]] = []
    for place, line in enumerate(rest, start=2):
        one = _object(path, place, line)
        seconds, value = one.get("seconds"), one.get(key)
        if not _finite(seconds) or not _finite(value):
            raise TraceError(f"{path}, line {place}: seconds and {key} must be numbers")
        if readings and cast("float", seconds) <= readings[-1][0]:
            raise TraceError(f"{path}, line {place}: seconds do not go up")
        readings.append((float(cast("float", seconds)), float(cast("float", value))))
    if not readings:
        raise TraceError(f"{path}: holds no reading")
    return Trace(channel, tuple(readings))


def _object(path: Path, place: int, line: str) -> dict[str, object]:
    try:
        found = json.loads(line)
    except ValueError:
        found = None
    if not isinstance(found, dict):
        raise TraceError(f"{path}, line {place}: {line.strip()[:40]!r} is no JSON object")
    return found


def _finite(value: object) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool) and math.isfinite(value)


def _path(context: Context) -> Path | None:
    table = context.options.get("replay")
    return None if table is None else Path(word(table, "replay", "path"))
