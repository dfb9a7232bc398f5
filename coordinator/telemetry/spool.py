"""Lines on the disk before they are sent: two lanes of files, bounded by what may be dropped.

Rounds are never dropped; the oldest watts are, by whole files, and counted. A killed process loses nothing
that `append` took; a line that was cut off by the kill is left out at reading. It sends nothing.
"""

import contextlib
import os
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

Lane = Literal["rounds", "power"]
LANES: Final[tuple[Lane, ...]] = ("rounds", "power")
SEGMENT_BYTES: Final = 256 * 1024
REFUSED_FILE: Final = "refused.lp"
REFUSED_BYTES: Final = 1 << 20
MOST_HELD_BYTES: Final = 8 << 20
"""Round lines that a full disk does not take wait in memory up to so much; the run's store has them, too."""


class Segment(Struct, frozen=True):
    """A file that is not written any more."""

    lane: Lane
    path: Path
    size_bytes: int

    def lines(self) -> list[str]:
        """Its whole lines. Raises OSError."""
        text = self.path.read_text(errors="replace")
        return [line for line in text[: text.rfind("\n") + 1].split("\n") if line]


class Spool:
    """`append` may be called from one thread while another takes segments and removes them."""

    def __init__(self, folder: Path, limit_bytes: int, segment_bytes: int = SEGMENT_BYTES) -> None:
        self.folder, self._limit, self._segment_bytes = folder, limit_bytes, segment_bytes
        self.dropped: dict[Lane, int] = {"rounds": 0, "power": 0}
        """Lines that will never be sent."""
        self.problem = ""
        """Why the disk takes nothing; empty when it does."""
        self._held: list[bytes] = []
        self._lock = threading.Lock()
        folder.mkdir(parents=True, exist_ok=True)
        found = sorted(path for path in folder.glob("*.lp") if path.name != REFUSED_FILE)
        self._sealed: list[Segment] = [
            Segment(lane, path, path.stat().st_size)
            for path in found
            for lane in LANES
            if path.name.startswith(f"{lane}-")
        ]
        numbers = [
            int(path.stem.partition("-")[2]) for path in found if path.stem.partition("-")[2].isdigit()
        ]
        self._next = max(numbers, default=0) + 1
        self._open: dict[Lane, tuple[int, Path, int]] = {}

    @property
    def size_bytes(self) -> int:
        """What waits to be sent."""
        with self._lock:
            return self._size()

    def append(self, lane: Lane, lines: Sequence[str]) -> None:
        """Keep the lines; on return they survive a kill. Never raises for the disk: `problem` says it."""
        if not lines:
            return
        text = "".join(f"{line}\n" for line in lines).encode()
        with self._lock:
            if lane == "rounds":
                self._held.append(text)
                while sum(map(len, self._held)) > MOST_HELD_BYTES:
                    self.dropped["rounds"] += self._held.pop(0).count(b"\n")
                while self._held and self._written("rounds", self._held[0]):
                    self._held.pop(0)
            elif not self._written(lane, text):
                self.dropped[lane] += len(lines)
            while self._size() > self._limit and self._drop_power():
                pass

    def oldest(self) -> Segment | None:
        """What is to be sent next: rounds before watts, each in their order. None: nothing waits."""
        with self._lock:
            for lane in LANES:
                sealed = next((segment for segment in self._sealed if segment.lane == lane), None)
                if sealed is None and lane in self._open:
                    sealed = self._seal(lane)
                if sealed is not None:
                    return sealed
            return None

    def remove(self, segment: Segment) -> None:
        """It has been sent, or never will be."""
        with self._lock:
            with contextlib.suppress(OSError):
                segment.path.unlink()
            self._sealed = [other for other in self._sealed if other.path != segment.path]

    def refuse(self, lane: Lane, lines: Sequence[str], why: str) -> None:
        """Lines that no server will take: counted, and the newest of them kept to be looked at."""
        self.dropped[lane] += len(lines)
        path = self.folder / REFUSED_FILE
        text = "".join(f"# {' '.join(why.split())[:500]}\n{line}\n" for line in lines)
        try:
            old = path.read_text(errors="replace") if path.exists() else ""
            path.write_text((old + text)[-REFUSED_BYTES:])
        except OSError as error:
            self.problem = f"{path}: {error.strerror}"

    def sync(self) -> None:
        """Have what was appended survive a power cut. Raises nothing."""
        with self._lock:
            files = [os.dup(descriptor) for descriptor, _, _ in self._open.values()]
        for descriptor in files:
            try:
                os.fdatasync(descriptor)
            except OSError as error:
                self.problem = f"{self.folder}: {error.strerror}"
            finally:
                os.close(descriptor)

    def close(self) -> None:
        """Give the files up; what waits is there at the next start."""
        with self._lock:
            for lane in list(self._open):
                self._seal(lane)

    def _size(self) -> int:
        return sum(segment.size_bytes for segment in self._sealed) + sum(s for _, _, s in self._open.values())

    def _written(self, lane: Lane, text: bytes) -> bool:
        while True:
            error = self._write(lane, text)
            if error is None:
                self.problem = ""
                return True
            # Watts that nobody has seen yet are worth less than a round.
            if lane == "power" or not self._drop_power():
                self.problem = f"{self.folder}: {error.strerror}"
                return False

    def _write(self, lane: Lane, text: bytes) -> OSError | None:
        try:
            if lane not in self._open:
                path = self.folder / f"{lane}-{self._next:012d}.lp"
                self._open[lane] = (os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND, 0o640), path, 0)
                self._next += 1
            descriptor, path, size = self._open[lane]
            written = os.write(descriptor, text)
        except OSError as error:
            return error
        if written < len(text):
            # Half a line must not run into the next one.
            os.ftruncate(descriptor, size)
            return OSError(28, "No space left on device")
        self._open[lane] = (descriptor, path, size + written)
        if size + written >= self._segment_bytes:
            self._seal(lane)
        return None

    def _seal(self, lane: Lane) -> Segment | None:
        descriptor, path, size = self._open.pop(lane)
        os.close(descriptor)
        if not size:
            path.unlink(missing_ok=True)  # it was made when the disk was full
            return None
        self._sealed.append(Segment(lane, path, size))
        return self._sealed[-1]

    def _drop_power(self) -> bool:
        """Remove the oldest file of watts; False where there is none."""
        if not any(segment.lane == "power" for segment in self._sealed) and "power" in self._open:
            self._seal("power")
        for segment in self._sealed:
            if segment.lane == "power":
                with contextlib.suppress(OSError):
                    self.dropped["power"] += segment.path.read_bytes().count(b"\n")
                    segment.path.unlink()
                self._sealed.remove(segment)
                return True
        return False
