"""Jetson rails that a child process prints line by line: the last line, and how old it is."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping, Sequence

from probes import Channel, CommandError, Context, Cost, Finding, Sample
from probes._files import Trouble
from probes._jetson import total

STALE_SECONDS = 5.0
FIRST_SECONDS = 4.0  # a child has this long for its first line

Parse = Callable[[str], Mapping[str, float] | Trouble | None]


class Stream:
    """A child and the rails of its last line. `parse`: watts by rail, a trouble, or None for other lines."""

    def __init__(self, context: Context, command: Sequence[str], parse: Parse) -> None:
        self._context = context
        self._parse = parse
        self._news = threading.Condition()
        self._first: Mapping[str, float] | Trouble | None = None
        self._last: Mapping[str, float] | Trouble | None = None
        self._at = context.clock.monotonic()
        self._boot = context.clock.boottime()
        self._stop = context.stream(command, self._line)

    def first(self) -> Mapping[str, float] | Trouble:
        """The first line that says something."""
        with self._news:
            self._news.wait_for(lambda: self._first is not None, FIRST_SECONDS)
            return Trouble("stale", "it prints nothing") if self._first is None else self._first

    def last(self) -> tuple[Mapping[str, float] | Trouble, float, float]:
        """(rails, when they came by MONOTONIC, and by BOOTTIME); a trouble when the last line is old."""
        with self._news:
            now = self._context.clock.monotonic()
            if self._last is None or (now - self._at > STALE_SECONDS and not isinstance(self._last, Trouble)):
                boot = self._context.clock.boottime()
                return Trouble("stale", f"no line for {now - self._at:.0f} s"), now, boot
            return self._last, self._at, self._boot

    def close(self) -> None:
        self._stop()

    def _line(self, said: str | None) -> None:
        found = Trouble("absent", "the process ended") if said is None else self._parse(said)
        if found is None:
            return
        with self._news:
            if said is None and isinstance(self._last, Trouble):
                return  # what it said before it ended is the better reason
            self._first = self._first or found
            self._last = found
            self._at, self._boot = self._context.clock.monotonic(), self._context.clock.boottime()
            self._news.notify_all()


class StreamReader:
    """Channels of a stream: `<probe>/<rail>`, and `<probe>/module` for the documented sum."""

    cost: Cost = "cheap"

    def __init__(self, stream: Stream, probe: str, wanted: Sequence[str]) -> None:
        self._stream = stream
        self._probe = probe
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        rails, at, boot = self._stream.last()
        made = []
        for name in self.channel_ids:
            value = watts(rails, name.partition("/")[2])
            if isinstance(value, Trouble):
                made.append(Sample(name, at, boot, None, value.status, value.reason))
            else:
                made.append(Sample(name, at, boot, value))
        return made

    def close(self) -> None:
        self._stream.close()


def watts(rails: Mapping[str, float] | Trouble, name: str) -> float | Trouble:
    """One rail, or the sum that makes the module."""
    if isinstance(rails, Trouble):
        return rails
    if name in rails:
        return rails[name]
    rule = total(rails)
    if name == "module" and rule is not None:
        return sum(rails[one] for one in rule.rails)
    return Trouble("absent", f"no rail {name} in the last line")


def findings(probe: str, rails: Mapping[str, float], source: str, window_seconds: float) -> list[Finding]:
    """The rails and their total, as channels."""
    rule = total(rails)
    found = []
    for rail in rails:
        whole = rule is not None and rule.rails == (rail,)
        channel = Channel(
            id=f"{probe}/{rail}",
            kind="power",
            scope=rule.scope if whole and rule is not None else "rail",
            basis="measured",
            relative_uncertainty=0.025,  # behind the same rail's own file
            source=f"{source}: {rail}",
            window_seconds=window_seconds,
            headline=whole,
            note="" if whole or rule is None else f"part of {'+'.join(rule.rails)}: never added to it",
        )
        found.append(Finding(channel.id, "ok", channel=channel))
    if rule is not None and len(rule.rails) > 1:
        channel = Channel(
            id=f"{probe}/module",
            kind="power",
            scope=rule.scope,
            basis="measured",
            relative_uncertainty=0.025,
            source=f"{source}: {' + '.join(rule.rails)}, which hang in parallel",
            window_seconds=window_seconds,
            contains=tuple(f"{probe}/{one}" for one in rule.rails),
        )
        found.append(Finding(channel.id, "ok", channel=channel))
    return found


def probe_once(context: Context, command: Sequence[str], parse: Parse) -> Mapping[str, float] | Trouble:
    """Start the child, take its first answer, end it."""
    try:
        stream = Stream(context, command, parse)
    except CommandError as error:
        return Trouble("absent", str(error))
    try:
        return stream.first()
    finally:
        stream.close()
