"""Reads every device at its own pace, so that one that hangs or is slow stops no other.

Cheap readers share one thread; a dear one has its own, and so has from then on one that did not come back.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from probes import Clock, Reader, Sample, Status

Take = Callable[[Sequence[Sample], float], None]


@dataclass(eq=False)
class Source:
    """One reader and how often it is due."""

    reader: Reader
    base_period_seconds: float
    period_seconds: float = 0.0
    due_at: float = 0.0
    stuck: bool = False

    def __post_init__(self) -> None:
        self.period_seconds = self.base_period_seconds


def read(source: Source, clock: Clock, take: Take) -> None:
    """One reading into `take`; an exception out of a probe is a status like any other trouble."""
    try:
        take(source.reader.read(), source.period_seconds)
    except Exception as error:  # a foreign probe may raise or answer anything, and the meter must go on
        reason = f"{type(error).__name__}: {error}"
        take(blanks(source, clock, "invalid", reason), source.period_seconds)


def blanks(source: Source, clock: Clock, status: Status, reason: str) -> list[Sample]:
    """A sample without a value for each channel of the source, as of now."""
    now, boot = clock.monotonic(), clock.boottime()
    return [Sample(name, now, boot, None, status, reason) for name in source.reader.channel_ids]


@dataclass(eq=False)
class Lane:
    """One thread and the sources that it reads in turn."""

    sources: list[Source]
    clock: Clock
    take: Take
    wake: threading.Condition = field(default_factory=threading.Condition)
    current: Source | None = None
    since: float = 0.0
    wanted: int = 0  # readings of everything asked for so far, and done
    done: int = 0
    cpu_seconds: float = 0.0
    stopping: bool = False
    thread: threading.Thread | None = None

    def start(self) -> None:
        self.thread = threading.Thread(target=self.run, name="edged-probe", daemon=True)
        self.thread.start()

    def run(self) -> None:
        while True:
            with self.wake:
                if self.stopping:
                    return
                now = self.clock.monotonic()
                wanted = self.wanted
                asked = wanted > self.done
                due = [one for one in self.sources if asked or one.due_at <= now]
                if not due:
                    next_at = min((one.due_at for one in self.sources), default=now + 1.0)
                    self.wake.wait(max(next_at - now, 0.001))
                    continue
            for source in due:
                self._read(source)
            with self.wake:
                self.done = wanted
                self.cpu_seconds = time.thread_time()
                self.wake.notify_all()

    def _read(self, source: Source) -> None:
        with self.wake:
            if source not in self.sources:  # moved to another lane while this one hung
                return
            self.current, self.since = source, self.clock.monotonic()
        read(source, self.clock, self.take)
        with self.wake:
            self.current = None
            source.stuck = False
            now = self.clock.monotonic()
            # On a grid of its period that all sources share, so that the thread wakes once for many; readings
            # that a slow one has missed are not caught up with.
            source.due_at = (now // source.period_seconds + 1) * source.period_seconds

    def ask(self) -> int:
        with self.wake:
            self.wanted += 1
            self.wake.notify_all()
            return self.wanted

    def wait(self, number: int, until: float) -> bool:
        """Whether the reading asked for came by `until`."""
        with self.wake:
            while self.done < number:
                left = until - self.clock.monotonic()
                if left <= 0 or not self.wake.wait(left):
                    return self.done >= number
            return True

    def stop(self) -> None:
        with self.wake:
            self.stopping = True
            self.wake.notify_all()


class Sampler:
    """The lanes. Needs the real clock once started; before, `read_now` reads in the caller's thread."""

    def __init__(self, clock: Clock, take: Take, hang_seconds: float) -> None:
        self._clock = clock
        self._take = take
        self._hang_seconds = hang_seconds
        self._lanes: list[Lane] = []
        self._lock = threading.Lock()
        self._started = False
        self._gone_cpu_seconds = 0.0
        self.sources: list[Source] = []

    def add(self, source: Source) -> None:
        with self._lock:
            self.sources.append(source)
            if not self._started:
                return
            cheap = next((lane for lane in self._lanes if self._shared(lane)), None)
            if source.reader.cost == "cheap" and cheap is not None:
                with cheap.wake:
                    cheap.sources.append(source)
                    cheap.wake.notify_all()
            else:
                self._open_lane([source])

    def remove(self, source: Source) -> None:
        with self._lock:
            if source in self.sources:
                self.sources.remove(source)
            for lane in list(self._lanes):
                with lane.wake:
                    if source in lane.sources:
                        lane.sources.remove(source)
                    empty = not lane.sources
                if empty:
                    lane.stop()
                    self._lanes.remove(lane)
                    self._gone_cpu_seconds += lane.cpu_seconds
        if not source.stuck:
            source.reader.close()

    def start(self) -> None:
        with self._lock:
            self._started = True
            cheap = [source for source in self.sources if source.reader.cost == "cheap"]
            if cheap:
                self._open_lane(cheap)
            for source in self.sources:
                if source.reader.cost == "dear":
                    self._open_lane([source])

    def read_now(self, patience: Callable[[Source], float]) -> None:
        """Read everything once; each lane is waited for as long as its most important source deserves."""
        if not self._started:
            for source in list(self.sources):
                read(source, self._clock, self._take)
            return
        asked = [(lane, lane.ask()) for lane in list(self._lanes)]
        start = self._clock.monotonic()
        for lane, number in asked:
            seconds = max((patience(source) for source in list(lane.sources)), default=0.0)
            if not lane.wait(number, start + seconds):
                self.rescue()
        # Sources that stood behind one that hung have a new lane now.
        for lane in [lane for lane in list(self._lanes) if all(lane is not old for old, _ in asked)]:
            lane.wait(lane.ask(), self._clock.monotonic() + self._hang_seconds)

    def rescue(self) -> None:
        """Give the sources behind a hung one a thread of their own, and say so of the hung one."""
        now = self._clock.monotonic()
        for lane in list(self._lanes):
            with lane.wake:
                source = lane.current
                limit = self._hang_seconds * (1 if source is None or source.reader.cost == "cheap" else 20)
                if source is None or now - lane.since <= limit:
                    continue
                first = not source.stuck
                source.stuck = True
                others = [one for one in lane.sources if one is not source]
                lane.sources = [source]
                waited = now - lane.since
            if first or int(waited) % 10 == 0:
                reason = f"the read has not come back for {waited:.1f} s"
                self._take(blanks(source, self._clock, "stale", reason), source.period_seconds)
            if others:
                with self._lock:
                    self._open_lane(others)

    def cpu_seconds(self) -> float:
        return self._gone_cpu_seconds + sum(lane.cpu_seconds for lane in list(self._lanes))

    def stop(self, patience_seconds: float = 1.0) -> None:
        """End the threads; one that hangs in a read is left behind as a daemon."""
        with self._lock:
            lanes, self._lanes, self._started = self._lanes, [], False
        for lane in lanes:
            self._gone_cpu_seconds += lane.cpu_seconds
            lane.stop()
        until = time.monotonic() + patience_seconds
        for lane in lanes:
            if lane.thread is not None and not any(source.stuck for source in lane.sources):
                lane.thread.join(max(until - time.monotonic(), 0.0))
        for source in self.sources:
            if not source.stuck:
                source.reader.close()

    def _open_lane(self, sources: list[Source]) -> None:
        lane = Lane(list(sources), self._clock, self._take)
        self._lanes.append(lane)
        lane.start()

    @staticmethod
    def _shared(lane: Lane) -> bool:
        return not lane.stopping and any(
            source.reader.cost == "cheap" and not source.stuck for source in lane.sources
        )
