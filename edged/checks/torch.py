"""Whether torch works here, asked of a child process: this one never imports it."""

from __future__ import annotations

import platform
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal

import msgspec
from msgspec import Struct

from edged.checks import Finding
from edged.checks.torch_builds import another, way_out

IMPORT_SECONDS = 600.0  # a board without compiled bytecode took 300 s
OLDEST = (2, 6)
NO_GLOO = "ddp and hfl-ddp cannot run here, pma and asp can"


class Answer(Struct, frozen=True):
    """What the child says of its torch."""

    bits: int
    byteorder: Literal["little", "big"]
    version: str = ""
    gloo: bool = False
    computes: bool = False
    error: str = ""


class Ended(Struct, frozen=True):
    """How the child ended: `code` as subprocess gives it (negative: a signal), or `fault` where it could not
    run or answered nonsense."""

    code: int = 0
    answer: Answer | None = None
    words: str = ""
    fault: str = ""


def ask(command: Sequence[str] = (), seconds: float = IMPORT_SECONDS) -> Ended:
    """Run the child. `command` stands for it in tests."""
    command = command or (sys.executable, "-m", "edged.checks.torch_child")
    try:
        done = subprocess.run(
            list(command), stdin=subprocess.DEVNULL, capture_output=True, timeout=seconds, check=False
        )
    except subprocess.TimeoutExpired:
        return Ended(fault=f"importing it did not end within {seconds:g} s")
    except OSError as error:
        return Ended(fault=f"no process for it: {error.strerror}")
    words = " ".join(done.stderr.decode("utf-8", "replace").split())[-300:]
    lines = done.stdout.splitlines()
    try:
        return Ended(done.returncode, msgspec.json.decode(lines[-1], type=Answer), words)
    except (IndexError, msgspec.DecodeError):
        return Ended(done.returncode, None, words, "" if done.returncode < 0 else "its answer cannot be read")


def examine(ended: Ended, root: Path, arch: str = platform.machine()) -> Iterator[Finding]:
    """Findings on the machine below `root`, from what its child said."""
    answer = ended.answer
    if answer is None or ended.fault or ended.code < 0:
        yield _no_answer(ended, root, arch)
        return
    if answer.bits != 64 or answer.byteorder != "little":
        kind = f"{answer.bits}-bit {answer.byteorder}-endian"
        text = f"this Python is {kind}: only 64-bit little-endian boards take part"
        yield Finding("torch", "fail", text, "take a 64-bit image of the system")
        return
    if answer.error:
        missing = answer.error.startswith("ModuleNotFoundError") and "'torch'" in answer.error
        text = "not installed: this board cannot train" if missing else f"does not work: {answer.error[:300]}"
        yield Finding("torch", "fail", text, way_out(arch, root))
        return
    if not answer.computes:
        text = f"{answer.version} computes nonsense: the gradients of one small step are not finite"
        yield Finding("torch", "fail", text, another(arch, root))
        return
    if _release(answer.version) < OLDEST:
        text = f"{answer.version} is older than {'.'.join(map(str, OLDEST))}, the oldest that is tested"
        yield Finding("torch", "warn", text, way_out(arch, root))
    else:
        yield Finding("torch", "ok", f"{answer.version} trains a step on this processor ({arch})")
    if answer.gloo:
        yield Finding("gloo", "ok", "there, so that this board can take part in ddp and hfl-ddp")
    else:
        yield Finding("gloo", "warn", f"this build of torch has none: {NO_GLOO}", another(arch, root))


def _no_answer(ended: Ended, root: Path, arch: str) -> Finding:
    if ended.code >= 0:
        said = f": {ended.words}" if ended.words else ""
        return Finding(
            "torch", "fail", f"{ended.fault or 'its process said nothing'}{said}", way_out(arch, root)
        )
    name = _signal(-ended.code)
    if -ended.code == signal.SIGKILL:
        text = f"importing it was killed ({name}): too little memory?"
        return Finding("torch", "fail", text, "free some memory, or add swap")
    text = f"importing it and one step ended by {name}: this wheel does not fit this CPU"
    return Finding("torch", "fail", text, another(arch, root))


def _release(version: str) -> tuple[int, ...]:
    found = re.match(r"(\d+)\.(\d+)", version)
    return (int(found[1]), int(found[2])) if found else (0, 0)


def _signal(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
