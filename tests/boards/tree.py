"""Debian trees of other instruction sets, run by qemu's user-mode emulation; unpacked natively, and cached.

Nothing in them is configured, none is booted: a tree holds Python, what a board needs of Debian, and torch.
"""

import hashlib
import os
import shutil
import subprocess
from pathlib import Path
from typing import NamedTuple

from tests.systemd.tree import cache

ROOT = Path(__file__).resolve().parents[2]
SUITE, PYTHON = "trixie", "python3.13"
"""Debian 13 is the first whose torch is one that the project supports, on all three instruction sets."""
PYTHON_PACKAGES = "base-files python3".split()
LIGHT_PACKAGES = [
    *PYTHON_PACKAGES,
    *"python3-hypothesis python3-msgspec python3-numpy python3-paho-mqtt".split(),
    *"python3-psutil python3-pytest python3-safetensors python3-typer".split(),
]
TORCH_PACKAGES = [*LIGHT_PACKAGES, *"python3-torch libopenblas0-pthread".split()]
LEFT_OUT = (
    "/usr/share/doc/* /usr/share/man/* /usr/share/locale/* /usr/share/X11/* /usr/lib/libtorch-test/* "
    "/usr/lib/python3/dist-packages/torch/bin/test_* /usr/include/* /usr/share/javascript/*"
).split()
TOOLS = "mmdebstrap qemu-aarch64-static qemu-riscv64-static".split()
BINFMT = Path("/proc/sys/fs/binfmt_misc")


class Isa(NamedTuple):
    """An instruction set as Debian, `uname` and qemu call it; `cpu` is the one emulated, "" for qemu's own.

    qemu's own arm64 takes five times as long as a Cortex-A72.
    """

    name: str
    machine: str
    cpu: str = ""


ISAS = (Isa("arm64", "aarch64", "cortex-a72"), Isa("riscv64", "riscv64"))


def missing() -> str:
    """Why no tree can be made or run here, "" where one can."""
    if os.geteuid() != 0:
        return "emulated boards need root, for their Debian trees and for binfmt_misc"
    absent = [tool for tool in TOOLS if shutil.which(tool) is None]
    return f"not installed: {', '.join(absent)} (Debian: mmdebstrap qemu-user-static)" if absent else ""


class Emulated:
    """A board's interpreter: the tree's Python over a compiled copy of the project in `sources`."""

    def __init__(self, isa: Isa, packages: list[str], sources: Path) -> None:
        self.isa, self.sources = isa, sources
        self.tree = tree(isa.name, packages)
        compiled(self.tree / "usr/lib")
        register(isa)
        self.python = str(self.tree / "usr/bin" / PYTHON)
        self.environment = {
            "QEMU_LD_PREFIX": str(self.tree),
            "PYTHONPATH": str(sources),
            "PYTHONSAFEPATH": "1",  # else the folder that it is started in comes first
            "PYTHONDONTWRITEBYTECODE": "",
            "OMP_NUM_THREADS": "1",
            **({"QEMU_CPU": isa.cpu} if isa.cpu else {}),
        }

    def run(self, *arguments: str, cwd: Path | None = None) -> "subprocess.CompletedProcess[str]":
        """The interpreter with these arguments, to its end."""
        return subprocess.run(
            [self.python, *arguments],
            env={**os.environ, **self.environment},
            cwd=cwd or ROOT,
            capture_output=True,
            text=True,
            check=False,
        )


def tree(architecture: str, packages: list[str]) -> Path:
    """The cached tree with these packages; made where there is none, in about a minute."""
    name = f"{SUITE}-{architecture}-{hashlib.sha256(' '.join(packages + LEFT_OUT).encode()).hexdigest()[:8]}"
    place, part = cache() / name, cache() / f"{name}.part"
    if not place.exists():
        _run("rm", "-rf", str(part))
        options = ["--quiet", "--mode=root", "--variant=extract", "--skip=check/qemu"]
        options += [f"--architectures={architecture}", f"--include={','.join(packages)}"]
        options += ['--aptopt=APT::Install-Recommends "false"']
        options += [f"--dpkgopt=path-exclude={pattern}" for pattern in LEFT_OUT]
        _run("mmdebstrap", *options, SUITE, str(part), mirror())
        # As the alternatives would have it.
        for library in part.glob("usr/lib/*-linux-gnu*/openblas-pthread/lib*.so.?"):
            (library.parents[1] / library.name).symlink_to(f"openblas-pthread/{library.name}")
        for library in part.glob("usr/lib/*-linux-gnu*/*/lib*.so.3"):
            link = library.parents[1] / library.name
            if library.parent.name in {"blas", "lapack"} and not link.exists():
                link.symlink_to(f"{library.parent.name}/{library.name}")
        part.rename(place)
    return place


def mirror() -> str:
    """Where this machine's own packages come from."""
    places = [*Path("/etc/apt/sources.list.d").glob("*.sources"), Path("/etc/apt/sources.list")]
    lines = [line for place in places if place.exists() for line in place.read_text().splitlines()]
    words = " ".join(line for line in lines if not line.startswith("#")).split()
    return next(word for word in words if "://" in word)


def compiled(folder: Path) -> None:
    """Byte-compile what lies in there by a Python of this machine's own instruction set: emulated, an import
    of torch alone would take five minutes. What is compiled already is passed over."""
    done = folder / ".compiled"
    if done.exists():
        return
    own = tree(_asked("dpkg", "--print-architecture"), PYTHON_PACKAGES)
    (loader,) = own.glob("lib*/ld-linux-*.so.*")
    libraries = ":".join(str(place) for place in own.glob("usr/lib/*-linux-gnu*"))
    command = [str(loader), "--library-path", libraries, str(own / "usr/bin" / PYTHON), "-I", "-S"]
    _run(*command, "-m", "compileall", "-q", str(folder), code=(0, 1))  # 1: some file is no Python 3
    done.touch()


def copied(folder: Path) -> Path:
    """The project as boards take it, with its tests, compiled; the recorded machines beside it."""
    sources = folder / "edged"
    # Not the tests' own rule on skips: it wants a newer pytest than Debian's.
    left = shutil.ignore_patterns("__pycache__", "conftest.py")
    for name in ("edged", "coordinator", "probes", "systemd", "tests"):
        shutil.copytree(ROOT / name, sources / name, ignore=left)
    (sources / "pytest.ini").write_text("[pytest]\npythonpath = .\n")
    shared = ROOT.parent / "shared"
    if shared.exists():
        (folder / "shared").symlink_to(shared)
    compiled(sources)
    return sources


def register(isa: Isa) -> None:
    """Have the kernel start that instruction set's programs by qemu, as boards have children. It lasts until
    the kernel's own next start."""
    if not (BINFMT / "register").exists():
        _run("mount", "-t", "binfmt_misc", "binfmt_misc", str(BINFMT))
    if not (BINFMT / f"qemu-{isa.machine}").exists():
        (BINFMT / "register").write_text(Path(f"/usr/lib/binfmt.d/qemu-{isa.machine}.conf").read_text())


def _asked(*command: str) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


def _run(*command: str, code: tuple[int, ...] = (0,)) -> None:
    environment = {**os.environ, "PYTHONDONTWRITEBYTECODE": ""}
    done = subprocess.run(command, capture_output=True, text=True, check=False, env=environment)
    assert done.returncode in code, f"{' '.join(command)}\n{done.stdout[-2000:]}\n{done.stderr[-3000:]}"
