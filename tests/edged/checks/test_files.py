"""Files and groups that the daemon needs, as `edged doctor` tells of them; and the inventory of data."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

import pytest

from edged.checks import Finding, data
from edged.checks.permissions import User, examine, groups_of_sensors, this_user
from edged.config import BrokerTable
from edged.stock import Info, Listing, Pool, listing_of

PI = User("pi", ("pi", "video"), ("root", "pi", "video", "edged", "edged-energy"))


def by_name(findings: Iterable[Finding]) -> dict[str, Finding]:
    return {one.what: one for one in findings}


@pytest.mark.parametrize(
    ("content", "mode", "verdict", "said"),
    [
        (b"secret\n", 0o600, "ok", "mode 0600"),
        (b"secret", 0o640, "ok", "mode 0640"),
        (b"secret", 0o644, "fail", "open to everybody"),
        (b"", 0o600, "fail", "is empty"),
        (b"two\nlines\n", 0o600, "fail", "has 2 lines"),
        (b"\xff\xfe", 0o600, "fail", "not UTF-8"),
    ],
    ids=("private", "group", "open", "empty", "two lines", "no text"),
)
def test_a_password_file(tmp_path: Path, content: bytes, mode: int, verdict: str, said: str) -> None:
    path = tmp_path / "password"
    path.write_bytes(content)
    path.chmod(mode)
    found = by_name(examine(BrokerTable(username="pi4"), str(path), PI, ()))["password file"]
    assert (found.verdict, said in found.text) == (verdict, True), found.text
    assert bool(found.way_out) == (verdict == "fail")
    assert "secret" not in found.text


def test_files_that_are_named_and_not_there_fail(tmp_path: Path) -> None:
    none = str(tmp_path / "none")
    broker = BrokerTable(username="pi4", ca_file=none, certificate_file=none, key_file=none)
    found = by_name(examine(broker, none, PI, ()))
    assert {found[name].verdict for name in ("password file", "CA file", "certificate", "key file")} == {
        "fail"
    }
    assert "No such file" in found["CA file"].text


def test_a_user_without_a_password_and_the_reverse_are_told(tmp_path: Path) -> None:
    assert by_name(examine(BrokerTable(username="pi4"), None, PI, ()))["password file"].verdict == "warn"
    path = tmp_path / "password"
    path.write_text("x")
    path.chmod(0o600)
    assert by_name(examine(BrokerTable(), str(path), PI, ()))["user name"].verdict == "warn"
    assert set(by_name(examine(BrokerTable(), None, PI, ()))) == {"user"}


def test_a_group_that_is_missing_comes_with_the_command() -> None:
    found = by_name(examine(BrokerTable(), None, PI, ("edged-energy", "video", "jtop")))
    assert found["groups"].way_out.startswith("sudo usermod -aG edged-energy pi")
    root = User("root", ("root",), PI.known_groups)
    assert (
        by_name(examine(BrokerTable(), None, root, ("edged-energy",)))["user"].way_out
        == "sudo -u edged edged doctor"
    )


def test_groups_follow_what_is_on_the_machine(tmp_path: Path) -> None:
    assert groups_of_sensors(tmp_path) == []
    (tmp_path / "dev").mkdir()
    (tmp_path / "dev/vcio").touch()
    assert groups_of_sensors(tmp_path) == ["video"]
    assert this_user().groups
    assert (this_user().name == "root") == (os.geteuid() == 0)


def test_an_inventory_in_words() -> None:
    listing = Listing(
        tasks={"digits": "h1", "mnist": "h2"},
        task_errors={"mine": "mine.py: no LOSS"},
        pools={
            "good": Pool(Info(1797, "ab" * 32), ("digits",)),
            "odd": Pool(Info(10, "cd" * 32), ("digits",), "mnist: reads it as other data"),
            "bad": Pool(error="/data/x: no such folder"),
        },
    )
    found = by_name(data.examine(listing))
    verdicts = {name: one.verdict for name, one in found.items()}
    assert verdicts == {
        "task mine": "fail",
        "tasks": "ok",
        "pool good": "ok",
        "pool odd": "warn",
        "pool bad": "fail",
    }
    assert "1,797 samples for digits; fingerprint abababababababab" in found["pool good"].text
    assert by_name(data.examine(Listing(tasks={"digits": "h"})))["pools"].verdict == "fail"


def test_the_real_inventory_reads_what_ships_and_names_what_is_not_there(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("raise SystemExit\n")
    pools = {"digits": "builtin", "gone": str(tmp_path / "gone")}
    found = by_name(data.examine(listing_of(pools, (str(tmp_path),))))
    assert found["pool digits"].verdict == "ok"
    assert found["pool gone"].verdict == "fail"
    assert found["task broken"].verdict == "fail"
