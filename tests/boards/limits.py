"""A group of processes that the kernel holds to a board's memory and part of a core (cgroup v1 or v2)."""

import os
import time
from pathlib import Path

FOLDER = Path("/sys/fs/cgroup")
PERIOD_MICROSECONDS = 20_000
"""Short, so that no process stands still for long."""


class Limits:
    """Made on entry, removed at `close`; `prefix` starts a command inside."""

    def __init__(self, name: str, memory_bytes: int, cores: float) -> None:
        one = (FOLDER / "cgroup.controllers").exists()
        roots = [FOLDER] if one else [FOLDER / "memory", FOLDER / "cpu"]
        self.folders = [root / name for root in roots]
        for folder in self.folders:
            folder.mkdir(exist_ok=True)
        quota = int(cores * PERIOD_MICROSECONDS)
        if one:
            self._put("memory.max", memory_bytes)
            self._put("memory.swap.max", 0)
            self._put("cpu.max", f"{quota} {PERIOD_MICROSECONDS}")
        else:
            self._put("memory.limit_in_bytes", memory_bytes)
            self._put("memory.memsw.limit_in_bytes", memory_bytes)
            self._put("cpu.cfs_period_us", PERIOD_MICROSECONDS)
            self._put("cpu.cfs_quota_us", quota)
        joins = " && ".join(f"echo $$ > {folder}/cgroup.procs" for folder in self.folders)
        self.prefix = ("sh", "-c", f'{joins} && exec "$@"', "sh")

    def peak_bytes(self) -> int:
        """The most memory that was ever in use."""
        (found,) = (path for name in PEAKS for path in self._paths(name))
        return int(found.read_text())

    def kills(self) -> int:
        """How many processes the kernel has killed for want of memory."""
        (found,) = (path for name in EVENTS for path in self._paths(name))
        counts = dict(line.split() for line in found.read_text().splitlines())
        return int(counts["oom_kill"])

    def close(self) -> None:
        """Remove the group, once the processes in it are gone."""
        until = time.monotonic() + 30.0
        while any((folder / "cgroup.procs").read_text() for folder in self.folders):
            assert time.monotonic() < until, "processes are left in the group"
            time.sleep(0.1)
        for folder in self.folders:
            folder.rmdir()

    def _paths(self, name: str) -> list[Path]:
        return [folder / name for folder in self.folders if (folder / name).exists()]

    def _put(self, name: str, value: object) -> None:
        for path in self._paths(name):
            path.write_text(f"{value}\n")


PEAKS = ("memory.peak", "memory.max_usage_in_bytes")
EVENTS = ("memory.events", "memory.oom_control")


def missing() -> str:
    """Why nothing can be limited here, "" where it can."""
    if os.geteuid() != 0:
        return "limits need root"
    if (FOLDER / "cgroup.controllers").exists():
        there = (FOLDER / "cgroup.controllers").read_text().split()
        return "" if {"cpu", "memory"} <= set(there) else "no cpu and memory controllers in cgroup v2"
    return "" if (FOLDER / "memory").is_dir() and (FOLDER / "cpu").is_dir() else "no cgroups"
