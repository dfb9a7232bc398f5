"""The Debian package: the same service as by `edged install`, and nothing left after a purge."""

import subprocess
from pathlib import Path

import pytest

from tests.systemd.conftest import VERSIONS, MakeTree
from tests.systemd.test_lifecycle import EVERYTHING, NOISE
from tests.systemd.tree import ROOT

pytestmark = [pytest.mark.slow, pytest.mark.boots]


def test_the_package_installs_the_service_and_purges_it(make_tree: MakeTree, tmp_path: Path) -> None:
    tree = make_tree("package")
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    for path in (tree.root / "srv/wheels").iterdir():
        if not path.name.startswith("edged-") or VERSIONS[1] in path.name:
            (wheels / path.name).write_bytes(path.read_bytes())
    command = [ROOT / "scripts/build-deb", tree.root / "srv", wheels]
    built = subprocess.run(command, capture_output=True, text=True, check=False)
    assert built.returncode == 0, built.stderr
    tree.boot()
    before = set(tree.do(EVERYTHING).splitlines())
    tree.do("dpkg --install /srv/edged_*.deb")
    shown = tree.show("edged")
    assert (shown["ActiveState"], shown["UnitFileState"]) == ("active", "enabled")
    assert VERSIONS[1] in tree.do("edged version")
    tree.do("dpkg --remove edged")
    assert tree.ask("systemctl status edged").returncode == 4
    assert tree.ask("cat /etc/edged/edged.toml").returncode == 0
    tree.do("dpkg --purge edged")
    assert set(tree.do(EVERYTHING).splitlines()) - before - set(NOISE) == set()
    assert tree.ask("getent passwd edged").returncode != 0
