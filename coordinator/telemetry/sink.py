"""What the coordinator's loop tells of itself becomes points in the spool, whatever a server does.

Points of a time when the clock was not set wait, and are stamped once it is, by how long ago they were made.
"""

import logging
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from coordinator.telemetry.chronicle import Board, Chronicle
from coordinator.telemetry.lines import Writer, is_set
from coordinator.telemetry.schema import Point, SchemaError
from coordinator.telemetry.sender import Sender, Sending, Server
from coordinator.telemetry.settings import TelemetryOptions
from coordinator.telemetry.spool import Spool
from edged.messages import Power

LOG = logging.getLogger(__name__)
FOLDER: Final = "telemetry"
MOST_WAITING: Final = 20_000
"""Points without a clock."""


class Sink:
    """All calls from the loop. `board` answers for a board's silo and channels."""

    def __init__(
        self,
        fleet: str,
        folder: Path,
        options: TelemetryOptions,
        server: Server,
        board: Callable[[str], Board],
        *,
        clock: Callable[[], float] = time.monotonic,
        wall: Callable[[], float] = time.time,
    ) -> None:
        self.options = options
        self.chronicle = Chronicle(fleet, board)
        self.spool = Spool(folder / FOLDER, options.spool_bytes)
        self._sender = Sender(self.spool, server)
        self._writer = Writer()
        self._clock, self._wall = clock, wall
        self._unstamped: list[tuple[float, Point]] = []
        self._powered: dict[str, float] = {}
        self._watts: list[str] = []
        self.faults = 0
        """Events that no point could be made of."""

    @property
    def sending(self) -> Sending:
        """How it goes with the server."""
        return self._sender.now

    def start(self) -> None:
        """Begin to send."""
        self._sender.start()

    def see(self, what: str, value: Any) -> None:
        """Something happened; never raises. Watts are on the disk at the end of the loop's turn."""
        if what == "turn":
            self.flush()
            return
        if isinstance(value, Power) and self._too_soon(value.board):
            return
        try:
            self.write(self.chronicle.points(what, value))
        except (SchemaError, KeyError, TypeError, ValueError) as error:
            self.faults += 1
            if self.faults == 1 or self.faults % 1000 == 0:
                LOG.exception(
                    "telemetry: no point could be made of %s (%d so far): %s", what, self.faults, error
                )

    def write(self, points: list[Point]) -> None:
        """Stamp the points by now and keep them."""
        now, wall = self._clock(), self._wall()
        if not is_set(wall):
            self._unstamped += [(now, point) for point in points]
            if len(self._unstamped) > MOST_WAITING:
                lost = len(self._unstamped) - MOST_WAITING
                self.spool.dropped["power"] += lost
                del self._unstamped[:lost]
            return
        if self._unstamped:
            late, self._unstamped = self._unstamped, []
            for then, point in late:
                self._keep([_late(point)], wall - (now - then))
        self._keep(points, wall)

    def flush(self) -> None:
        """Write the watts of this turn at once: a thousand boards' one by one cost more than all else."""
        lines, self._watts = self._watts, []
        self.spool.append("power", lines)

    def close(self) -> None:
        """Send what can be sent within the configured time; the rest is sent after the next start."""
        self.flush()
        self._sender.close(self.options.close_seconds)
        self.spool.close()

    def _keep(self, points: list[Point], wall: float) -> None:
        stamp = round(wall * 1e9)
        lines = [
            (point.measurement, self._writer.line(structs.replace(point, nanoseconds=stamp)))
            for point in points
        ]
        self.spool.append("rounds", [line for name, line in lines if name != "power"])
        self._watts += [line for name, line in lines if name == "power"]

    def _too_soon(self, board: str) -> bool:
        """Thinned to one in `power_seconds`, with some slack for boards that are early."""
        now = self._clock()
        if now - self._powered.get(board, float("-inf")) < self.options.power_seconds * 0.95:
            return True
        self._powered[board] = now
        return False


def _late(point: Point) -> Point:
    return structs.replace(point, fields={**point.fields, "stamped_late": True})
