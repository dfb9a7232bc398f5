"""The one thread that sends: oldest first, until the server has them or says that it never will.

An outage is waited for with growing gaps; a refused batch is halved until a wrong line stands alone.
"""

import logging
import random
import threading
import time
from collections.abc import Callable
from typing import Final, Protocol

from msgspec import Struct, structs

from coordinator.telemetry.generations import Verdict
from coordinator.telemetry.spool import Segment, Spool

LOG = logging.getLogger(__name__)
EVERY_SECONDS: Final = 1.0
LONGEST_GAP_SECONDS: Final = 60.0
MOST_POSTS: Final = 400
"""To find what is wrong in one file; what is still undecided after so many is refused with the rest."""


class Server(Protocol):
    """Takes lines (`server.InfluxServer`)."""

    def write(self, lines: list[str]) -> Verdict: ...


class Sending(Struct, frozen=True):
    """How it goes. `state` is stored, away or settings; `text` says why it is not stored."""

    state: str = "stored"
    text: str = ""
    sent: int = 0
    refused: int = 0
    since_seconds: float | None = None
    """Monotonic second at which sending began to fail."""


class Sender:
    """`start` begins; `close` sends what it can within the time and ends."""

    def __init__(
        self,
        spool: Spool,
        server: Server,
        *,
        clock: Callable[[], float] = time.monotonic,
        gap_seconds: float = 1.0,
    ) -> None:
        self._spool, self._server, self._clock, self._first_gap = spool, server, clock, gap_seconds
        self.now = Sending()
        self._gap = gap_seconds
        self._closing = threading.Event()
        self._last_chance = float("inf")
        self._thread = threading.Thread(target=self._run, name="telemetry", daemon=True)

    def start(self) -> None:
        """Begin to send, in the background."""
        self._thread.start()

    def close(self, seconds: float) -> None:
        """Send on for at most so long; the rest stays in the spool."""
        self._last_chance = self._clock() + seconds
        self._closing.set()
        if self._thread.is_alive():
            self._thread.join(seconds + 0.5)

    def send_all(self) -> float:
        """Send until nothing waits or the server is away; answers how long to wait then."""
        while self._clock() < self._last_chance:
            segment = self._spool.oldest()
            if segment is None:
                return EVERY_SECONDS
            verdict = self._deliver(segment)
            if verdict.kind in ("away", "settings"):
                return self._failed(verdict)
            self._spool.remove(segment)
            self._succeeded()
        return 0.0

    def _run(self) -> None:
        while True:
            try:
                wait = self.send_all()
            except Exception:
                # The next attempt may do better; the lines are on the disk.
                LOG.exception("telemetry: unexpected")
                wait = LONGEST_GAP_SECONDS
            self._spool.sync()
            if self._closing.wait(wait):
                if self._clock() < self._last_chance:
                    self.send_all()
                return

    def _deliver(self, segment: Segment) -> Verdict:
        try:
            lines = segment.lines()
        except FileNotFoundError:
            return Verdict("stored")  # dropped meanwhile, to make room
        except OSError as error:
            LOG.error("telemetry: %s cannot be read: %s", segment.path, error.strerror)
            return Verdict("stored")
        posts = 0
        todo = [lines] if lines else []
        while todo:
            batch = todo.pop()
            if posts >= MOST_POSTS:
                self._refuse(segment, batch, "not sent one by one: too much of this file is refused")
                continue
            verdict = self._server.write(batch)
            posts += 1
            if verdict.kind in ("away", "settings"):
                return verdict
            if verdict.kind == "partial":
                self._lost(segment, verdict)
            elif verdict.kind == "refused" and len(batch) == 1:
                self._refuse(segment, batch, verdict.text)
            elif verdict.kind == "refused":
                middle = len(batch) // 2
                todo += [batch[middle:], batch[:middle]]
        self.now = structs.replace(self.now, sent=self.now.sent + len(lines))
        return Verdict("stored")

    def _lost(self, segment: Segment, verdict: Verdict) -> None:
        LOG.warning("telemetry: %d points are not kept: %s", verdict.lost, verdict.text)
        self._spool.dropped[segment.lane] += verdict.lost
        self.now = structs.replace(self.now, refused=self.now.refused + verdict.lost)

    def _refuse(self, segment: Segment, lines: list[str], why: str) -> None:
        LOG.warning("telemetry: refused: %s: %s", why, lines[0][:300])
        self._spool.refuse(segment.lane, lines, why)
        self.now = structs.replace(self.now, refused=self.now.refused + len(lines))

    def _failed(self, verdict: Verdict) -> float:
        if (verdict.kind, verdict.text) != (self.now.state, self.now.text):
            LOG.warning("telemetry: %s; it waits in %s", verdict.text, self._spool.folder)
        since = self._clock() if self.now.since_seconds is None else self.now.since_seconds
        self.now = structs.replace(self.now, state=verdict.kind, text=verdict.text, since_seconds=since)
        wait = verdict.after_seconds or self._gap * random.uniform(0.5, 1.0)
        self._gap = min(LONGEST_GAP_SECONDS, self._gap * 2)
        return min(LONGEST_GAP_SECONDS, wait)

    def _succeeded(self) -> None:
        if self.now.state != "stored":
            LOG.warning("telemetry: the server takes points again")
        self.now = structs.replace(self.now, state="stored", text="", since_seconds=None)
        self._gap = self._first_gap
