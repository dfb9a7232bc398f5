"""Processes that live no longer than this one: started, watched, and ended in order, each with a log file.

Only what was started here is ever ended, by its process group. They also end when this process is killed.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import IO

from coordinator.broker import LAUNCHER

END_SECONDS = 8.0
LAST_LINES = 3


class ChildError(RuntimeError):
    """A process ended by itself; the text names it, its status, its last words and its log."""


class Children:
    """A context: on exit all that was started in it is ended, last started first."""

    def __init__(self, logs: Path, environment: dict[str, str] | None = None) -> None:
        self._logs = logs
        self._environment = {**os.environ, **(environment or {})}
        self._running: dict[str, subprocess.Popen[str]] = {}
        self.end_seconds = END_SECONDS
        """So long they may take to end when they are asked to."""

    def __enter__(self) -> "Children":
        self._logs.mkdir(parents=True, exist_ok=True)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end()

    def start(self, name: str, arguments: Sequence[str], *, talks: bool = False) -> subprocess.Popen[str]:
        """Start this Python with the arguments. With `talks` its input and output are pipes, else its log."""
        with self.log(name).open("a") as log:
            process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(os.getpid()), sys.executable, *arguments],
                stdin=subprocess.PIPE if talks else subprocess.DEVNULL,
                stdout=subprocess.PIPE if talks else log,
                stderr=log,
                env=self._environment,
                # Ctrl-C at the terminal is for this process alone, which then ends the others in order.
                start_new_session=True,
                text=True,
            )
        self._running[name] = process
        return process

    def check(self) -> None:
        """Raises ChildError for a process that has ended."""
        for name, process in self._running.items():
            status = process.poll()
            if status is not None:
                how = f"by signal {signal.Signals(-status).name}" if status < 0 else f"with status {status}"
                raise ChildError(f"{name} ended {how}: {self.last_words(name)} (log: {self.log(name)})")

    def pid(self, name: str) -> int:
        """Of a process that was started."""
        return self._running[name].pid

    def log(self, name: str) -> Path:
        """Where it writes."""
        return self._logs / f"{name}.log"

    def last_words(self, name: str) -> str:
        """The end of its log on one line."""
        with suppress(OSError):
            lines = self.log(name).read_text(errors="replace").strip().splitlines()
            if lines:
                return "; ".join(line.strip() for line in lines[-LAST_LINES:])
        return "it said nothing"

    def end(self, *names: str) -> None:
        """Ask these (or all) to end, then insist; returns when they are gone."""
        chosen = [self._running.pop(name) for name in reversed(names or tuple(self._running))]
        for process in chosen:
            _signal(process, signal.SIGTERM)
        until = time.monotonic() + self.end_seconds
        for process in chosen:
            with suppress(subprocess.TimeoutExpired):
                process.wait(max(0.0, until - time.monotonic()))
        for process in chosen:
            # What the process itself started shares its group, and may have outlived it.
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            process.wait()
            for pipe in (process.stdin, process.stdout):
                _close(pipe)


def _signal(process: subprocess.Popen[str], number: signal.Signals) -> None:
    if process.poll() is None:
        process.send_signal(number)


def _close(pipe: IO[str] | None) -> None:
    if pipe is not None:
        with suppress(OSError):
            pipe.close()
