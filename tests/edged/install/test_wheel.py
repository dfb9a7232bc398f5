"""Packing an installed edged again, as a wheel that pip takes."""

import csv
import io
import zipfile
from importlib import metadata
from pathlib import Path

import pytest

from edged.install.machine import InstallError
from edged.install.wheel import packed

FILES = {
    "edged/__init__.py": "x = 1\n",
    "edged/__pycache__/__init__.cpython-311.pyc": "compiled",
    "edged-1.0.dist-info/METADATA": "Metadata-Version: 2.1\nName: edged\nVersion: 1.0\n",
    "edged-1.0.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
    "edged-1.0.dist-info/entry_points.txt": "[console_scripts]\nedged = edged.cli:main\n",
    "edged-1.0.dist-info/INSTALLER": "pip\n",
    "../../../bin/edged": "#!/somewhere/python\n",
    "../../../share/edged/systemd/edged.service": "[Unit]\n",
}


def installed(prefix: Path, files: dict[str, str]) -> metadata.Distribution:
    lib = prefix / "lib/python3.11/site-packages"
    for name, text in files.items():
        (lib / name).parent.mkdir(parents=True, exist_ok=True)
        (lib / name).write_text(text)
    record = "".join(f"{name},,\n" for name in files)
    (lib / "edged-1.0.dist-info/RECORD").write_text(record + "edged-1.0.dist-info/RECORD,,\n")
    return metadata.Distribution.at(lib / "edged-1.0.dist-info")


def test_a_packed_wheel_has_all_that_pip_does_not_make_anew(tmp_path: Path) -> None:
    name, data = packed(installed(tmp_path, FILES))
    assert name == "edged-1.0-py3-none-any.whl"
    with zipfile.ZipFile(io.BytesIO(data)) as archive:
        inside = archive.namelist()
        rows = list(csv.reader(archive.read("edged-1.0.dist-info/RECORD").decode().splitlines()))
        assert archive.read("edged-1.0.data/data/share/edged/systemd/edged.service") == b"[Unit]\n"
    assert set(inside) == {
        "edged/__init__.py",
        "edged-1.0.dist-info/METADATA",
        "edged-1.0.dist-info/WHEEL",
        "edged-1.0.dist-info/entry_points.txt",
        "edged-1.0.dist-info/RECORD",
        "edged-1.0.data/data/share/edged/systemd/edged.service",
    }
    assert {row[0] for row in rows} == set(inside)


def test_the_same_files_are_the_same_bytes(tmp_path: Path) -> None:
    first, second = (packed(installed(tmp_path / name, FILES)) for name in "ab")
    assert first == second


def test_an_edged_without_units_is_refused(tmp_path: Path) -> None:
    files = {name: text for name, text in FILES.items() if "share" not in name}
    with pytest.raises(InstallError, match="without its units"):
        packed(installed(tmp_path, files))
