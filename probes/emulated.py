"""A named board's published watts, while it waits and while it trains, over the time it does either.

Measures nothing: it is found only where the configuration names a board to stand in for.
"""

from __future__ import annotations

import threading
from bisect import bisect_right
from collections import deque
from collections.abc import Sequence

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._settings import SettingError, number, scope, word

KEPT = 4096  # stretches of training whose edges are remembered


class Activity:
    """Seconds of training up to an instant: told when training begins and ends, also a little later."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._stretches: deque[tuple[float, float, float]] = deque(maxlen=KEPT)  # begin, end, seconds before
        self._since: float | None = None
        self._seconds = 0.0

    def begin(self, at_seconds: float) -> None:
        """Training runs from this instant of CLOCK_MONOTONIC; said twice, the first holds."""
        with self._lock:
            if self._since is None:
                last = self._stretches[-1][1] if self._stretches else at_seconds
                self._since = max(at_seconds, last)

    def end(self, at_seconds: float) -> None:
        with self._lock:
            if self._since is None:
                return
            until = max(at_seconds, self._since)
            self._stretches.append((self._since, until, self._seconds))
            self._seconds += until - self._since
            self._since = None

    def __call__(self, at_seconds: float) -> float:
        with self._lock:
            if self._since is not None and at_seconds >= self._since:
                return self._seconds + at_seconds - self._since
            index = bisect_right(self._stretches, at_seconds, key=lambda one: one[0])
            if index == 0:
                return self._stretches[0][2] if self._stretches else self._seconds
            begin, end, before = self._stretches[index - 1]
            return before + min(at_seconds, end) - begin


class Emulated:
    name = "emulated"

    def detect(self, context: Context) -> list[Finding]:
        settings = context.options.get(self.name)
        if settings is None:
            return []
        try:
            board = word(settings, "emulated", "board")
            number(settings, "emulated", "wait_watts")
            number(settings, "emulated", "train_watts")
            covers = scope(settings, self.name)
            source = word(settings, "emulated", "source", "given in the configuration")
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        if context.activity is None:
            return [Finding(self.name, "invalid", "an emulated board must be told when it trains")]
        channel = Channel(
            id=f"emulated/{board}",
            kind="model",
            scope=covers,
            basis="emulated",
            relative_uncertainty=0.0,  # exact by definition: published watts times time
            source=source,
        )
        return [Finding(channel.id, "ok", channel=channel)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Emulation(context, channel) for channel in channels]


class Emulation:
    """The integral of a step function, exactly: `wait_watts`, and `train_watts` while training."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, channel: Channel) -> None:
        settings = context.options["emulated"]
        self._context = context
        self._wait_watts = number(settings, "emulated", "wait_watts")
        self._train_watts = number(settings, "emulated", "train_watts")
        self._since = context.clock.monotonic()
        self.channel_ids: tuple[str, ...] = (channel.id,)

    def value_at(self, channel_id: str, monotonic_seconds: float) -> float:
        activity = self._context.activity
        assert activity is not None  # `detect` refused otherwise
        trained = activity(monotonic_seconds) - activity(self._since)
        return self._wait_watts * (monotonic_seconds - self._since) + trained * (
            self._train_watts - self._wait_watts
        )

    def read(self) -> list[Sample]:
        now, boot = self._context.clock.monotonic(), self._context.clock.boottime()
        return [Sample(name, now, boot, max(self.value_at(name, now), 0.0)) for name in self.channel_ids]

    def close(self) -> None: ...


def create() -> Emulated:
    return Emulated()
