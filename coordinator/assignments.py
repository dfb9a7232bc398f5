"""One board's order within a round: its standing, its deadline and when the order is said again. Pure.

A deadline is three times the predicted time, moved by progress up to a hard limit; orders are repeated
after 2, 4 … 30 s until the board's state names them (ARCHITECTURE 6, 7.2).
"""

from typing import Literal

from msgspec import Struct

from edged.groups import Readiness
from edged.messages import Join, Order, Piece, Report

Status = Literal[
    "issued", "working", "reported", "stored", "attending", "accepted", "refused", "abandoned", "expired"
]
OPEN: frozenset[str] = frozenset({"issued", "working", "reported", "stored"})
MAX_GAP_SECONDS = 30.0
NEW_BOARD_FACTOR = 10.0
"""A board that was never timed gets this many times the shortest deadline."""


class Assignment(Struct):
    """Times are those of the coordinator's monotonic clock."""

    board: str
    boot: str
    message: Order
    samples: int
    pieces: tuple[Piece, ...]
    status: Status
    issued_seconds: float
    deadline_seconds: float
    limit_seconds: float
    floor_seconds: float
    next_send_seconds: float = 0.0
    gap_seconds: float = 2.0
    acknowledged: bool = False
    samples_done: int = 0
    chunks_held: int = 0
    since_seconds: float = 0.0
    sent_seconds: float | None = None
    """When it first went out, never shifted; None after a restart, when nobody knows."""
    report: Report | None = None
    joules: float | None = None
    """Of its last telemetry within this order, for the case that nothing more comes."""
    joules_basis: str = ""
    reason: str = ""
    silo: str = ""
    """Of a rank: the silo whose group it is in."""
    ready: Readiness | None = None
    join: Join | None = None
    gone: bool = False
    """A rank that was lost after all steps were done: nothing more is to be heard of it."""
    after: str = ""
    """Of asynchronous updates: the board's accepted order before, as its message says."""
    age: int = 0
    """Of an asynchronous update: versions it was old when it was applied or dropped, and how it counted."""
    factor: float = 1.0
    scale: float = 1.0

    @property
    def order(self) -> str:
        """The order's id."""
        return str(getattr(self.message, "order", ""))

    @property
    def say(self) -> Order | Join:
        """What is to be said to the board again until it has it."""
        return self.message if self.join is None else self.join

    @property
    def open(self) -> bool:
        """True while the round waits for it."""
        return self.status in OPEN

    def settle(self, status: Status, reason: str, now: float) -> None:
        """Give it a standing."""
        self.status, self.reason, self.since_seconds = status, reason, now

    def shift(self, seconds: float) -> None:
        """Move all its times, because the clock stood still for it."""
        self.issued_seconds += seconds
        self.deadline_seconds += seconds
        self.limit_seconds += seconds
        self.next_send_seconds += seconds
        self.since_seconds += seconds

    def confirm(self, now: float) -> None:
        """The board has named the order."""
        self.acknowledged = True
        if self.status == "issued":
            self.settle("working", "", now)

    def due(self, now: float) -> bool:
        """True when the order is to be said again; the next gap is twice as long."""
        if self.acknowledged or not (self.open or self.status == "attending") or now < self.next_send_seconds:
            return False
        self.next_send_seconds = now + self.gap_seconds
        self.gap_seconds = min(MAX_GAP_SECONDS, 2 * self.gap_seconds)
        return True

    def repeat_at(self, now: float) -> None:
        """Say the order again at once: the board may not have it."""
        self.acknowledged, self.next_send_seconds, self.gap_seconds = False, now, 2.0

    def progress(self, samples_done: int, chunks_held: int, now: float) -> None:
        """What the board has done so far moves its deadline, never beyond the limit."""
        samples_done = min(samples_done, self.samples)  # a lost rank has none any more, and repeats itself
        if samples_done > self.samples_done:
            self.samples_done = samples_done
            pace = (now - self.issued_seconds) / self.samples_done
            self.alive(now, 3 * pace * (self.samples - self.samples_done))
        elif chunks_held > self.chunks_held:
            self.alive(now, 0.0)
        self.chunks_held = max(self.chunks_held, chunks_held)

    def alive(self, now: float, remaining_seconds: float) -> None:
        """The board moves: it has at least the shortest deadline from now."""
        moved = now + max(self.floor_seconds, remaining_seconds)
        self.deadline_seconds = min(self.limit_seconds, max(self.deadline_seconds, moved))

    def doing(self) -> str:
        """What the round waits for, in words."""
        if self.status == "issued":
            return "to take its order"
        if self.status == "reported":
            return "its update"
        if self.status == "stored":
            return "its update to be applied"
        if self.ready is not None and self.join is None:
            return "the other ranks to be ready"
        if self.samples_done >= self.samples > 0:
            return f"its report, {self.samples} samples are trained"
        if self.samples_done:
            return f"training, {self.samples_done} of {self.samples} samples"
        if self.silo and self.join is None:
            return f"to be ready for the other ranks, {self.samples} samples"
        return f"{self.samples} samples"


def deadline(now: float, predicted_seconds: float | None, floor: float, limit: float) -> tuple[float, float]:
    """(deadline, hard limit) of an order that goes out now."""
    generous = NEW_BOARD_FACTOR * floor if predicted_seconds is None else max(floor, 3 * predicted_seconds)
    return now + min(generous, limit), now + limit
