"""Trees that are ready to be set up: an ordinary user with sudo, and edged in an environment of its own."""

from collections.abc import Callable, Iterator

import pytest

from tests.systemd.tree import Tree, base, missing, torch_layer, wheels

VERSIONS = ("1.0.0", "1.1.0")
MakeTree = Callable[[str], Tree]


@pytest.fixture(scope="session")
def make_tree(tmp_path_factory: pytest.TempPathFactory) -> Iterator[MakeTree]:
    """Makes trees that differ by name alone, not booted yet. The user is pi, and may use sudo."""
    if reason := missing():
        pytest.skip(reason)
    folder = tmp_path_factory.mktemp("trees")
    layers = [torch_layer(folder / "torch"), base()]
    prepared = Tree(folder / "prepared", layers)
    wheels(prepared.root / "srv/wheels", folder, VERSIONS)
    prepared.do("useradd -m -s /bin/bash pi && echo 'pi ALL=(ALL) NOPASSWD: ALL' > /etc/sudoers.d/pi")
    # What pipx does: an environment of its own, and links in a folder that sudo does not look in.
    prepared.do("python3 -m venv ~/.local/pipx && mkdir ~/.local/bin", "pi")
    prepared.do(f"{pip(VERSIONS[0])} && ln -s ~/.local/pipx/bin/edged* ~/.local/bin/", "pi")
    prepared.close()
    made: list[Tree] = []

    def make(name: str) -> Tree:
        made.append(Tree(folder / name, [prepared.upper, *layers]))
        return made[-1]

    yield make
    for tree in made:
        tree.close()


def pip(version: str) -> str:
    """Brings edged of that version into the user's environment."""
    return f"~/.local/pipx/bin/pip install -q --no-index --find-links /srv/wheels edged=={version}"
