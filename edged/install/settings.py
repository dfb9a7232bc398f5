"""edged.toml and the broker's password, as `edged install` writes them. A file that somebody edited is left.

The text is the sample with the asked-for keys filled in, or the file that is there with them changed.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from typing import Any

from edged.config import CREDENTIAL, SAMPLE, ConfigError, check, parse
from edged.install.machine import InstallError, Machine
from edged.install.units import PASSWORD

FOLDER = "/etc/edged"
FILE = f"{FOLDER}/edged.toml"
WRITTEN = "/opt/edged/edged.toml.sha256"
"""The hash of what was written last: a file that still has it was edited by nobody."""
SECRET = f"{FOLDER}/credentials/{CREDENTIAL}"


def put(machine: Machine, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """Write the settings, or beside an edited file edged.toml.new; says which. Raises InstallError."""
    there = machine.read(FILE)
    if there is not None and not tables:
        return f"{FILE}: kept"
    text = filled(SAMPLE.read_text() if there is None else there, tables)
    fault = faults(text)
    if fault and there is None:
        raise InstallError(f"these options cannot be used: {fault}", 78)
    if there is None or _hash(there) == (machine.read(WRITTEN) or "").strip():
        machine.write(FILE, text)
        machine.write(WRITTEN, _hash(text) + "\n")
        return f"{FILE}: written"
    if text == there:
        return f"{FILE}: kept, it says so already"
    machine.write(f"{FILE}.new", text)
    return f"{FILE}: kept, since it was edited; what was asked for lies in {FILE}.new"


def faults(text: str) -> str:
    """What keeps these settings from being used, "" where nothing does."""
    try:
        check(parse(text.encode(), FILE))
    except ConfigError as error:
        return str(error)
    return ""


def filled(text: str, tables: Mapping[str, Mapping[str, Any]]) -> str:
    """The text with these keys set: where they stand, else at the end of their table, else in a new one."""
    lines = text.splitlines()
    for table, keys in tables.items():
        for key, value in keys.items():
            _set(lines, table, key, json.dumps(value, ensure_ascii=False))
    return "\n".join(lines) + "\n"


def _set(lines: list[str], table: str, key: str, value: str) -> None:
    headers = [number for number, line in enumerate(lines) if re.match(r"\s*\[", line)]
    start = next((number for number in headers if lines[number].split("#")[0].strip() == f"[{table}]"), None)
    if start is None:
        lines += ["", f"[{table}]", f"{key} = {value}"]
        return
    stop = next((number for number in headers if number > start), len(lines))
    for commented in ("", "#"):
        for number in range(start + 1, stop):
            if re.match(rf"\s*{commented}\s*{re.escape(key)}\s*=", lines[number]):
                lines[number] = f"{key} = {value}"
                return
    lines.insert(start + 1, f"{key} = {value}")


def put_password(machine: Machine, password: str) -> None:
    """The broker's password, root's alone; the service gets it as a credential."""
    machine.folder(f"{FOLDER}/credentials", 0o700)
    machine.write(SECRET, password + "\n", 0o600, secret=True)
    machine.write(
        PASSWORD,
        "# The broker's password: root's file, which this service alone is given.\n"
        f"[Service]\nLoadCredential={CREDENTIAL}:{SECRET}\n",
    )


def _hash(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()
