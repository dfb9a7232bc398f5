"""Releases below /opt/edged: one environment a version, a link to the current one, the last one kept.

A release is whole once its mark is written, last of all; what an interrupted installation left is made anew.
"""

from __future__ import annotations

import hashlib
import json
import shlex
from pathlib import PurePosixPath

import msgspec
from msgspec import Struct

from edged.install.machine import InstallError, Machine

HOME = "/opt/edged"
CURRENT = f"{HOME}/current"
PREVIOUS = f"{HOME}/previous"
MARK = "release.json"
PROGRAMS = ("edged", "edged-coordinator")
BIN = "/usr/local/bin"
OLDEST_PYTHON = (3, 10)

_LOOK = """
import importlib.util, json, platform, sys
found = lambda name: importlib.util.find_spec(name) is not None
print(json.dumps({"version": list(sys.version_info[:2]), "arch": platform.machine(),
    "venv": found("venv") and found("ensurepip"), "numpy": found("numpy"), "torch": found("torch")}))
"""

_LAUNCHER = """\
#!/bin/sh
# Starts {program} of this release, or says why it cannot be: its Python was replaced by another.
here={folder}
same='import sys; sys.exit(sys.version_info[:2] != ({major}, {minor}))'
"$here/bin/python" -I -S -c "$same" 2>/dev/null || {{
    why="{program} needs Python {major}.{minor}, which this system no longer has. Install it anew:"
    echo "${{JOURNAL_STREAM:+<3>}}$why" >&2
    echo "  pipx install --force edged && sudo \\"\\$(command -v edged)\\" install" >&2
    exit 78
}}
exec "$here/bin/{program}" "$@"
"""


class Python(Struct, frozen=True):
    """The system's own Python, and what the distribution supplies for it."""

    version: tuple[int, int]
    arch: str
    venv: bool
    numpy: bool
    torch: bool

    @property
    def tag(self) -> str:
        return f"py{self.version[0]}.{self.version[1]}"


class Mark(Struct, frozen=True):
    """What a whole release was made of."""

    version: str
    wheel_sha256: str
    python: tuple[int, int]
    system_packages: bool


def system_python(machine: Machine) -> Python:
    """Never the caller's. Raises InstallError for one that is missing, too old or makes no environments."""
    done = machine.ask("/usr/bin/python3", "-I", "-c", _LOOK)
    if done.code:
        raise InstallError(
            "/usr/bin/python3 does not run; Debian, Ubuntu, Raspberry Pi OS: apt install python3"
        )
    python = msgspec.json.decode(done.out, type=Python)
    if python.version < OLDEST_PYTHON:
        raise InstallError(f"/usr/bin/python3 is {python.version[0]}.{python.version[1]}; edged needs 3.10")
    if not python.venv:
        raise InstallError("/usr/bin/python3 cannot make environments: apt install python3-venv")
    return python


def build(machine: Machine, wheel: tuple[str, bytes], python: Python, wheels: str = "") -> str:
    """The folder of a whole release of this wheel; one that is whole already stays. Raises InstallError.

    `wheels` is a folder that holds all packages, for a machine without a registry.
    """
    name, data = wheel
    version = name.split("-")[1]
    mark = Mark(version, hashlib.sha256(data).hexdigest(), python.version, python.numpy or python.torch)
    folder = f"{HOME}/{version}"
    if (there := marked(machine, folder)) and there.wheel_sha256 != mark.wheel_sha256:
        folder += f"-{mark.wheel_sha256[:8]}"  # the running release is never changed under the service
    if marked(machine, folder) == mark and machine.ask(f"{folder}/edged", "version").code == 0:
        machine.tell(f"keep {folder}: it is whole")
        return folder
    machine.remove(folder)
    if not machine.dry:
        machine.path(folder).mkdir(parents=True)
        machine.path(f"{folder}/{name}").write_bytes(data)
    options = ("--system-site-packages",) if mark.system_packages else ()
    machine.run(
        "/usr/bin/python3", "-I", "-m", "venv", *options, folder, fault=f"{folder}: no environment there"
    )
    sources = ("--no-index", "--find-links", wheels) if wheels else ()
    pip = (f"{folder}/bin/python", "-I", "-m", "pip", "install", "--disable-pip-version-check", "-q")
    machine.run(
        *pip, *sources, f"{folder}/{name}", fault="pip cannot install edged (running it again goes on)"
    )
    for program in PROGRAMS:
        text = _LAUNCHER.format(
            program=program, folder=shlex.quote(folder), major=python.version[0], minor=python.version[1]
        )
        machine.write(f"{folder}/{program}", text, 0o755)
    machine.write(f"{folder}/{MARK}", msgspec.json.encode(mark))
    return folder


def switch(machine: Machine, folder: str) -> bool:
    """Make it the current one, and the current one the previous. Whether it was another."""
    name, before = PurePosixPath(folder).name, machine.linked(CURRENT)
    if before and before != name and marked(machine, CURRENT):
        machine.link(PREVIOUS, before)
    # Relative, so that the link leads inside an image too.
    changed = machine.link(CURRENT, name)
    for program in PROGRAMS:
        machine.link(f"{BIN}/{program}", f"{CURRENT}/{program}")
    return changed


def roll_back(machine: Machine) -> str:
    """Make the previous release the current one; a second time undoes it. Raises InstallError."""
    before = machine.linked(PREVIOUS)
    if before is None or marked(machine, PREVIOUS) is None:
        raise InstallError(f"there is no earlier release below {HOME} to go back to")
    switch(machine, f"{HOME}/{before}")
    return f"{HOME}/{before}"


def tidy(machine: Machine) -> None:
    """Remove releases that are neither current nor previous."""
    kept = {machine.linked(CURRENT), machine.linked(PREVIOUS)}
    for name in machine.names(HOME):
        path = machine.path(f"{HOME}/{name}")
        release = path.is_dir() and not path.is_symlink() and name[:1].isdigit()
        if release and name not in kept:
            machine.remove(f"{HOME}/{name}")


def marked(machine: Machine, folder: str) -> Mark | None:
    """What a whole release was made of; None where there is none."""
    text = machine.read(f"{folder}/{MARK}")
    try:
        return msgspec.json.decode(text, type=Mark) if text else None
    except (msgspec.DecodeError, json.JSONDecodeError):
        return None
