"""How many samples at once fit into this board's memory: asked of a child that may die of it, and remembered.

The answer never bounds a share: larger batches run as micro-batches (`regimes.ddp`). Asked once for a task,
its options, an optimizer and the memory that there is. No torch here; the child is `edged.sacrifice`.
"""

from __future__ import annotations

import hashlib
import logging
import os
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from edged import dealing
from edged.messages import Train

log = logging.getLogger("edged")


class Trial(Struct, frozen=True):
    """Try sizes above `known` up to `upto` samples at once. Paths are the agent's."""

    order: Train
    pool: str
    folders: tuple[str, ...]
    threads: int | None
    known: int
    upto: int


class Fits(Struct, frozen=True, tag_field="word", tag="fits"):
    """So many samples at once were computed."""

    samples: int


class Full(Struct, frozen=True, tag_field="word", tag="full"):
    """More than that do not fit, or would take so long that nothing is gained."""


class Faulty(Struct, frozen=True, tag_field="word", tag="faulty"):
    """It cannot be tried at all; the training child will say the same."""

    reason: str


Word = Fits | Full | Faulty


class Size(Struct, frozen=True):
    """`samples` fit; `most` is True where more do not, else nobody needed more so far."""

    samples: int
    most: bool = False


class Sizing:
    """One board's; what was found lies in a file. Not thread-safe: the agent's."""

    def __init__(self, path: Path, command: Sequence[str] | None = None) -> None:
        self._path = path
        self._command = command or (sys.executable, "-m", "edged.sacrifice")
        self._process: subprocess.Popen[bytes] | None = None
        self._reader: threading.Thread | None = None
        self._words: list[Word] = []
        self._trial: Trial | None = None

    def size(self, order: Train) -> Size | None:
        """What is known to fit for this order, where it is enough to go by; None: it has to be tried."""
        found = self._read().get(key(order))
        if found is None or (not found.most and found.samples < needed(order)):
            return None
        return found

    def begin(self, order: Train, pool: str, folders: tuple[str, ...], threads: int | None) -> None:
        """Start the child. Raises OSError."""
        self.stop()
        known = self._read().get(key(order))
        trial = Trial(order, pool, folders, threads, known.samples if known else 0, needed(order))
        process = subprocess.Popen(
            [*self._command, str(os.getpid())],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            start_new_session=True,
        )
        self._process, self._trial, self._words = process, trial, []
        self._reader = threading.Thread(target=_heard, args=(process, trial, self._words), daemon=True)
        self._reader.start()

    def found(self) -> Size | None:
        """The size once the child has ended, and is written down; samples are 0 where not one fits, or where
        nothing could be tried (`fault` tells). None while it goes on."""
        if self._process is None or self._trial is None or self._reader is None or self._reader.is_alive():
            return None
        code, trial = self._process.wait(), self._trial
        self._process = None
        fits = max((w.samples for w in self._words if isinstance(w, Fits)), default=trial.known)
        # By the kernel for want of memory, which is what it is for, or by C++ that got none.
        killed = code in (-signal.SIGKILL, -signal.SIGABRT)
        size = Size(fits, fits < trial.upto and (killed or any(isinstance(w, Full) for w in self._words)))
        if fits:
            self._write({**self._read(), key(trial.order): size})
            more = ", not more" if size.most else ""
            log.info("%s: %d samples at once fit into memory%s", trial.order.task, fits, more)
        return size

    def fault(self) -> str:
        """Why the last one could not be tried, for a reason that is not memory."""
        return next((word.reason for word in self._words if isinstance(word, Faulty)), "")

    def stop(self) -> None:
        """End the child, if there is one; what it found so far is let go."""
        process, self._process = self._process, None
        if process is not None:
            process.kill()
            process.wait()

    def _read(self) -> dict[str, Size]:
        try:
            return msgspec.json.decode(self._path.read_bytes(), type=dict[str, Size])
        except (OSError, msgspec.DecodeError):
            return {}  # not there, or of another version: it is found again

    def _write(self, sizes: dict[str, Size]) -> None:
        with suppress(OSError):  # a full disk: it is found again
            self._path.parent.mkdir(parents=True, exist_ok=True)
            temporary = self._path.with_suffix(".new")
            temporary.write_bytes(msgspec.json.encode(sizes))
            temporary.replace(self._path)


def needed(order: Train) -> int:
    """Samples at once that the run may ask for: all of a step's, for shares grow from round to round, and a
    process group must not be given up to try again."""
    return max(order.batch, dealing.most_in_a_step(order))


def key(order: Train) -> str:
    """What a size holds for."""
    options = msgspec.json.encode([order.options, order.optimizer, bool(order.momentum)], order="sorted")
    part = hashlib.sha256(options).hexdigest()[:12]
    return f"{order.task} {order.task_hash[:12]} {part} {memory_bytes()}"


def memory_bytes() -> int:
    """The memory that this process may have in all: the machine's, or a control group's or its own limit."""
    total = os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    limits = [limit for limit, _ in control_groups()]
    limits += [resource.getrlimit(kind)[0] for kind in (resource.RLIMIT_DATA, resource.RLIMIT_AS)]
    return min([total, *(limit for limit in limits if limit > 0)])


def control_groups(
    place: Path = Path("/sys/fs/cgroup"), mine: Path = Path("/proc/self/cgroup")
) -> list[tuple[int, int]]:
    """(limit, present use) in bytes of each control group (version 2) above this process that has a limit."""
    found = []
    with suppress(OSError, ValueError, IndexError):
        own = mine.read_text().split("0::/", 1)[1].splitlines()[0]
        for depth in range(len(Path(own).parts), 0, -1):
            folder = place.joinpath(*Path(own).parts[:depth])
            with suppress(OSError, ValueError):
                limit = int((folder / "memory.max").read_text())
                found.append((limit, int((folder / "memory.current").read_text())))
    return found


def _heard(process: subprocess.Popen[bytes], trial: Trial, words: list[Word]) -> None:
    """In a thread: hand over the trial, hear its words until it ends."""
    assert process.stdin is not None
    assert process.stdout is not None
    with suppress(OSError):
        process.stdin.write(msgspec.json.encode(trial))
        process.stdin.close()
    for line in process.stdout:
        with suppress(msgspec.DecodeError):  # the torn last line of one that was killed
            words.append(msgspec.json.decode(line, type=Word))
    process.stdout.close()
    process.wait()
