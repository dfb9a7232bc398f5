"""Debian trees with a real systemd as PID 1: made once and cached, booted as often as wanted over an overlay.

No network: trees have loopback alone, which several of them may share.
"""

import hashlib
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterable
from importlib import metadata
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[2]
SUITES = {(3, 11): "bookworm", (3, 13): "trixie"}
"""The Debian whose Python is the one that runs the tests: wheels and torch then fit both."""
PACKAGES = (
    "systemd systemd-sysv dbus udev python3 python3-venv sudo mosquitto mosquitto-clients passwd".split()
)
TOOLS = "systemd-nspawn mmdebstrap nsenter mount umount".split()
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
USER_PATH = "$HOME/.local/bin:$PATH"


def missing() -> str:
    """Why no tree can be booted here, "" where one can."""
    if os.geteuid() != 0:
        return "booting a tree needs root"
    if sys.version_info[:2] not in SUITES:
        return f"no Debian release has Python {sys.version_info[0]}.{sys.version_info[1]}"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)} (Debian: systemd-container mmdebstrap)" if absent else ""


def cache() -> Path:
    given = os.environ.get("XDG_CACHE_HOME")
    folder = (Path(given) if given else Path.home() / ".cache") / "edged-tests"
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def base() -> Path:
    """The cached tree; made where there is none, in about a minute."""
    name = f"{SUITES[sys.version_info[:2]]}-{hashlib.sha256(' '.join(PACKAGES).encode()).hexdigest()[:8]}"
    place, part = cache() / name, cache() / f"{name}.part"
    if not place.exists():
        _run("rm", "-rf", str(part))
        options = ("--quiet", "--variant=minbase", f"--include={','.join(PACKAGES)}")
        _run("mmdebstrap", *options, SUITES[sys.version_info[:2]], str(part))
        part.rename(place)
    return place


def wheels(folder: Path, scratch: Path, versions: Iterable[str]) -> None:
    """A new folder with wheels of edged under each of these versions, and of all that it needs."""
    asked = (ROOT / "pyproject.toml").read_text().partition("dependencies = [")[2].partition("\n]")[0]
    place = cache() / f"wheels-{hashlib.sha256(asked.encode()).hexdigest()[:8]}"
    if not place.exists():
        part = place.with_suffix(".part")
        names = [name for name in re.findall(r'"([^"]+)"', asked) if ";" not in name]
        pip = (sys.executable, "-m", "pip", "download", "-q", "--disable-pip-version-check")
        _run(*pip, "--only-binary=:all:", "-d", str(part), *names)
        part.rename(place)
    shutil.copytree(place, folder)
    for version in versions:
        source = scratch / f"source-{version}"
        source.mkdir()
        for name in ("edged", "coordinator", "probes", "systemd"):
            shutil.copytree(ROOT / name, source / name, ignore=shutil.ignore_patterns("__pycache__"))
        for name in ("pyproject.toml", "README.md", "LICENSE"):
            shutil.copy(ROOT / name, source)
        init = source / "edged/__init__.py"
        init.write_text(re.sub(r'__version__ = ".*"', f'__version__ = "{version}"', init.read_text()))
        build = (sys.executable, "-m", "pip", "wheel", "-q", "--no-deps", "--disable-pip-version-check")
        _run(*build, "-w", str(folder), str(source))


def torch_layer(folder: Path) -> Path:
    """The torch of the running Python where `edged install` keeps one; linked where that goes."""
    python = f"py{sys.version_info[0]}.{sys.version_info[1]}"
    place = folder / f"opt/edged/torch-{metadata.version('torch').split('+')[0]}-{python}"
    todo, seen = ["torch"], set[str]()
    while todo:
        found = metadata.distribution(todo.pop())
        if found.name in seen or found.name == "numpy":
            continue
        seen.add(found.name)
        todo += [
            re.split(r"[^\w.-]", need)[0]
            for need in found.requires or ()
            if "extra ==" not in need and _here(need)
        ]
        for file in found.files or ():
            source = Path(str(found.locate_file(file)))
            if ".." not in file.parts and "include" not in file.parts and source.is_file():
                copy = place / file
                copy.parent.mkdir(parents=True, exist_ok=True)
                try:
                    copy.hardlink_to(source)
                except OSError:
                    shutil.copy(source, copy)
    return folder


def _here(need: str) -> bool:
    """Whether a requirement is installed: those for other systems are not."""
    try:
        metadata.distribution(re.split(r"[^\w.-]", need)[0])
    except metadata.PackageNotFoundError:
        return False
    return True


class Tree:
    """One machine: `layers` below, the highest first, and what it writes in `folder`."""

    def __init__(self, folder: Path, layers: list[Path]) -> None:
        self.root = folder / "root"
        self.upper = folder / "upper"
        self._nspawn: subprocess.Popen[bytes] | None = None
        self._log = folder / "console.log"
        self.leader = 0
        for name in (self.root, self.upper, folder / "work"):
            name.mkdir(parents=True)
        lower = ":".join(map(str, layers))
        options = f"lowerdir={lower},upperdir={self.upper},workdir={folder / 'work'}"
        _run("mount", "-t", "overlay", "overlay", "-o", options, str(self.root))

    def boot(self, network: int = 0) -> None:
        """Start its systemd and wait for it; `network` is the leader of a tree whose loopback it shares."""
        (self.root / "etc/machine-id").write_text("")
        (self.root / "etc/hosts").write_text("127.0.0.1 localhost\n")
        net = f"--network-namespace-path=/proc/{network}/ns/net" if network else "--private-network"
        command = ["systemd-nspawn", "--register=no", "--keep-unit", "-q", "--boot", "-D", str(self.root)]
        with self._log.open("ab") as log:
            self._nspawn = subprocess.Popen(
                [*command, net, "--console=pipe"], stdin=subprocess.DEVNULL, stdout=log, stderr=log
            )
        children = Path(f"/proc/{self._nspawn.pid}/task/{self._nspawn.pid}/children")
        self.leader = int(self.wait(children.read_text, "the first process").split()[0])
        self.wait(self._is_up, "systemd")

    def _is_up(self) -> bool:
        return self.ask("systemctl is-system-running").stdout.strip() in ("running", "degraded")

    def power_off(self) -> None:
        if self._nspawn is None:
            return
        self.ask("systemctl poweroff")
        try:
            self._nspawn.wait(60)
        except subprocess.TimeoutExpired:
            self._nspawn.kill()
            self._nspawn.wait()
        self._nspawn = None

    def close(self) -> None:
        self.power_off()
        _run("umount", str(self.root))

    def ask(self, command: str, user: str = "") -> "subprocess.CompletedProcess[str]":
        """A shell command in there, as root or as that user with a login and its own path."""
        inside = ["sh", "-c", command]
        if user:
            inside = ["runuser", "-l", user, "-c", f"export PATH={USER_PATH}; {command}"]
        enter = ["nsenter", "-t", str(self.leader), "-m", "-u", "-i", "-n", "-p", "-C", "--"]
        if self._nspawn is None:
            enter = ["chroot", str(self.root)]
        return subprocess.run(
            [*enter, "env", "-i", f"PATH={PATH}", "LANG=C.UTF-8", *inside],
            capture_output=True,
            text=True,
            check=False,
            stdin=subprocess.DEVNULL,
        )

    def do(self, command: str, user: str = "") -> str:
        """The same, which must succeed; its output."""
        done = self.ask(command, user)
        assert done.returncode == 0, f"{command}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
        return done.stdout

    def show(self, unit: str) -> dict[str, str]:
        """What systemd says of a unit."""
        lines = self.do(f"systemctl show {unit}").splitlines()
        return {"StatusText": "", **dict(line.split("=", 1) for line in lines if "=" in line)}

    def main(self, unit: str = "edged") -> int:
        """Its main process, as numbered in there."""
        return int(self.show(unit)["MainPID"])

    def drop_in(self, unit: str, text: str) -> None:
        folder = f"/etc/systemd/system/{unit}.service.d"
        self.do(f"mkdir -p {folder} && printf %s {shlex.quote(text)} > {folder}/90-test.conf")
        self.do("systemctl daemon-reload")

    def wait(self, true: Callable[[], Any], what: str, patience: float = 120.0) -> Any:
        until = time.monotonic() + patience
        while not (found := true()):
            if time.monotonic() > until:
                log = self.ask("journalctl --no-pager -n 60").stdout if self.leader else ""
                raise AssertionError(f"waited {patience:g} s for {what}\n{log}")
            time.sleep(0.2)
        return found


def _run(*command: str) -> None:
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
