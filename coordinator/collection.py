"""Fetches the boards' updates: grants a few boards at a time, spools chunks to a file, has it checked.

Rules: only what was granted is taken; nothing is decoded before the hash is right; an update counts once
it is checked and on the disk. It never blocks: hash, check and fsync run where `work` runs them.
"""

from collections import OrderedDict, deque
from collections.abc import Callable
from pathlib import Path
from typing import Final

from coordinator.aggregate import NORM_BOUND, check_update
from coordinator.application import check_gradient
from coordinator.checkpoints import Checkpoints, sync_file, sync_folder
from coordinator.events import Arriving, Collect, Note, Stored
from coordinator.workers import Work
from edged.messages import Grant, Manifest
from edged.ranges import Range, merge, next_grant, size, subtract
from edged.transfers import Incoming, TransferError, describe

BOARDS_AT_ONCE: Final = 4
CHUNKS_AHEAD: Final = 16
"""With four boards at once no more than 64 messages ever wait at the broker (ARCHITECTURE 6)."""
FIRST_SILENCE_SECONDS: Final = 2.0
LONGEST_SILENCE_SECONDS: Final = 32.0
SILENCES_AT_THE_HEAD: Final = 3
ARRIVING_SECONDS: Final = 1.0
REMEMBERED: Final = 256

Emit = Callable[[Arriving | Stored | Note], None]


class Upload:
    """An update on its way: `incoming` is None until its turn comes."""

    def __init__(
        self, board: str, order: str, manifest: Manifest, model: Path, rate: float | None = None
    ) -> None:
        self.board, self.order, self.manifest, self.model = board, order, manifest, model
        self.rate = rate
        self.incoming: Incoming | None = None
        self.granted: list[Range] = []
        self.heard_seconds = 0.0
        self.silence_seconds = FIRST_SILENCE_SECONDS
        self.silences = 0
        self.told_seconds = float("-inf")
        self.dropped = False


class Collection:
    """One for a coordinator, called from its loop. `send(board, grant)` publishes, `emit` takes events."""

    def __init__(
        self,
        checkpoints: Checkpoints,
        work: Work,
        send: Callable[[str, Grant], None],
        emit: Emit,
        *,
        boot: str,
        term: int,
        norm_bound: float = NORM_BOUND,
        at_once: int = BOARDS_AT_ONCE,
    ) -> None:
        self._checkpoints, self._work, self._send, self._emit = checkpoints, work, send, emit
        self._boot, self._term = boot, term
        self._norm_bound, self._at_once = norm_bound, at_once
        self._waiting: deque[Upload] = deque()
        self._active: dict[str, Upload] = {}
        self._checking: dict[str, Upload] = {}
        self._past: OrderedDict[str, None] = OrderedDict()
        self.received_bytes = 0

    def collect(self, effect: Collect, model: Path, now: float) -> None:
        """Fetch the update of an order trained from the model file; one that is here is only checked."""
        if self._find(effect.order) is not None:
            return
        upload = Upload(effect.board, effect.order, effect.manifest, model, effect.rate)
        path = self._checkpoints.update(effect.order)
        path.parent.mkdir(parents=True, exist_ok=True)
        if path.exists():
            self._checking[upload.order] = upload
            self._work(lambda: self._verify(upload, path), lambda result: self._verified(upload, result))
            return
        self._waiting.append(upload)
        self._fill(now)

    def discard(self, order: str, now: float) -> None:
        """Give up the upload of the order and remove what came of it."""
        upload = self._find(order)
        if upload is not None:
            upload.dropped = True
            self._active.pop(order, None)
            if upload in self._waiting:
                self._waiting.remove(upload)
            if upload.incoming is not None and order not in self._checking:
                upload.incoming.discard()
            self._remember(order)
        if order not in self._checking:
            self._checkpoints.update(order).unlink(missing_ok=True)
        self._fill(now)

    def chunk(self, board: str, order: str, number: int, payload: bytes, now: float) -> None:
        """A chunk that a board published."""
        upload = self._active.get(order)
        if upload is None or upload.incoming is None:
            what = "duplicate_chunks" if order in self._past or order in self._checking else "stray_chunks"
            return self._emit(Note(board, what, f"chunk {number} of {order}, which is not being fetched"))
        incoming = upload.incoming
        if upload.board != board:
            return self._emit(Note(board, "stray_chunks", f"a chunk of {order}, an order of {upload.board}"))
        if not subtract([(number, number + 1)], upload.granted):
            self._take(upload, incoming, number, payload, now)
        else:
            self._emit(Note(board, "stray_chunks", f"chunk {number} of {order} was not granted"))
        return None

    def tick(self, now: float) -> None:
        """Grant again what did not come; a board that stays silent makes room for those that wait."""
        for upload in list(self._active.values()):
            if now < upload.heard_seconds + upload.silence_seconds:
                continue
            upload.silences += 1
            upload.silence_seconds = min(LONGEST_SILENCE_SECONDS, 2 * upload.silence_seconds)
            upload.heard_seconds = now
            upload.granted = []
            if upload.silences >= SILENCES_AT_THE_HEAD and self._waiting:
                del self._active[upload.order]
                self._waiting.append(upload)
            else:
                self._grant(upload)
        self._fill(now)

    def reconnected(self, now: float) -> None:
        """Grants and chunks that were under way may be lost: grant what is missing at once."""
        for upload in self._active.values():
            upload.heard_seconds, upload.silence_seconds, upload.granted = now, FIRST_SILENCE_SECONDS, []
            self._grant(upload)

    def due(self) -> float | None:
        """When `tick` has something to do."""
        return min((u.heard_seconds + u.silence_seconds for u in self._active.values()), default=None)

    def _fill(self, now: float) -> None:
        while self._waiting and len(self._active) < self._at_once:
            upload = self._waiting.popleft()
            try:
                if upload.incoming is None:
                    upload.incoming = Incoming(self._checkpoints.update(upload.order), upload.manifest)
            except (TransferError, OSError) as error:
                self._end(upload, str(error))
                continue
            self._active[upload.order] = upload
            upload.heard_seconds = now
            self._grant(upload)

    def _grant(self, upload: Upload) -> None:
        assert upload.incoming is not None
        missing = upload.incoming.missing()
        outstanding = size(missing) - size(subtract(missing, upload.granted))
        if outstanding > CHUNKS_AHEAD // 2:
            return
        ranges = next_grant(missing, upload.granted, CHUNKS_AHEAD)
        if ranges:
            upload.granted = merge(upload.granted, ranges)
            self._send(upload.board, Grant(upload.order, self._boot, self._term, tuple(ranges)))

    def _take(self, upload: Upload, incoming: Incoming, number: int, payload: bytes, now: float) -> None:
        refused = incoming.refused
        try:
            new = incoming.write(number, payload)
        except OSError as error:
            incoming.discard()
            del self._active[upload.order]
            self._end(upload, f"the coordinator's disk does not take it: {error.strerror}")
            return self._fill(now)
        if not new:
            if incoming.refused > refused:
                text = f"chunk {number} of {upload.order} has {len(payload)} bytes"
                self._emit(Note(upload.board, "refused_chunks", text))
            else:
                self._emit(Note(upload.board, "duplicate_chunks", f"chunk {number} of {upload.order}"))
            return None
        self.received_bytes += len(payload)
        upload.heard_seconds, upload.silence_seconds, upload.silences = now, FIRST_SILENCE_SECONDS, 0
        if now - upload.told_seconds >= ARRIVING_SECONDS:
            upload.told_seconds = now
            self._emit(Arriving(upload.board, upload.order))
        if not incoming.complete:
            return self._grant(upload)
        self._checking[upload.order] = self._active.pop(upload.order)
        self._work(lambda: self._finish(upload, incoming), lambda result: self._checked(upload, result))
        return self._fill(now)

    def _finish(self, upload: Upload, incoming: Incoming) -> None:
        # On a worker: raises TransferError, WeightsError, OSError.
        path = incoming.finish()
        self._check(upload, path)
        sync_file(path)
        sync_folder(path.parent)

    def _verify(self, upload: Upload, path: Path) -> None:
        # On a worker. A file of an earlier process: it is what the manifest says, or it is fetched again.
        if describe(path, upload.manifest.chunk_bytes) != upload.manifest:
            raise TransferError("its spooled file is not the announced one")
        self._check(upload, path)
        sync_file(path)

    def _check(self, upload: Upload, path: Path) -> None:
        if upload.rate is None:
            check_update(path, upload.model, self._norm_bound)
        else:
            check_gradient(path, upload.model, upload.rate, self._norm_bound)

    def _verified(self, upload: Upload, result: object) -> None:
        if isinstance(result, TransferError) and not upload.dropped:
            del self._checking[upload.order]
            self._checkpoints.update(upload.order).unlink(missing_ok=True)
            self._waiting.append(upload)  # the next tick begins it
        else:
            self._checked(upload, result)

    def _checked(self, upload: Upload, result: object) -> None:
        self._checking.pop(upload.order, None)
        error = str(result) or type(result).__name__ if isinstance(result, BaseException) else None
        if error is not None or upload.dropped:
            self._checkpoints.update(upload.order).unlink(missing_ok=True)
        if not upload.dropped:
            self._end(upload, error)

    def _end(self, upload: Upload, error: str | None) -> None:
        self._remember(upload.order)
        self._emit(Stored(upload.board, upload.order, error))

    def _find(self, order: str) -> Upload | None:
        found = self._active.get(order) or self._checking.get(order)
        return found or next((upload for upload in self._waiting if upload.order == order), None)

    def _remember(self, order: str) -> None:
        self._past[order] = None
        if len(self._past) > REMEMBERED:
            self._past.popitem(last=False)
