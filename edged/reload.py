"""SIGHUP: the settings are read again, and what can be taken over while the daemon runs is.

Pools, the folder of tasks and the log's level are; all else that differs is named and waits for a restart.
Settings that cannot be used change nothing.
"""

from __future__ import annotations

import logging
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from edged.config import ConfigError, Settings, load

log = logging.getLogger("edged")

AT_ONCE = ("data", "tasks", "log")


class Source(Struct, frozen=True):
    """Where settings came from: a file ("": the default one) and the flags laid over it."""

    file: str = ""
    flags: dict[str, dict[str, Any]] = {}


class Start(Struct, frozen=True):
    """What `edged run` hands to the daemon that it becomes."""

    settings: Settings
    source: Source = Source()


def again(start: Start) -> Start:
    """What holds from now on; says in the log what changed, and what of it takes a restart."""
    before, source = start.settings, start.source
    try:
        found = load(Path(source.file) if source.file else None, source.flags)
    except ConfigError as error:
        log.error("settings stay as they are: %s", error)
        return start
    keys = sorted(different(msgspec.to_builtins(before), msgspec.to_builtins(found)))
    taken = [key for key in keys if key.split(".")[0] in AT_ONCE]
    if taken:
        log.info("settings read again: %s", ", ".join(taken))
    if left := [key for key in keys if key not in taken]:
        log.warning("settings that take a restart: %s (systemctl restart edged)", ", ".join(left))
    logging.getLogger().setLevel(found.log.level.upper())
    return Start(replace(before, data=found.data, tasks=found.tasks, log=found.log), source)


def different(one: Any, other: Any, key: str = "") -> Iterator[str]:
    """Dotted keys under which two values of plain tables differ."""
    if not (isinstance(one, Mapping) and isinstance(other, Mapping)):
        if one != other:
            yield key.replace("energy.probes.", "energy.")
        return
    for name in {**one, **other}:
        yield from different(one.get(name), other.get(name), f"{key}.{name}" if key else name)
