"""Intel and AMD processors: the RAPL counters under /sys/class/powercap, found by name.

Core and uncore are inside package, psys is another measure of the same machine. Writes no limit.
Kernel: drivers/powercap/intel_rapl_common.c; energy_uj is 0400 since commit 949dd0104c49 (5.10).
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple

from probes import Channel, Context, Cost, Finding, Reader, Sample, Scope
from probes._files import Trouble, entries, number, sample, text

ROOT = "/sys/class/powercap"
ZONE = re.compile(r"(intel-rapl|intel-rapl-mmio)((?::\d+)+)")
PACKAGE = re.compile(r"package-\d+(-die-\d+)?")
STEPS = 0xFFFFFFFF  # a range is this many of the counter's units
UNIT = 1e-6  # energy_uj, max_energy_range_uj, constraint_*_max_power_uw
# Sapphire Rapids' dram counts 61 uJ; a kernel that shows this range takes 15.3 (likwid pull request 643).
SUSPECT_RANGE_JOULES = 65712.999613
SAPPHIRE_RAPIDS = (143, 207)  # models of family 6
REMEDY = "sudo edged install (lets one group read energy_uj, and keeps it so after a reboot)"


class Zone(NamedTuple):
    """A folder of the powercap tree; `indices` place it below its parent, its name says what it is."""

    control: str
    indices: tuple[str, ...]
    path: Path
    name: str

    @property
    def energy(self) -> Path:
        return self.path / "energy_uj"


class Powercap:
    name = "powercap"

    def detect(self, context: Context) -> list[Finding]:
        zones = _zones(context)
        if not zones:
            where = "is empty" if entries(context.path(ROOT)) else "is not there"
            reason = (
                f"{ROOT} {where}: no RAPL counters, or a kernel without CONFIG_POWERCAP/CONFIG_INTEL_RAPL"
            )
            return [Finding("powercap", "absent", reason)]
        found: dict[str, Finding] = {}
        whole_joules = _counts_whole_joules(context, zones)
        for zone in zones:
            if not zone.name:
                reason = f"{zone.path}: has no name, and nothing else says what it counts"
                found.setdefault(str(zone.path), Finding(f"powercap/{zone.path.name}", "invalid", reason))
                continue
            finding = self._finding(context, zone, zones, whole_joules)
            if finding is None or finding.channel is None:
                continue
            # The same key under MSR and MMIO is one counter: the first that reads, and MSR comes first.
            known = found.get(finding.source)
            if known is None or (known.status != "ok" and finding.status == "ok"):
                found[finding.source] = finding
        return list(found.values())

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        paths: dict[str, Path] = {}
        zones = _zones(context)
        for channel in channels:
            for zone in zones:
                if _id(zone, zones) != channel.id or channel.id in paths:
                    continue
                if not isinstance(number(context, zone.energy), Trouble):
                    paths[channel.id] = zone.energy
        return [Counters(context, paths)] if paths else []

    def _finding(
        self, context: Context, zone: Zone, zones: Sequence[Zone], whole_joules: bool
    ) -> Finding | None:
        shape = _shape(zone, zones)
        if shape is None:
            return None
        scope, uncertainty, note = shape
        id = _id(zone, zones)
        value = number(context, zone.energy, UNIT)
        range_joules = _positive(number(context, zone.path / "max_energy_range_uj", UNIT))
        resolution = None if range_joules is None else range_joules / STEPS
        if resolution is None and scope == "platform" and whole_joules:
            resolution = 1.0
        suspect = scope == "dram" and _suspect(context, range_joules, whole_joules)
        channel = Channel(
            id=id,
            kind="counter",
            scope=scope,
            basis="measured",
            relative_uncertainty=uncertainty,
            source=f"{ROOT}/{zone.path.name}/energy_uj ({zone.name})",
            resolution_joules=resolution,
            window_seconds=0.001,
            range_joules=range_joules,
            max_watts=_max_watts(context, zone, scope),
            moves_within_seconds=10.0 if scope == "package" else None,
            parent=_parent_id(zone, zones) if scope == "rail" else None,
            may_mirror=_first_die(zone, zones),
            headline=scope in ("package", "dram"),
            note=note,
            flags=("unit-suspect",) if suspect else (),
        )
        if isinstance(value, Trouble):
            remedy = REMEDY if value.status == "denied" else ""
            return Finding(id, value.status, value.reason, remedy, channel)
        return Finding(id, "ok", channel=channel)


class Counters:
    """All zones at once: they are registers, one read takes microseconds."""

    cost: Cost = "cheap"

    def __init__(self, context: Context, paths: dict[str, Path]) -> None:
        self._context = context
        self._paths = paths
        self.channel_ids = tuple(paths)

    def read(self) -> list[Sample]:
        return [
            sample(self._context, name, partial(number, self._context, path, UNIT))
            for name, path in self._paths.items()
        ]

    def close(self) -> None: ...


def create() -> Powercap:
    return Powercap()


def _zones(context: Context) -> list[Zone]:
    """Every zone, MSR before MMIO, parents before children; also where only nested folders are there."""
    found: dict[str, Path] = {}
    level = [context.path(ROOT)]
    for _ in range(4):
        below = []
        for folder in level:
            for name in entries(folder):
                if ZONE.fullmatch(name) or name in ("intel-rapl", "intel-rapl-mmio"):
                    below.append(folder / name)
                    if ZONE.fullmatch(name):
                        found.setdefault(name, folder / name)
        level = below
    zones = []
    for name, path in found.items():
        match = ZONE.fullmatch(name)
        said = text(context, path / "name")
        if match is not None:
            indices = tuple(match.group(2).split(":")[1:])
            zones.append(Zone(match.group(1), indices, path, "" if isinstance(said, Trouble) else said))
    return sorted(zones, key=lambda zone: (zone.control != "intel-rapl", len(zone.indices), zone.indices))


def _parent(zone: Zone, zones: Sequence[Zone]) -> Zone | None:
    above = (zone.control, zone.indices[:-1])
    return next((one for one in zones if (one.control, one.indices) == above), None)


def _parent_id(zone: Zone, zones: Sequence[Zone]) -> str | None:
    parent = _parent(zone, zones)
    return None if parent is None or not parent.name else _id(parent, zones)


def _id(zone: Zone, zones: Sequence[Zone]) -> str:
    """By names only; where a parent's name cannot be read, its place in the tree stands for it."""
    if len(zone.indices) == 1:
        return f"powercap/{_word(zone.name)}"
    above = _parent_id(zone, zones) or f"powercap/unnamed:{':'.join(zone.indices[:-1])}"
    return f"{above}/{_word(zone.name)}"


def _word(name: str) -> str:
    """A zone's own text, fit for a label."""
    return re.sub(r"[^a-z0-9_.-]", "_", name.lower())[:40]


def _shape(zone: Zone, zones: Sequence[Zone]) -> tuple[Scope, float, str] | None:
    """(scope, relative uncertainty, why it is not the headline); None for what is ignored."""
    if len(zone.indices) == 1:
        if PACKAGE.fullmatch(zone.name):
            return "package", 0.05, ""
        if zone.name == "psys":
            return "platform", 0.25, "psys measures the same machine again: not added, opt in with count_psys"
        return None
    if zone.name == "dram":
        return "dram", 0.05, ""
    return "rail", 0.05, f"{zone.name} is inside {_parent_id(zone, zones) or 'its package'}: never added"


def _first_die(zone: Zone, zones: Sequence[Zone]) -> str | None:
    match = PACKAGE.fullmatch(zone.name)
    if match is None or match.group(1) is None or len(zone.indices) != 1:
        return None
    socket = zone.name[: match.start(1)]
    dies = [one for one in zones if one.control == zone.control and one.name.startswith(f"{socket}-die-")]
    first = min(dies, key=lambda one: int(one.name.rpartition("-")[2]))
    return None if first.name == zone.name else _id(first, zones)


def _positive(value: float | Trouble) -> float | None:
    return value if not isinstance(value, Trouble) and value > 0 else None


def _max_watts(context: Context, zone: Zone, scope: Scope) -> float:
    """More than this is not believed. The limit files are hints: they may be empty, zero or give ENODATA."""
    if scope == "dram":
        return 200.0
    limit = _positive(number(context, zone.path / "constraint_0_max_power_uw", UNIT))
    # Turbo passes the base power several times over for a while.
    return 500.0 if limit is None else max(150.0, 4 * limit)


def _counts_whole_joules(context: Context, zones: Sequence[Zone]) -> bool:
    """Sapphire Rapids' psys counts in steps of 1 J; others' microjoules do not end in six zeros."""
    values = [number(context, zone.energy) for zone in zones if len(zone.indices) == 1]
    return any(not isinstance(value, Trouble) and value > 0 and value % 1_000_000 == 0 for value in values)


def _suspect(context: Context, range_joules: float | None, whole_joules: bool) -> bool:
    if range_joules is None or abs(range_joules - SUSPECT_RANGE_JOULES) > 0.001:
        return False
    info = text(context, context.path("/proc/cpuinfo"))
    if isinstance(info, Trouble):
        return whole_joules
    models = re.findall(r"^model\s*:\s*(\d+)$", info, re.MULTILINE)
    family = re.findall(r"^cpu family\s*:\s*(\d+)$", info, re.MULTILINE)
    return whole_joules or (family[:1] == ["6"] and int(models[0] if models else 0) in SAPPHIRE_RAPIDS)
