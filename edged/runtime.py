"""The folder for models and updates in transfer: the service's, /run/edged, or a private temporary one.

One process has it at a time; a second one with the same board id gets a temporary folder.
"""

import errno
import fcntl
import os
import shutil
import tempfile
from collections.abc import Mapping
from pathlib import Path

RUN = Path("/run/edged")
DISK_FAULTS = (errno.EROFS, errno.ENOSPC, errno.EDQUOT, errno.EIO)
"""Of a disk that was mounted read-only, is full or breaks: no settings are at fault, and work goes on."""


class Runtime:
    """`folder` is this process's own until `close`. `reason` says why it is not the one that was asked
    for.
    """

    def __init__(
        self, asked: str, board: str, environment: Mapping[str, str] = os.environ, run: Path = RUN
    ) -> None:
        """Raises OSError where the asked folder cannot be, for another reason than its disk."""
        self.reason = ""
        self._temporary: Path | None = None
        self._lock = -1
        given = asked or environment.get("RUNTIME_DIRECTORY", "").split(":")[0]
        if given:
            place = Path(given)
        elif run.is_dir() and os.access(run, os.W_OK):
            place = run
        else:
            place = self._make_temporary(f"{run} cannot be written")
        try:
            if self._take(place / board):
                return
            reason = f"another process uses {place / board}"
        except OSError as error:
            if error.errno not in DISK_FAULTS:
                raise
            reason = f"{place}: {error.strerror}"
        self._take(self._make_temporary(reason) / board)

    def close(self) -> None:
        """Give the folder back; a temporary one is removed."""
        os.close(self._lock)
        if self._temporary is not None:
            shutil.rmtree(self._temporary, ignore_errors=True)

    def _make_temporary(self, reason: str) -> Path:
        self.reason = reason
        self._temporary = Path(tempfile.mkdtemp(prefix="edged-"))
        return self._temporary

    def _take(self, folder: Path) -> bool:
        """Make the folder, if need be, and have it alone; False where another process has it."""
        self.folder = folder
        folder.parent.mkdir(parents=True, exist_ok=True)
        folder.mkdir(mode=0o700, exist_ok=True)
        self._lock = os.open(self.folder / "lock", os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(self._lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            os.close(self._lock)
            return False
        return True
