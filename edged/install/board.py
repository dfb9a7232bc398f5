"""`edged install` and `edged uninstall`, step by step; each yields what it did, for the operator to read."""

from __future__ import annotations

import time
from collections.abc import Generator, Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from edged.checks import Finding
from edged.config import ConfigError, check, parse
from edged.install import releases, sensors, settings, torch_builds, units
from edged.install.machine import Machine
from edged.install.wheel import running

LINK_SECONDS = 5.0
DATA = "/var/lib/edged"
COORDINATOR = "edged-coordinator"


class Wish(Struct, frozen=True):
    """What was asked for. `tables` are edged.toml's; `wheels` a folder instead of a registry."""

    tables: Mapping[str, Mapping[str, Any]] = {}
    password: str = ""
    energy_group: bool = True
    torch: str = "auto"
    wheel: Path | None = None
    wheels: str = ""


def install(machine: Machine, wish: Wish) -> Iterator[str]:
    """All of it, from the release to a service that is ready. Raises InstallError; a second time mends."""
    units.need_systemd(machine)
    changed = yield from put_release(machine, wish)
    for folder in (settings.FOLDER, f"{settings.FOLDER}/tasks", DATA):
        machine.folder(folder)
    yield settings.put(machine, wish.tables)
    units.put(machine, units.NAME)
    if wish.password:
        settings.put_password(machine, wish.password)
    units.bind_pools(machine, _pools(machine))
    yield from sensors.put(machine, wish.energy_group)
    yield from units.start(machine, units.NAME)
    if changed and machine.exists(f"{units.UNITS}/{COORDINATOR}.service"):
        yield from units.start(machine, COORDINATOR)
    releases.tidy(machine)
    if machine.live and not machine.dry:
        yield from sensors.as_the_service_sees(machine)
        yield from _link(machine)
        yield from _doctor(machine)


def put_release(machine: Machine, wish: Wish) -> Generator[str, None, bool]:
    """Build the release with its torch, and make it the current one. Whether it was another before."""
    python = releases.system_python(machine)
    before = releases.marked(machine, releases.CURRENT)
    if before is not None and before.python != python.version:
        old, new = (".".join(map(str, version)) for version in (before.python, python.version))
        yield f"python: {old} was replaced by {new} here; the release is made anew for it"
    folder = releases.build(machine, running(wish.wheel), python, wish.wheels)
    yield torch_builds.join(machine, folder, python, wish.torch, wish.wheels)
    changed = releases.switch(machine, folder)
    yield f"release: {folder}" + ("" if changed else ", as before")
    return changed


def roll_back(machine: Machine) -> Iterator[str]:
    """The previous release, with its own unit, in the place of the current one."""
    yield f"release: back to {releases.roll_back(machine)}"
    for name in (units.NAME, COORDINATOR):
        if machine.exists(f"{units.UNITS}/{name}.service"):
            units.put(machine, name)
            yield from units.start(machine, name)


def uninstall(machine: Machine, purge: bool) -> Iterator[str]:
    """Take the service and, where no coordinator uses them, the releases away; with `purge` settings, data,
    accounts too.
    """
    yield from units.remove(machine, units.NAME)
    if machine.remove(sensors.RULE) and machine.live:
        machine.run("udevadm", "control", "--reload")
        sensors.close_counters(machine)
    shared = machine.exists(f"{units.UNITS}/{COORDINATOR}.service")
    if purge:
        remove_data(machine, DATA, units.NAME)
        for name in (settings.FILE, f"{settings.FILE}.new", f"{settings.FOLDER}/tasks", settings.SECRET):
            machine.remove(name)
        if "edged-energy:" in (machine.read("/etc/group") or ""):
            machine.run("groupdel", "edged-energy")
    yield from remove_releases(machine, shared, purge)
    if not purge:
        yield f"{settings.FOLDER} and {DATA} stay; `--purge` removes them too"


def remove_data(machine: Machine, folder: str, user: str) -> None:
    """What the service wrote, and its user."""
    machine.remove(folder)
    machine.remove(f"/run/{user}")
    if f"{user}:" in (machine.read("/etc/passwd") or ""):
        machine.run("userdel", user)


def remove_releases(machine: Machine, shared: bool, purge: bool) -> Iterator[str]:
    """The releases, unless the other service on this machine runs out of them."""
    if shared:
        yield f"{releases.HOME} stays: another service of edged uses it"
        return
    for program in releases.PROGRAMS:
        if (machine.linked(f"{releases.BIN}/{program}") or "").startswith(releases.HOME):
            machine.remove(f"{releases.BIN}/{program}")
    if purge:
        machine.remove(settings.FOLDER)
    machine.remove(releases.HOME)


def _doctor(machine: Machine) -> Iterator[str]:
    """What `edged doctor` finds wanting, asked as the service: others read and reach other things."""
    command = (*units.as_the_service(machine), f"{releases.CURRENT}/edged", "doctor", "--json")
    done = machine.ask(*command)
    try:
        found = msgspec.json.decode(done.out, type=list[Finding])
    except msgspec.DecodeError:
        yield f"doctor: could not be asked: {(done.err or done.out).strip()[-300:]}"
        return
    for one in found:
        if one.verdict != "ok":
            yield f"doctor: {one.verdict}: {one.what}: {one.text}" + (
                f"\n  -> {one.way_out}" if one.way_out else ""
            )
    yield f"doctor: {sum(one.verdict == 'ok' for one in found)} of {len(found)} good"


def _pools(machine: Machine) -> dict[str, str]:
    """Of the settings that are in force; none where they cannot be used, which the service says itself."""
    try:
        found = check(parse((machine.read(settings.FILE) or "").encode(), settings.FILE))
    except ConfigError:
        return {}
    return {name: pool.path for name, pool in found.data.items()}


def _link(machine: Machine) -> Iterator[str]:
    """Give the link a moment; a broker that is away is told, and no fault of the installation."""
    until = time.monotonic() + LINK_SECONDS
    now = units.asked(machine, units.NAME)
    while now and (now.text.startswith("waiting for broker") or not now.text) and time.monotonic() < until:
        time.sleep(0.25)
        now = units.asked(machine, units.NAME)
    yield f"now: {now.text if now else 'the service manager does not answer'}"
