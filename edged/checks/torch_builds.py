"""Which build of torch fits a board and how it gets there, by its kind. It imports and installs nothing."""

from __future__ import annotations

import sys
from pathlib import Path

from edged.install.releases import HOME
from edged.install.torch_builds import ARM_VERSION, CPU_INDEX, is_jetson

FROM_THE_DISTRIBUTION = (
    "sudo apt install python3-torch libopenblas0-pthread, and make the environment with "
    "python3 -m venv --system-site-packages"
)


def way_out(arch: str, root: Path, prefix: str = sys.prefix) -> str:
    """One line for this instruction set and board: which build, and the command for the environment here."""
    if prefix.startswith(f"{HOME}/"):
        wheel = " --torch PATH_OR_URL_OF_NVIDIAS_WHEEL" if is_jetson(root) else ""
        return f"sudo edged install{wheel} (fetches the build that fits this board, or says where it is)"
    if is_jetson(root):
        return "NVIDIA's wheel for this JetPack (PyTorch for Jetson): pip install PATH_OR_URL_OF_THE_WHEEL"
    if arch in ("x86_64", "AMD64"):
        if (root / "proc/driver/nvidia/version").exists():
            return "the build with CUDA, for the NVIDIA GPU here: pip install 'edged[torch]'"
        return f"the CPU build, without gigabytes of CUDA: pip install torch --index-url {CPU_INDEX}"
    if arch == "aarch64":
        return f"{ARM_VERSION}, the last arm64 wheel without CUDA: pip install 'edged[torch]'"
    if arch == "riscv64":
        return f"there is no wheel for riscv64; Debian 13 has 2.6.0: {FROM_THE_DISTRIBUTION}"
    return f"there is no build for {arch}: take a 64-bit image (arm64, riscv64 or x86-64)"


def another(arch: str, root: Path) -> str:
    """What to take where a build does not fit this processor."""
    if is_jetson(root):
        return way_out(arch, root)
    return f"a build made for more processors, the distribution's: {FROM_THE_DISTRIBUTION}"
