"""What a sensor needs that the plain unit does not give: one drop-in each, and the rule for RAPL counters.

Found by asking `edged probe list` as root; told again as the service sees it, inside the unit's own limits.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from edged.install import units
from edged.install.machine import Machine
from edged.install.releases import CURRENT
from edged.install.units import DROP_INS, SOURCE

RULE = "/etc/udev/rules.d/60-edged-energy.rules"
RULE_SOURCE = f"{SOURCE}/60-edged-energy.rules"
RAPL = ("powercap", "pyrapl")
SIDE_CHANNEL = (
    "note: RAPL counters tell a little of what the processor computes (CVE-2020-8694), so the kernel shows "
    "them to root alone. The group edged-energy may read them now; --energy-group no takes that back."
)


def put(machine: Machine, energy_group: bool) -> Iterator[str]:
    """Write a drop-in for each kind of sensor that is here, and take away those of sensors that are gone."""
    found = _listed(machine, (f"{CURRENT}/edged", "probe", "list", "--json"))
    if found is None:
        yield "sensors: not looked at yet (a dry run, or an image); `edged install` on the board does"
        return
    here = {_probe(row) for row in found if row["status"] != "absent"}
    if here & set(RAPL) and energy_group:
        here.add("powercap")
        yield SIDE_CHANNEL
    else:
        here.discard("powercap")
    _rule(machine, wanted="powercap" in here)
    for name in machine.names(f"{SOURCE}/sensors"):
        sensor = name.removesuffix(".conf")
        text = machine.read(f"{SOURCE}/sensors/{name}") or ""
        missing = _missing_groups(machine, text)
        if sensor in here and not missing:
            machine.write(f"{DROP_INS}/30-{name}", text)
            yield f"sensors: {sensor}: {DROP_INS}/30-{name}"
        else:
            machine.remove(f"{DROP_INS}/30-{name}")
            if sensor in here:
                yield f"sensors: {sensor} needs the group {missing[0]}, which this system does not have"


def as_the_service_sees(machine: Machine) -> Iterator[str]:
    """The same list as the service's user within the service's limits: what root reads and it does not."""
    root = _listed(machine, (f"{CURRENT}/edged", "probe", "list", "--json"))
    command = (*units.as_the_service(machine), f"{CURRENT}/edged", "probe", "list", "--json")
    service = _listed(machine, command)
    if root is None or service is None:
        yield "sensors: could not be asked as the service"
        return
    seen = {row["id"]: row for row in service}
    for row in root:
        now = seen.get(row["id"], {"status": "absent", "reason": "not found", "remedy": ""})
        if row["status"] == "ok" != now["status"]:
            why = f"{now['reason']} {now['remedy']}".strip()
            yield f"sensors: root reads {row['id']}, the service does not: {why}"
    best = next((row for row in service if row["role"] == "headline"), None)
    yield f"sensors: joules from {best['id']}" if best else "sensors: none gives joules; `edged probe list`"


def _rule(machine: Machine, *, wanted: bool) -> None:
    text = machine.read(RULE_SOURCE) or ""
    changed = machine.write(RULE, text) if wanted else machine.remove(RULE)
    if changed and machine.live:
        machine.run("udevadm", "control", "--reload")
        if wanted:
            machine.run("udevadm", "trigger", "--action=change", "--subsystem-match=powercap", "--settle")
        else:
            close_counters(machine)


def close_counters(machine: Machine) -> None:
    """Give the counters back to root alone; the kernel does so at the next start anyway."""
    for path in sorted(machine.path("/sys/class/powercap").glob("*/energy_uj")):
        inside = "/" + str(path.relative_to(machine.root))
        machine.run("chgrp", "root", inside)
        machine.run("chmod", "0400", inside)


def _listed(machine: Machine, command: tuple[str, ...]) -> list[dict[str, Any]] | None:
    if machine.dry or not machine.live:
        return None
    done = machine.ask(*command)
    try:
        found: list[dict[str, Any]] = json.loads(done.out)["channels"]
    except (ValueError, KeyError, TypeError):
        return None
    return found


def _probe(row: dict[str, Any]) -> str:
    """The probe of a channel: ids begin with its name."""
    return str(row["id"]).replace(":", "/").split("/")[0]


def _missing_groups(machine: Machine, text: str) -> list[str]:
    """Groups that the drop-in names and the system has not: with one of them no service starts."""
    wanted = [
        name
        for line in text.splitlines()
        if line.startswith("SupplementaryGroups=")
        for name in line.partition("=")[2].split()
    ]
    there = {line.split(":")[0] for line in (machine.read("/etc/group") or "").splitlines()}
    return [name for name in wanted if name not in there]
