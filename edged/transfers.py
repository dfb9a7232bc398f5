"""Files in chunks: read one to send it, collect one that arrives, and keep the sending window.

Nothing is decoded here, no more than the window is held in memory, and a file counts only when its SHA-256 is
right. It knows neither topics nor links.
"""

import hashlib
import os
import shutil
from collections import deque
from collections.abc import Callable, Iterable
from pathlib import Path

from edged.messages import Manifest
from edged.ranges import Range, clip

CHUNK_BYTES = 256 * 1024
HEADER_BYTES = 1024
LARGEST_FILE_BYTES = 4 * 1024**3
MOST_CHUNKS = 1 << 20


class TransferError(ValueError):
    """A manifest that cannot be true here, or a file that did not become what its manifest says."""


def chunk_bytes_for(max_packet_bytes: int) -> int:
    """The default chunk, or what fits into the broker's largest packet beside the topic."""
    if max_packet_bytes <= HEADER_BYTES:
        raise TransferError(
            f"the broker takes packets of {max_packet_bytes:,} bytes: too small for any chunk"
        )
    return min(CHUNK_BYTES, max_packet_bytes - HEADER_BYTES)


def describe(path: Path, chunk_bytes: int = CHUNK_BYTES) -> Manifest:
    """Length and hash of a file, read in pieces. Raises OSError, TransferError for an empty file."""
    digest = hashlib.sha256()
    length_bytes = 0
    with path.open("rb") as file:
        while piece := file.read(1 << 20):
            digest.update(piece)
            length_bytes += len(piece)
    if length_bytes == 0:
        raise TransferError(f"{path}: empty, there is nothing to transfer")
    return Manifest(length_bytes=length_bytes, chunk_bytes=chunk_bytes, sha256=digest.hexdigest())


class Outgoing:
    """A file to be sent. Stays readable when the path is replaced or removed meanwhile."""

    def __init__(self, path: Path, manifest: Manifest) -> None:
        self.manifest = manifest
        self._path = path
        self._descriptor = os.open(path, os.O_RDONLY)

    def chunk(self, number: int) -> bytes:
        """Chunk `number`. Raises IndexError, or TransferError if the file shrank."""
        manifest = self.manifest
        if not 0 <= number < manifest.chunks:
            raise IndexError(f"{self._path}: chunk {number} of {manifest.chunks}")
        start = number * manifest.chunk_bytes
        expected = min(manifest.chunk_bytes, manifest.length_bytes - start)
        payload = os.pread(self._descriptor, expected, start)
        if len(payload) != expected:
            raise TransferError(f"{self._path}: became shorter while it was sent (chunk {number})")
        return payload

    def close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


class Sender:
    """Sends granted chunks, at most `window` unacknowledged. `publish(number, payload)` gives a token."""

    def __init__(self, outgoing: Outgoing, publish: Callable[[int, bytes], int], window: int = 8) -> None:
        self._outgoing = outgoing
        self._publish = publish
        self._window = window
        self._todo: deque[Range] = deque()
        self._unacknowledged: dict[int, int] = {}
        self.sent_bytes = 0

    @property
    def idle(self) -> bool:
        """All that was granted is with the broker."""
        return not self._todo and not self._unacknowledged

    def grant(self, ranges: Iterable[Range]) -> None:
        """Send these, too; what lies outside the file is ignored."""
        self._todo.extend(clip(ranges, self._outgoing.manifest.chunks))
        self._fill()

    def settled(self, token: int) -> bool:
        """A chunk was delivered or refused: send the next. False if the token is not one of this transfer.

        Refused chunks are not sent again; the receiver asks for what it lacks.
        """
        if self._unacknowledged.pop(token, None) is None:
            return False
        self._fill()
        return True

    def _fill(self) -> None:
        while self._todo and len(self._unacknowledged) < self._window:
            start, stop = self._todo.popleft()
            if start + 1 < stop:
                self._todo.appendleft((start + 1, stop))
            payload = self._outgoing.chunk(start)
            self._unacknowledged[self._publish(start, payload)] = start
            self.sent_bytes += len(payload)


class Incoming:
    """A file that arrives in chunks, in any order, twice if need be, at `<path>.part` until it is complete.

    Raises TransferError at once for a manifest that is too large for the limit or the disk.
    """

    def __init__(self, path: Path, manifest: Manifest, *, limit_bytes: int = LARGEST_FILE_BYTES) -> None:
        if not 1 <= manifest.length_bytes <= limit_bytes:
            raise TransferError(
                f"{path.name}: {manifest.length_bytes:,} bytes announced, 1 to {limit_bytes:,} are taken"
            )
        if manifest.chunk_bytes < 1 or manifest.chunks > MOST_CHUNKS:
            raise TransferError(
                f"{path.name}: {manifest.chunks:,} chunks announced, {MOST_CHUNKS:,} are taken"
            )
        free = shutil.disk_usage(path.parent).free
        if free < manifest.length_bytes:
            raise TransferError(
                f"{path.name}: needs {manifest.length_bytes:,} bytes, {path.parent} has {free:,} free"
            )
        self.path = path
        self.manifest = manifest
        self.duplicates = 0
        self.refused = 0
        self.received_chunks = 0
        self.received_bytes = 0
        self._part = path.with_name(path.name + ".part")
        self._descriptor = os.open(self._part, os.O_RDWR | os.O_CREAT | os.O_TRUNC, 0o600)
        self._present = bytearray(manifest.chunks)
        self._digest = hashlib.sha256()
        self._hashed = 0

    @property
    def complete(self) -> bool:
        return self.received_chunks == self.manifest.chunks

    def write(self, number: int, payload: bytes) -> bool:
        """Take a chunk. False, and counted, for a duplicate, a wrong length or a number not of this file.

        Raises OSError when the disk does not take it.
        """
        manifest = self.manifest
        if not 0 <= number < manifest.chunks or self._descriptor < 0:
            self.refused += 1
            return False
        start = number * manifest.chunk_bytes
        if len(payload) != min(manifest.chunk_bytes, manifest.length_bytes - start):
            self.refused += 1
            return False
        if self._present[number]:
            self.duplicates += 1
            return False
        written = 0
        while written < len(payload):
            written += os.pwrite(self._descriptor, payload[written:], start + written)
        self._present[number] = 1
        self.received_chunks += 1
        self.received_bytes += len(payload)
        if number == self._hashed:
            self._digest.update(payload)
            self._hashed += 1
        return True

    def missing(self) -> list[Range]:
        """What has not arrived, as ranges [start, stop)."""
        ranges: list[Range] = []
        start = self._present.find(0)
        while start >= 0:
            stop = self._present.find(1, start)
            if stop < 0:
                stop = self.manifest.chunks
            ranges.append((start, stop))
            start = self._present.find(0, stop)
        return ranges

    def finish(self) -> Path:
        """Check the hash, then give the file its name; a wrong one is removed. Raises TransferError."""
        if not self.complete:
            lacking = self.manifest.chunks - self.received_chunks
            raise TransferError(f"{self.path.name}: {lacking} of {self.manifest.chunks} chunks are missing")
        while self._hashed < self.manifest.chunks:
            start = self._hashed * self.manifest.chunk_bytes
            self._digest.update(os.pread(self._descriptor, self.manifest.chunk_bytes, start))
            self._hashed += 1
        if self._digest.hexdigest() != self.manifest.sha256:
            self.discard()
            raise TransferError(
                f"{self.path.name}: the SHA-256 is not the announced one; the file is discarded"
            )
        self._close()
        self._part.replace(self.path)
        return self.path

    def discard(self) -> None:
        """Give up and remove what came. Harmless after `finish`."""
        if self._descriptor >= 0:
            self._close()
            self._part.unlink(missing_ok=True)

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1
