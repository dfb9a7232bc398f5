"""Reads a plug: asked over HTTP at each reading, or heard over MQTT and judged by its last change."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence

from probes import Context, Cost, HttpError, Sample
from probes._files import Trouble
from probes._plug import ENERGY, Plug, Reading

OLD_STEPS = 3.0  # that a live counter would have taken
OLD_JOULES = 20.0


class Asked:
    """`ask` gets one reading over HTTP; the answer is true of some instant while it was on its way."""

    cost: Cost = "dear"

    def __init__(self, context: Context, ask: Callable[[], Reading | Trouble], wanted: Sequence[str]) -> None:
        self._context = context
        self._ask = ask
        self._counted: tuple[float, float] | None = None  # the joules it last showed, and since when
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        clock = self._context.clock
        before = clock.monotonic()
        found = self._fresh(self._ask(), before)
        after, boot = clock.monotonic(), clock.boottime()
        return samples(self.channel_ids, found, (before + after) / 2, boot, after - before)

    def close(self) -> None: ...

    def _fresh(self, found: Reading | Trouble, now: float) -> Reading | Trouble:
        """A plug that shows watts and does not count them repeats an old answer."""
        if isinstance(found, Trouble) or found.joules is None:
            return found
        if self._counted is None or self._counted[0] != found.joules:
            self._counted = (found.joules, now)
            return found
        seconds = now - self._counted[1]
        unseen = (found.watts or 0.0) * seconds
        if unseen <= OLD_JOULES + OLD_STEPS * (found.step_joules or 0.0):
            return found
        return Trouble(
            "stale", f"shows {found.watts:g} W but has counted nothing for {seconds:.0f} s: an old answer"
        )


class Heard:
    """Messages of a topic. A cached state that is said again is no new reading: only changed figures are."""

    cost: Cost = "cheap"

    def __init__(
        self,
        context: Context,
        plug: Plug,
        topics: Sequence[str],
        parse: Callable[[str, bytes], Reading | Trouble | None],
        wanted: Sequence[str],
    ) -> None:
        assert context.mqtt_subscribe is not None
        self._context = context
        self._plug = plug
        self._parse = parse
        self._lock = threading.Lock()
        self._last: Reading | Trouble | None = None
        self._changed_at = context.clock.monotonic()
        self._pending: list[Sample] = []
        self.channel_ids: tuple[str, ...] = tuple(wanted)
        self._stops = [context.mqtt_subscribe(topic, self._hear) for topic in topics]

    def read(self) -> list[Sample]:
        """What came since the last call; a figure that holds is given as of now, an old one is stale."""
        with self._lock:
            pending, self._pending = self._pending, []
            last, age = self._last, self._context.clock.monotonic() - self._changed_at
        now, boot = self._context.clock.monotonic(), self._context.clock.boottime()
        if last is None:
            stale = Trouble("stale", f"nothing heard on {self._plug.topic} for {age:.0f} s")
            return pending + samples(self.channel_ids, stale, now, boot, 0.0)
        if not isinstance(last, Trouble) and age > self._plug.stale_seconds:
            last = Trouble("stale", f"{self._plug.topic}: its figures have not changed for {age:.0f} s")
        return pending + samples(self.channel_ids, last, now, boot, 0.0)

    def close(self) -> None:
        for stop in self._stops:
            stop()

    def _hear(self, topic: str, payload: bytes) -> None:
        found = self._parse(topic, payload)
        if found is None:
            return
        now, boot = self._context.clock.monotonic(), self._context.clock.boottime()
        with self._lock:
            if found == self._last and not isinstance(found, Trouble):
                return
            self._last, self._changed_at = found, now
            self._pending += samples(self.channel_ids, found, now, boot, 0.0)
            del self._pending[:-256]


def samples(
    ids: Sequence[str], found: Reading | Trouble, at: float, boot: float, delay: float
) -> list[Sample]:
    """The two channels of a plug from one reading, or why there is none."""
    if isinstance(found, Trouble):
        return [Sample(name, at, boot, None, found.status, found.reason) for name in ids]
    made = []
    for name in ids:
        value = found.joules if name.endswith(f"/{ENERGY}") else found.watts
        if value is None:
            made.append(Sample(name, at, boot, None, "invalid", "the plug's answer lacks it"))
        elif value < 0:
            made.append(
                Sample(name, at, boot, None, "invalid", f"{value:g}: feeds back, this is no consumption")
            )
        else:
            made.append(Sample(name, at, boot, value, delay_seconds=delay))
    return made


def fetched(context: Context, url: str, timeout_seconds: float) -> bytes | Trouble:
    """The body of an answer; a plug that does not answer is `absent`."""
    try:
        return context.http_get(url, timeout_seconds)
    except HttpError as error:
        return Trouble("absent", str(error))
