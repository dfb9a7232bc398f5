"""Starts and supervises the training child: jobs in, words out on the agent's queue, and how it ended in
words.

The agent decides when to cancel or kill; this file knows processes, not orders' meaning.
"""

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from queue import SimpleQueue

import msgspec
from msgspec import Struct

from edged.work import Asked, Cancel, Job, Meet, Word

CANCEL_SECONDS = 10.0
"""A step may take seconds on a slow board; a child that does not stop by then is ended."""
START_SECONDS = 300.0
"""The same while it imports torch, which takes a minute and a half on a RISC-V board."""


log = logging.getLogger("edged")


class Said(Struct, frozen=True):
    """A word of the child."""

    word: Word


class Died(Struct, frozen=True):
    """The child ended while it had this job."""

    order: str
    reason: str


class Child:
    """One process at a time, started with its first job and again after an end. Not thread-safe: the
    agent's.
    """

    def __init__(self, events: "SimpleQueue[object]", command: Sequence[str] | None = None) -> None:
        self._events = events
        self._command = command
        self._process: subprocess.Popen[bytes] | None = None
        self._job: Job | None = None
        self._cancel_until: float | None = None
        self._ready = False
        self._together = False
        self.starts = 0

    @property
    def pid(self) -> int | None:
        """The running child's process id."""
        return self._process.pid if self._process and self._process.poll() is None else None

    def train(self, job: Job) -> None:
        """Give it the job; a dead child is replaced."""
        dead = self.pid is None
        if dead:
            self.kill()
        self._job = job  # before the start: a child that dies at once is this job's
        self._together = False
        if dead:
            self._start()
        self._ask(job)

    def meet(self, meet: Meet) -> None:
        """The order's group may form. From here on only its end takes it out of it."""
        if self._job is not None and self._job.order.order == meet.order:
            self._together = True
            self._ask(meet)

    def cancel(self, order: str) -> bool:
        """Have it stop this order at its next step. Its last word on it may still come; True if none will,
        because it was ended: a rank that waits for others in an exchange hears nothing."""
        if self._job is None or self._job.order.order != order:
            return False
        if self._together:
            self.kill()
            return True
        self._job = None
        if self.pid is not None:
            self._ask(Cancel(order))
            patience = CANCEL_SECONDS if self._ready else START_SECONDS
            self._cancel_until = time.monotonic() + patience
        return False

    def heard_ready(self) -> None:
        """It has imported torch: from here on it answers between two steps."""
        self._ready = True
        if self._cancel_until is not None:
            self._cancel_until = min(self._cancel_until, time.monotonic() + CANCEL_SECONDS)

    def heard(self, order: str, failed: bool = False) -> None:
        """A last word on this order came: what was cancelled has stopped. A group that failed is never used
        again, nor is the process that was in it."""
        self._cancel_until = None
        if self._job is not None and self._job.order.order == order:
            if failed and self._together:
                self.kill()
            self._job, self._together = None, False

    def tend(self, now: float) -> None:
        """End a child that does not stop; a job that waits behind it goes to a new one. Call now and then."""
        if self._cancel_until is not None and now >= self._cancel_until:
            job = self._job
            self.kill()
            if job is not None:
                self.train(job)

    def kill(self) -> None:
        """End it now; no word of it follows."""
        process, self._process = self._process, None
        self._job, self._cancel_until, self._together = None, None, False
        if process is None:
            return
        process.kill()
        process.wait()
        if process.stdin is not None:
            with suppress(OSError):  # what was not flushed is of no use to the dead
                process.stdin.close()

    def close(self, timeout_seconds: float = 1.0) -> None:
        """End it by closing its stdin, by force after the time."""
        process = self._process
        if process is not None and process.stdin is not None:
            with suppress(subprocess.TimeoutExpired, BrokenPipeError):
                process.stdin.close()
                process.wait(timeout_seconds)
        self.kill()

    def _start(self) -> None:
        command = self._command or (sys.executable, "-m", "edged.trainer", str(os.getpid()))
        self.starts += 1
        self._ready = False
        process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True
        )
        self._process = process
        threading.Thread(target=self._read, args=(process,), daemon=True).start()

    def _ask(self, asked: Asked) -> None:
        process = self._process
        if process is None or process.stdin is None:
            return
        with suppress(OSError):  # if it is dead, the reader says how
            process.stdin.write(msgspec.json.encode(asked) + b"\n")
            process.stdin.flush()

    def _read(self, process: "subprocess.Popen[bytes]") -> None:
        """In a thread: words until the end of its stdout, then how it ended."""
        assert process.stdout is not None
        for line in process.stdout:
            try:
                word = msgspec.json.decode(line, type=Word)
            except msgspec.DecodeError as error:
                # The torn last line of a killed child; or another version, installed while this one runs.
                log.warning("the training process says what is no word: %s", error)
                continue
            if process is self._process:
                self._events.put(Said(word))
        process.stdout.close()
        code = process.wait()
        job = self._job
        if process is self._process and job is not None:
            self._events.put(Died(job.order.order, ended(code)))


def ended(code: int) -> str:
    """How a child ended, in words for the operator, from its return code."""
    if code >= 0:
        return f"the training process ended with exit code {code}; its last words are in this board's log"
    try:
        name = signal.Signals(-code).name
    except ValueError:
        name = f"signal {-code}"
    hints = {
        "SIGKILL": ": killed, out of memory?",
        "SIGILL": ": this torch wheel does not fit this CPU; `edged doctor` says which does",
    }
    return f"the training process was ended by {name}{hints.get(name, '')}"
