"""Units and accounts of a service: put in place, started, waited for; and what the service manager says."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from pathlib import Path

from msgspec import Struct

from edged.install.machine import InstallError, Machine
from edged.install.releases import CURRENT
from probes import names

SOURCE = f"{CURRENT}/share/edged/systemd"
UNITS = "/etc/systemd/system"
ACCOUNTS = "/etc/sysusers.d"
NAME = "edged"
UNIT = f"{UNITS}/{NAME}.service"
DROP_INS = f"{UNIT}.d"
POOLS = f"{DROP_INS}/40-pools.conf"
PASSWORD = f"{DROP_INS}/20-password.conf"
OURS = {Path(POOLS).name, Path(PASSWORD).name, *(f"30-{name}.conf" for name in names())}
"""Drop-ins that `edged install` writes: of pools, of the password, of each probe that needs one."""
_LIMITS = tuple(
    "AmbientCapabilities BindReadOnlyPaths CapabilityBoundingSet DeviceAllow DevicePolicy Group "
    "LoadCredential LockPersonality NoNewPrivileges Private Protect RestrictAddressFamilies "
    "RestrictNamespaces RestrictRealtime RestrictSUIDSGID SupplementaryGroups SystemCall "
    "TemporaryFileSystem User".split()
)
_HIDDEN = ("/home", "/root", "/run/user")
_POOLS = """\
# Pools of edged.toml below /home: the rest there stays out of sight, as by ProtectHome=yes.
# Not ProtectHome=tmpfs, which systemd 252 mounts writable.
[Service]
ProtectHome=no
TemporaryFileSystem=/home:ro /root:ro /run/user:ro
"""


class Service(Struct, frozen=True):
    """What the service manager says; `text` is the service's own line."""

    active: str
    sub: str
    result: str
    exit_status: int
    restarts: int
    text: str
    since: str


def need_systemd(machine: Machine) -> None:
    """Raises InstallError where no systemd runs, or none lies in the image."""
    if machine.live and not machine.exists("/run/systemd/system"):
        raise InstallError(
            "systemd does not run here; have this system's own init start `edged run`",
            69,
        )
    if not any(machine.exists(path) for path in ("/usr/lib/systemd/systemd", "/lib/systemd/systemd")):
        raise InstallError(f"{machine.root}: there is no systemd in this image", 69)


def put(machine: Machine, name: str) -> None:
    """Unit and accounts out of the current release."""
    for source, place in (
        (f"{SOURCE}/{name}.sysusers", f"{ACCOUNTS}/{name}.conf"),
        (f"{SOURCE}/{name}.service", f"{UNITS}/{name}.service"),
    ):
        text = machine.read(source)
        if text is None and not machine.dry:
            raise InstallError(f"{source} is missing: run this again")
        machine.write(place, text or "")
    machine.run("systemd-sysusers", f"{ACCOUNTS}/{name}.conf", fault="the service's user cannot be made")


def bind_pools(machine: Machine, pools: Mapping[str, str]) -> None:
    """Let the service see, and not write, the pools that lie where it sees nothing else."""
    below = tuple(f"{folder}/" for folder in _HIDDEN)
    hidden = sorted({path for path in pools.values() if path.startswith(below)})
    if not hidden:
        machine.remove(POOLS)
        return
    # "-": a pool on a disk that is not there must not keep the service from starting.
    lines = [f'BindReadOnlyPaths="-{path}"' for path in hidden]
    machine.write(POOLS, _POOLS + "\n".join(lines) + "\n")


def start(machine: Machine, name: str) -> Iterator[str]:
    """Enable it; on a live machine start it again and wait until it says READY. Raises InstallError."""
    if not machine.live:
        machine.run("systemctl", "enable", f"{name}.service", fault="the service cannot be enabled")
        yield f"{name}: enabled, starts with the image"
        return
    machine.run("systemctl", "daemon-reload")
    machine.run("systemctl", "enable", f"{name}.service", fault="the service cannot be enabled")
    done = machine.run("systemctl", "restart", f"{name}.service")
    if machine.dry:
        return
    now = asked(machine, name)
    if done.code or now is None or now.active != "active":
        why = "its settings cannot be used" if now and now.exit_status == 78 else "it did not become ready"
        last = last_error(machine, name)
        raise InstallError(f"{name}.service: {why}: {last[0] or last[1]}", 78 if "settings" in why else 1)
    yield f"{name}: ready"


def asked(machine: Machine, name: str) -> Service | None:
    """What the service manager says, to anyone; None where it has no such unit or does not answer."""
    done = machine.ask("systemctl", "show", f"{name}.service")
    found = dict(line.split("=", 1) for line in done.out.splitlines() if "=" in line)
    if done.code or found.get("LoadState", "not-found") == "not-found":
        return None
    return Service(
        active=found.get("ActiveState", "unknown"),
        sub=found.get("SubState", ""),
        result=found.get("Result", ""),
        exit_status=int(found.get("ExecMainStatus", "0") or 0),
        restarts=int(found.get("NRestarts", "0") or 0),
        text=found.get("StatusText", ""),
        since=found.get("ActiveEnterTimestamp", ""),
    )


def last_error(machine: Machine, name: str) -> tuple[str | None, str]:
    """The last line of the journal at priority error, and why there is none where there is none. That it
    failed to start, which the service manager says after the service's own words, is no reason.
    """
    done = machine.ask("journalctl", "-q", "-u", name, "-p", "err", "-n", "20", "-o", "cat", "--no-pager")
    lines = [line for line in done.out.strip().splitlines() if not line.startswith("Failed to start ")]
    if lines:
        return lines[-1], ""
    if done.code or re.search("permission|No journal files", done.err):
        return None, "the journal is for root and the group systemd-journal"
    return None, "none in the journal"


def as_the_service(machine: Machine) -> tuple[str, ...]:
    """What to put before a program, so that it runs as the board's service does: that user, those limits."""
    texts = [machine.read(UNIT) or ""]
    texts += [machine.read(f"{DROP_INS}/{name}") or "" for name in machine.names(DROP_INS)]
    lines = [line for text in texts for line in text.splitlines() if line.startswith(_LIMITS)]
    options = [part for line in lines for part in ("-p", line)]
    folders = ("-p", "ReadWritePaths=-/run/edged -/var/lib/edged")
    return ("systemd-run", "--quiet", "--wait", "--pipe", "--collect", *options, *folders)


def remove(machine: Machine, name: str) -> Iterator[str]:
    """Stop it and take unit, own drop-ins and its start at boot away; tells which drop-ins are somebody's."""
    if machine.exists(f"{UNITS}/{name}.service"):
        now = ("--now",) if machine.live else ()
        machine.run("systemctl", "disable", *now, f"{name}.service")
    machine.remove(f"{UNITS}/{name}.service")
    folder = f"{UNITS}/{name}.service.d"
    for drop_in in machine.names(folder):
        if drop_in in OURS:
            machine.remove(f"{folder}/{drop_in}")
        else:
            yield f"{folder}/{drop_in} stays: edged did not write it"
    if not machine.names(folder):
        machine.remove(folder)
    machine.remove(f"{ACCOUNTS}/{name}.conf")
    if machine.exists(ACCOUNTS) and not machine.names(ACCOUNTS):
        machine.remove(ACCOUNTS)
    if machine.live:
        machine.run("systemctl", "daemon-reload")
        machine.run("systemctl", "reset-failed", f"{name}.service")
