"""Memory, and room for models: what the machine below `root` has of both."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from pathlib import Path

from edged.checks import Finding
from edged.identity import board_model, memory_bytes

MIB = 1 << 20
LITTLE_MEMORY_BYTES = 900 * MIB
NO_DISK_BYTES = 20 * MIB
LITTLE_DISK_BYTES = 256 * MIB
"""Two models of some 30 million weights each."""


def memory(root: Path) -> Iterator[Finding]:
    """How much there is, and whether the kernel can hold the service to its share."""
    total = memory_bytes(root)
    if not total:
        yield Finding("memory", "warn", "the kernel does not say how much there is")
    elif total < LITTLE_MEMORY_BYTES:
        text = f"{total / MIB:,.0f} MiB: torch alone takes some 400"
        yield Finding(
            "memory", "warn", text, "take small batches and models; swap (zram) keeps the board alive"
        )
    else:
        yield Finding("memory", "ok", f"{total / MIB:,.0f} MiB")
    has = _memory_controller(root)
    if has is None:
        yield Finding("memory limit", "warn", "cannot tell whether the kernel has the memory controller")
    elif has:
        yield Finding("memory limit", "ok", "the kernel has the memory controller, so MemoryMax= holds")
    else:
        text = "the kernel's memory controller is off, so MemoryMax= of the service does nothing"
        if board_model(root).startswith("Raspberry Pi"):
            way_out = (
                "add cgroup_enable=memory cgroup_memory=1 to the end of the one line in "
                f"{_boot_line(root)}, then restart the board"
            )
        else:
            way_out = "add cgroup_enable=memory to the kernel's command line, then restart the board"
        yield Finding("memory limit", "warn", text, way_out)


def disk(folder: Path, what: str = "disk") -> Finding:
    """Room in the folder of models in transfer: two at a time, the one trained and its update."""
    there = next((path for path in (folder, *folder.parents) if path.exists()), Path("/"))
    try:
        free = shutil.disk_usage(there).free
    except OSError as error:
        return Finding(what, "fail", f"{there}: {error.strerror}", "set another [storage] runtime")
    text = f"{free / MIB:,.0f} MiB free in {there}: room for two models of {free / 2 / MIB:,.0f} MiB"
    if free < NO_DISK_BYTES:
        return Finding(what, "fail", text, "free some space, or set another [storage] runtime")
    if free < LITTLE_DISK_BYTES:
        return Finding(what, "warn", text, "enough for small models; else set another [storage] runtime")
    return Finding(what, "ok", text)


def runtime_folder(asked: str, environment: dict[str, str], run: Path) -> tuple[Path | None, str]:
    """Where the daemon would put them (as edged.runtime does), and why not, None, where that cannot be."""
    given = asked or environment.get("RUNTIME_DIRECTORY", "").split(":")[0]
    if given:
        place = Path(given)
        there = next((path for path in (place, *place.parents) if path.exists()), Path("/"))
        if not there.is_dir() or not os.access(there, os.W_OK | os.X_OK):
            return None, f"{there} cannot be written by this user"
        return place, ""
    if run.is_dir() and os.access(run, os.W_OK):
        return run, ""
    import tempfile

    try:
        return Path(tempfile.gettempdir()), f"{run} cannot be written, so a temporary folder is taken"
    except FileNotFoundError as error:
        return None, str(error)


def _memory_controller(root: Path) -> bool | None:
    """Of cgroup v2 at the top, else of v1 by the kernel's list; None where neither can be read."""
    try:
        return "memory" in (root / "sys/fs/cgroup/cgroup.controllers").read_text().split()
    except OSError:
        pass  # v1, or not mounted
    try:
        rows = [line.split() for line in (root / "proc/cgroups").read_text().splitlines()]
    except OSError:
        return None
    return any(row[0] == "memory" and row[-1] == "1" for row in rows if len(row) == 4)


def _boot_line(root: Path) -> str:
    newer = "boot/firmware/cmdline.txt"
    return (
        f"/{newer}"
        if (root / newer).exists() or not (root / "boot/cmdline.txt").exists()
        else "/boot/cmdline.txt"
    )
