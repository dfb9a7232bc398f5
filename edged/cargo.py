"""A board's files: models that arrive in chunks, updates that leave in chunks, in the runtime directory.

It holds no more than a window of chunks in memory, and decodes nothing.
"""

from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

from edged.messages import Manifest
from edged.ranges import Range
from edged.transfers import Incoming, Outgoing, Sender, TransferError, chunk_bytes_for, describe

Publish = Callable[[str, int, bytes], int]
"""Order id, chunk number and payload of an update's chunk; gives the link's token."""


class Cargo:
    """One model on its way in, one update on its way out."""

    def __init__(self, folder: Path, publish: Publish) -> None:
        self._models = folder / "models"
        self._updates = folder / "updates"
        self.kept = folder / "kept"
        """Where the child leaves optimizer states of synchronous groups."""
        self._publish = publish
        self._incoming: Incoming | None = None
        self._version = ""
        self._outgoing: Outgoing | None = None
        self._sender: Sender | None = None
        for place in (self._models, self._updates, self.kept):
            place.mkdir(parents=True, exist_ok=True)
            for old in place.iterdir():
                old.unlink()  # another process's: nobody vouches for it

    def model_path(self, version: str) -> Path:
        """Where that model version lies once it is complete."""
        return self._models / f"{version}.safetensors"

    def update_path(self, order: str) -> Path:
        """Where the child writes the order's update."""
        return self._updates / f"{order}.safetensors"

    def fetch(self, version: str, manifest: Manifest) -> int:
        """Collect that version; chunks of it that came already stay. Their number. Raises TransferError,
        OSError.
        """
        if self._incoming is not None and (self._version, self._incoming.manifest) == (version, manifest):
            return self._incoming.received_chunks
        self.drop()
        self._incoming = Incoming(self.model_path(version), manifest)
        self._version = version
        return 0

    def take(self, version: str, number: int, payload: bytes) -> int | None:
        """A chunk came. How many of the version are held now, None if it is not new or not wanted.
        Raises OSError.
        """
        if self._incoming is None or version != self._version or not self._incoming.write(number, payload):
            return None
        return self._incoming.received_chunks

    def finish(self) -> str | None:
        """The model's SHA-256 once all of it is here, None before. Raises TransferError where it is
        another.
        """
        incoming = self._incoming
        if incoming is None or not incoming.complete:
            return None
        self._incoming = None
        incoming.finish()
        return incoming.manifest.sha256

    def missing(self) -> list[Range]:
        """Chunks of the fetched version that have not come."""
        return self._incoming.missing() if self._incoming is not None else []

    def drop(self) -> None:
        """No model is wanted any more."""
        if self._incoming is not None:
            self._incoming.discard()
            self._incoming = None

    def forget(self, version: str) -> None:
        """Delete a model version."""
        self.model_path(version).unlink(missing_ok=True)

    def describe(self, order: str, max_packet_bytes: int) -> Manifest:
        """Hash the order's update; takes a second for 100 MB, so not in the loop. Raises TransferError,
        OSError.
        """
        return describe(self.update_path(order), chunk_bytes_for(max_packet_bytes))

    def offer(self, order: str, manifest: Manifest) -> None:
        """The order's update may be granted from now on."""
        self._close()
        self._outgoing = Outgoing(self.update_path(order), manifest)

    def upload(self, order: str, ranges: tuple[Range, ...], window: int) -> None:
        """Send the granted chunks, so many unacknowledged."""
        if self._outgoing is None:
            return
        if self._sender is None:
            self._sender = Sender(
                self._outgoing, lambda number, data: self._publish(order, number, data), window
            )
        self._sender.grant(ranges)

    def settled(self, token: int) -> None:
        """The broker took or refused a chunk."""
        if self._sender is not None:
            self._sender.settled(token)

    def discard(self, order: str) -> None:
        """The order's update is of no more use."""
        self._close()
        self.update_path(order).unlink(missing_ok=True)

    def sweep(self, run: str) -> None:
        """A new order begins: whatever older ones left of their updates goes, half-written files too, and so
        do optimizer states of other runs."""
        self._close()
        others = (path for path in self.kept.iterdir() if path.name.partition(".")[0] != run)
        for path in (*self._updates.iterdir(), *others):
            path.unlink(missing_ok=True)

    def clear(self) -> None:
        """The process ends: nothing is left behind."""
        self.drop()
        self._close()
        for place in (self._models, self._updates, self.kept):
            with suppress(OSError):
                for path in place.iterdir():
                    path.unlink()

    def _close(self) -> None:
        self._sender = None
        if self._outgoing is not None:
            self._outgoing.close()
            self._outgoing = None


__all__ = ["Cargo", "TransferError"]
