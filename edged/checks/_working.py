"""Says on standard error what is being waited for, once that takes over two seconds."""

from __future__ import annotations

import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import TextIO

PATIENCE_SECONDS = 2.0
CLEAR = "\r\x1b[K"


class Working:
    """A context. On a terminal a line that counts the seconds; elsewhere one plain line a wait."""

    def __init__(self, out: TextIO | None = None, patience_seconds: float = PATIENCE_SECONDS) -> None:
        self._out = sys.stderr if out is None else out
        self._patience = patience_seconds
        self._what, self._since, self._told = "", time.monotonic(), False
        self._lock = threading.Lock()
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._tell, name="edged-doctor", daemon=True)

    def __enter__(self) -> Working:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._over.set()
        self._thread.join(1.0)
        with self.aside():
            pass

    def on(self, what: str) -> None:
        """This is looked at from now on."""
        with self.aside():
            self._what, self._since, self._told = what, time.monotonic(), False

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Nothing of this is on the screen meanwhile."""
        with self._lock:
            if self._told and self._out.isatty():
                self._out.write(CLEAR)
                self._out.flush()
            yield

    def _tell(self) -> None:
        while not self._over.wait(min(1.0, self._patience)):
            with self._lock:
                seconds = time.monotonic() - self._since
                if not self._what or seconds < self._patience:
                    continue
                if self._out.isatty():
                    self._out.write(f"{CLEAR}...   {self._what}, {seconds:.0f} s")
                elif not self._told:
                    self._out.write(f"...   {self._what}\n")
                self._out.flush()
                self._told = True
