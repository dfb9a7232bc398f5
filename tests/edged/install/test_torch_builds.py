"""Which torch a board gets, and that it is fetched once."""

from pathlib import Path

import pytest

from edged.install import torch_builds
from edged.install.releases import Python
from edged.install.torch_builds import CPU_INDEX, fitting
from tests.edged.install.image import Image


def python(arch: str, *, torch: bool = False) -> Python:
    return Python((3, 11), arch, venv=True, numpy=torch, torch=torch)


@pytest.mark.parametrize(
    ("arch", "files", "requirement"),
    [
        ("x86_64", (), ("--index-url", CPU_INDEX, "torch>=2.6,<3")),
        ("x86_64", ("proc/driver/nvidia/version",), ("torch>=2.6,<3",)),
        ("aarch64", (), ("torch==2.10.0",)),
        ("aarch64", ("etc/nv_tegra_release",), ()),
        ("riscv64", (), ()),
    ],
)
def test_the_build_that_fits_is_chosen(
    tmp_path: Path, arch: str, files: tuple[str, ...], requirement: tuple[str, ...]
) -> None:
    for name in files:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert fitting(python(arch), tmp_path).requirement == requirement


def test_a_jetson_is_known_by_its_device_tree(tmp_path: Path) -> None:
    file = tmp_path / "proc/device-tree/compatible"
    file.parent.mkdir(parents=True)
    file.write_bytes(b"nvidia,p3768-0000\0nvidia,tegra234\0")
    assert "NVIDIA's wheel" in fitting(python("aarch64"), tmp_path).text


def test_the_distributions_torch_is_taken_before_all_others(tmp_path: Path) -> None:
    assert fitting(python("riscv64", torch=True), tmp_path) == torch_builds.Torch("torch: the distribution's")


def test_torch_is_fetched_once_and_joined_to_each_release(image: Image) -> None:
    machine = image.machine()
    for release in ("1.0", "1.1"):
        torch_builds.join(machine, f"/opt/edged/{release}", python("aarch64"), "auto")
        lib = image.root / f"opt/edged/{release}/lib/python3.11/site-packages/edged-torch.pth"
        assert lib.read_text() == "/opt/edged/torch-2.10.0-py3.11\n"
    assert sum("--target" in program for program in image.programs) == 1


def test_torch_of_another_python_is_not_joined(image: Image) -> None:
    (image.root / "opt/edged/torch-2.10.0-py3.9").mkdir(parents=True)
    assert torch_builds.kept(image.machine(), python("aarch64")) is None


def test_the_newest_of_several_is_joined(image: Image) -> None:
    for version in ("2.9.1", "2.10.0"):
        (image.root / f"opt/edged/torch-{version}-py3.11").mkdir(parents=True)
    assert torch_builds.kept(image.machine(), python("aarch64")) == "/opt/edged/torch-2.10.0-py3.11"


def test_none_is_fetched_where_none_is_wanted(image: Image) -> None:
    said = torch_builds.join(image.machine(), "/opt/edged/1.0", python("aarch64"), "no")
    assert said == "torch: none, as asked"
    assert image.programs == []
