"""A machine recorded as JSON (path -> content) laid out under a folder, as a `Context` that answers like it.

For `edged probe list --root FILE.json` and tests. A `{A}` in a path is an index that was not recorded.
"""

from __future__ import annotations

import errno
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from probes import CommandError, CommandResult, Context
from probes._files import read_bytes
from probes._outside import real_context

PLACEHOLDER = re.compile(r"\{([A-Z])\}")
HWMON = re.compile(r"/sys/.*/(hwmon\d+)/[^/]+")


class RecordError(ValueError):
    """Not a recorded machine; the text says what is wrong in which file."""


def load(path: Path) -> dict[str, Any]:
    """The record of one file. Raises RecordError."""
    try:
        record = json.loads(path.read_text())
    except (OSError, UnicodeDecodeError, ValueError) as error:
        raise RecordError(f"{path}: {error}") from None
    if not isinstance(record, dict) or not isinstance(record.get("files", {}), dict):
        raise RecordError(f"{path}: no recorded machine (a JSON object with `files`: path -> content)")
    return record


def lay_out(
    record: Mapping[str, Any], folder: Path, options: Mapping[str, Mapping[str, object]] | None = None
) -> Context:
    """Write the record's files below `folder` and give a context that has its denials and commands."""
    write(record, folder)
    refused = {
        folder / _path(path).lstrip("/"): str(why) for path, why in record.get("unreadable", {}).items()
    }
    for path in refused:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.touch()
    commands: Mapping[str, str] = record.get("commands", {})
    context = real_context(folder, options)

    def read(path: Path) -> bytes:
        why = refused.get(path)
        if why is not None:
            raise OSError(getattr(errno, why, errno.EIO), why)
        return read_bytes(path)

    def run(command: Sequence[str], timeout_seconds: float) -> CommandResult:
        said = _output(commands, command)
        return CommandResult(0, said, "")

    def stream(command: Sequence[str], line: Callable[[str | None], None]) -> Callable[[], None]:
        for one in _output(commands, command).splitlines():
            line(one)
        return lambda: None

    return replace(context, read_bytes=read, run=run, stream=stream)


def write(record: Mapping[str, Any], folder: Path) -> None:
    """Write a record's files (or those of one of its `samples`) over what lies there."""
    for key in ("files", "derived_files"):
        for name, content in record.get(key, {}).items():
            path = folder / _path(name).lstrip("/")
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(content)
            match = HWMON.fullmatch(_path(name))
            link = folder / "sys/class/hwmon" / (match.group(1) if match else "")
            if match is not None and not link.exists():
                link.parent.mkdir(parents=True, exist_ok=True)
                link.symlink_to(os.path.relpath(path.parent, link.parent))


def _path(name: str) -> str:
    """Placeholders get numbers of their own, in no order that a probe could lean on."""
    return PLACEHOLDER.sub(lambda match: str(11 + 7 * (ord(match.group(1)) - ord("A")) % 23), name)


def _output(commands: Mapping[str, str], command: Sequence[str]) -> str:
    asked = " ".join(command)
    for name, said in commands.items():
        if name == asked or name.partition(" (")[0] == command[0]:
            return said
    raise CommandError(f"{command[0]} is not installed")
