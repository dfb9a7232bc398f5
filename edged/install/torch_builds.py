"""Which torch fits a board, and its folder beside the releases, so that it survives upgrades.

Never one that brings CUDA to a board without it. It is not imported here.
"""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

from edged.install.machine import InstallError, Machine
from edged.install.releases import HOME, Python

CPU_INDEX = "https://download.pytorch.org/whl/cpu"
ARM_VERSION = "2.10.0"
"""The last release on PyPI whose arm64 wheel is a CPU build."""
DISTRIBUTION = "apt install python3-torch libopenblas0-pthread, then run this again"


class Torch(Struct, frozen=True):
    """What to do about torch, and why: `requirement` is pip's, empty where there is nothing to fetch."""

    text: str
    requirement: tuple[str, ...] = ()


def fitting(python: Python, root: Path) -> Torch:
    """The build for this board, by its instruction set and what the distribution has (docs/boards.md)."""
    if python.torch:
        return Torch("torch: the distribution's")
    if is_jetson(root):
        return Torch("torch: a Jetson takes NVIDIA's wheel for its JetPack: install --torch PATH_OR_URL")
    if python.arch in {"x86_64", "amd64"}:
        if (root / "proc/driver/nvidia/version").exists():
            return Torch("torch: PyPI's, with CUDA, for the NVIDIA GPU here", ("torch>=2.6,<3",))
        return Torch("torch: PyTorch's CPU build", ("--index-url", CPU_INDEX, "torch>=2.6,<3"))
    if python.arch == "aarch64":
        return Torch(
            f"torch: {ARM_VERSION}, the last CPU build for arm64 on PyPI", (f"torch=={ARM_VERSION}",)
        )
    return Torch(f"torch: none to fetch for {python.arch}: {DISTRIBUTION}")


def is_jetson(root: Path) -> bool:
    """By NVIDIA's release file or the device tree."""
    if (root / "etc/nv_tegra_release").exists():
        return True
    try:
        return b"nvidia,tegra" in (root / "proc/device-tree/compatible").read_bytes()
    except OSError:
        return False


def kept(machine: Machine, python: Python) -> str | None:
    """The newest torch folder for this Python, None where there is none."""
    found = [name for name in machine.names(HOME) if re.fullmatch(rf"torch-.+-{re.escape(python.tag)}", name)]
    return f"{HOME}/{max(found, key=_order)}" if found else None


def join(machine: Machine, folder: str, python: Python, asked: str, wheels: str = "") -> str:
    """Give the release in `folder` a torch and say which; `asked` is auto, no, or pip's word for one.

    What is there already is joined, not fetched again, unless a certain one is asked for.
    """
    lib = f"{folder}/lib/python{python.version[0]}.{python.version[1]}/site-packages"
    there = kept(machine, python)
    if asked == "no" and there is None:
        return "torch: none, as asked"
    if asked in {"auto", "no"}:
        if there is not None:
            machine.write(f"{lib}/edged-torch.pth", f"{there}\n")
            return f"torch: {there}, kept"
        choice = fitting(python, machine.root)
    else:
        choice = Torch(f"torch: {asked}, as asked", (asked,))
    if not choice.requirement:
        return choice.text
    there = _fetched(machine, folder, python, choice.requirement, wheels)
    machine.write(f"{lib}/edged-torch.pth", f"{there}\n")
    return f"{choice.text}, in {there}"


def _fetched(machine: Machine, folder: str, python: Python, requirement: tuple[str, ...], wheels: str) -> str:
    """The folder of a freshly fetched one. Half of one never has a name that is looked for."""
    part = f"{HOME}/part-torch"
    machine.remove(part)
    sources = ("--no-index", "--find-links", wheels) if wheels else ()
    pip = (f"{folder}/bin/python", "-I", "-m", "pip", "install", "--disable-pip-version-check", "-q")
    machine.run(
        *pip,
        "--target",
        part,
        *sources,
        *requirement,
        fault="no torch was installed (--torch no goes without)",
    )
    if machine.dry:
        return f"{HOME}/torch-VERSION-{python.tag}"
    version = next((found[1] for name in machine.names(part) if (found := _IS_TORCH.match(name))), None)
    if version is None:
        raise InstallError(f"{' '.join(requirement)} brought no torch")
    place = f"{HOME}/torch-{version}-{python.tag}"
    machine.remove(place)
    machine.path(part).rename(machine.path(place))
    return place


_IS_TORCH = re.compile(r"torch-([^-]+)\.dist-info$")


def _order(name: str) -> list[int]:
    return [int(number) for number in re.findall(r"\d+", name.split("-")[1])]
