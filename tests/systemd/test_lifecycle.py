"""The board's service under a real systemd, set up by an ordinary user with the line of the README."""

import json
import re
from pathlib import Path

import pytest

from tests.systemd.conftest import VERSIONS, MakeTree, pip
from tests.systemd.tree import Tree

pytestmark = [pytest.mark.slow, pytest.mark.boots]

INSTALL = 'sudo "$(command -v edged)" install --wheels /srv/wheels'
FIRST = f"{INSTALL} --broker 127.0.0.1 --board pi4 --pool digits=builtin --pool mine=$HOME/pool"
HURRIED = "[Service]\nWatchdogSec=3\nRestartSec=1\n"
"""Nothing else differs from the unit: a test need not wait as long as a board may."""
EVERYTHING = (
    "find /etc /opt /usr/local /var/lib/edged* /run/edged* /usr/lib/systemd /home -xdev 2>/dev/null | sort"
)
NOISE = ("/etc/ld.so.cache", "/etc/.pwd.lock", "/etc/passwd-", "/etc/group-", "/etc/shadow-", "/etc/gshadow-")


@pytest.fixture(scope="module")
def bare(make_tree: MakeTree) -> Tree:
    """A machine that is up, where nothing was installed by root."""
    tree = make_tree("board")
    tree.boot()
    return tree


@pytest.fixture(scope="module")
def found_before(bare: Tree) -> set[str]:
    return set(bare.do(EVERYTHING).splitlines())


@pytest.fixture(scope="module")
def said(bare: Tree, found_before: set[str]) -> str:
    """What the installation told. One pool lies where the service sees nothing else."""
    bare.do("mkdir ~/pool && touch ~/pool/file", "pi")
    return bare.do(FIRST, "pi")


@pytest.fixture
def board(bare: Tree, said: str) -> Tree:
    """A board whose service runs, whatever the test before did to it."""
    bare.drop_in("edged", HURRIED)
    bare.do("systemctl restart edged")
    return bare


def restarts(board: Tree) -> int:
    return int(board.show("edged")["NRestarts"])


def test_the_readmes_line_sets_a_board_up(board: Tree, said: str) -> None:
    assert "edged: ready" in said
    assert "torch-" in said
    shown = board.show("edged")
    assert (shown["ActiveState"], shown["UnitFileState"], shown["User"]) == ("active", "enabled", "edged")
    assert board.do("readlink /opt/edged/current").strip() == VERSIONS[0]
    assert board.do(f"readlink -f /proc/{board.main()}/exe").startswith("/usr/bin/python3")
    assert "/home/pi/.local" not in board.do(f"tr '\\0' '\\n' < /proc/{board.main()}/cmdline")


def test_anybody_may_ask_for_the_status(board: Tree) -> None:
    board.wait(lambda: "idle" in board.ask("edged status", "pi").stdout, "the link")
    shown = json.loads(board.do("edged status --json", "pi"))
    assert (shown["service"]["active"], shown["release"]) == ("active", VERSIONS[0])


def test_a_service_without_broker_is_ready_and_says_what_it_waits_for(board: Tree) -> None:
    board.do("systemctl stop mosquitto && systemctl restart edged")
    try:
        board.wait(lambda: "waiting for broker" in board.show("edged")["StatusText"], "the status line")
        assert board.show("edged")["ActiveState"] == "active"
    finally:
        board.do("systemctl start mosquitto")


def test_the_watchdog_ends_a_frozen_agent_and_it_comes_back(board: Tree) -> None:
    before, count = board.main(), restarts(board)
    board.do(f"kill -STOP {before}")
    board.wait(
        lambda: restarts(board) > count and board.show("edged")["ActiveState"] == "active", "a restart"
    )
    assert board.main() != before
    assert "Watchdog timeout" in board.do("journalctl -u edged -n 50 --no-pager")


def test_a_killed_agent_comes_back(board: Tree) -> None:
    count = restarts(board)
    board.do(f"kill -KILL {board.main()}")
    board.wait(
        lambda: restarts(board) > count and board.show("edged")["ActiveState"] == "active", "a restart"
    )


def test_reload_takes_pools_and_tasks_over_and_names_what_takes_a_restart(board: Tree) -> None:
    before = board.main()
    board.do("cp /etc/edged/edged.toml /srv/kept")
    board.do("""sed -i 's/^#port = 1883/port = 9/' /etc/edged/edged.toml""")
    board.do("""printf '[data.more]\npath = "builtin"\n' >> /etc/edged/edged.toml""")
    board.do("systemctl reload edged")
    try:
        said = "journalctl -u edged -n 5 -o cat --no-pager"
        board.wait(lambda: "take a restart: broker.port" in board.do(said), "the journal")
        assert "settings read again: data.more" in board.do(said)
        assert board.main() == before
    finally:
        board.do("cp /srv/kept /etc/edged/edged.toml")


def test_a_stop_is_clean(board: Tree) -> None:
    board.do("systemctl stop edged")
    shown = board.show("edged")
    assert (shown["Result"], shown["ExecMainStatus"], shown["ActiveState"]) == ("success", "0", "inactive")


def test_nonsense_in_the_settings_ends_it_once_and_names_the_key(board: Tree) -> None:
    board.do("cp /etc/edged/edged.toml /srv/kept && echo 'prot = 1' >> /etc/edged/edged.toml")
    board.ask("systemctl restart edged")
    try:
        board.wait(lambda: board.show("edged")["ActiveState"] == "failed", "the end")
        assert board.show("edged")["ExecMainStatus"] == "78"
        count = restarts(board)
        status = board.ask("edged status")
        assert status.returncode == 3
        assert re.search("last error .*prot: unknown key", status.stdout)
        board.do("sleep 3")  # three times as long as it waits before a restart here
        assert restarts(board) == count
        assert board.show("edged")["ActiveState"] == "failed"
    finally:
        board.do("cp /srv/kept /etc/edged/edged.toml")


def test_a_python_that_is_gone_is_said_and_not_tried_again(board: Tree) -> None:
    """As after an upgrade of the distribution."""
    python = "/opt/edged/current/bin/python"
    kept = board.do(f"readlink {python}").strip()
    board.do(f"ln -sfn /usr/bin/python3.99 {python}")
    try:
        board.ask("systemctl restart edged")
        board.wait(lambda: board.show("edged")["ActiveState"] == "failed", "the end")
        assert board.show("edged")["ExecMainStatus"] == "78"
        assert "which this system no longer has" in board.do("journalctl -u edged -p err -o cat --no-pager")
        assert "install" in board.ask("edged version").stderr
    finally:
        board.do(f"ln -sfn {kept} {python}")


def test_the_service_writes_nowhere_but_in_its_own_folders(board: Tree) -> None:
    inside = f"nsenter -t {board.main()} -m setpriv --reuid=edged --clear-groups"
    homes = [Path(line.split(":")[5]) for line in board.do("getent passwd root pi").splitlines()]
    assert len(homes) == 2
    folders = [Path("/etc/edged"), Path("/opt/edged"), Path("/usr"), *homes, *(home.parent for home in homes)]
    for path in (folder / "x" for folder in folders):
        assert board.ask(f"{inside} touch {path}").returncode != 0, path
    assert board.do(f"{inside} ls /home/pi/pool").strip() == "file"
    assert board.ask(f"{inside} ls /home/pi/.local").returncode != 0
    assert board.ask(f"{inside} touch /home/pi/pool/x").returncode != 0
    board.do(f"{inside} touch /var/lib/edged/x /run/edged/x && rm /var/lib/edged/x /run/edged/x")


def test_a_reboot_brings_it_back(board: Tree) -> None:
    board.power_off()
    board.boot()
    board.wait(lambda: board.show("edged")["ActiveState"] == "active", "the service")


def test_an_upgrade_and_the_way_back(board: Tree) -> None:
    board.do("echo '# mine' >> /etc/edged/edged.toml")
    board.do(pip(VERSIONS[1]), "pi")
    said = board.do(f"{INSTALL} --fleet main", "pi")
    assert "kept, since it was edited" in said
    assert VERSIONS[1] in board.do("edged version")
    assert json.loads(board.do("edged status --json"))["previous"] == VERSIONS[0]
    board.do("sudo edged install --rollback", "pi")
    assert VERSIONS[0] in board.do("edged version")
    assert board.show("edged")["ActiveState"] == "active"
    assert "# mine" in board.do("cat /etc/edged/edged.toml")


def test_nothing_is_left_after_a_purge(board: Tree, found_before: set[str]) -> None:
    """The last test here: torch came with the tree, and goes as well."""
    said = board.do("sudo edged uninstall --purge", "pi")
    assert "90-test.conf stays" in said, "a drop-in that somebody else wrote"
    board.do("rm -r /etc/systemd/system/edged.service.d && systemctl daemon-reload")
    left = {path for path in set(board.do(EVERYTHING).splitlines()) - found_before if path not in NOISE}
    assert {path for path in left if not path.startswith("/home/pi/")} == set()
    assert board.ask("getent passwd edged").returncode != 0
    assert board.ask("getent group edged-energy").returncode != 0
    assert board.ask("systemctl status edged").returncode == 4
