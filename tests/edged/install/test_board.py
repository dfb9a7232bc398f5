"""Installing into an image: what lies there afterwards, again, after a fault, and after taking it away."""

from pathlib import Path
from typing import Any

import pytest

from edged.install import board
from edged.install.machine import InstallError, Machine
from tests.edged.install.image import Image, wheel

TABLES: dict[str, dict[str, Any]] = {
    "broker": {"host": "192.0.2.1", "port": 1884, "username": "pi4"},
    "board": {"id": "pi4"},
    "data.mnist": {"path": "/home/pi/mnist"},
}


def installed(
    image: Image, tmp_path: Path, version: str = "1.0", content: str = "", **wish: Any
) -> list[str]:
    name, data = wheel(version, content)
    path = tmp_path / name
    path.write_bytes(data)
    return list(board.install(image.machine(), board.Wish(wheel=path, **{"torch": "no", **wish})))


def test_an_image_gets_release_settings_unit_and_password(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, tables=TABLES, password="secret")
    files = image.files()
    assert files["opt/edged/current"] == "1.0"
    assert files["usr/local/bin/edged"] == "/opt/edged/current/edged"
    assert "ExecStart=/opt/edged/current/edged run" in files["etc/systemd/system/edged.service"]
    assert 'host = "192.0.2.1"\nport = 1884' in files["etc/edged/edged.toml"]
    assert 'id = "pi4"' in files["etc/edged/edged.toml"]
    assert '[data.mnist]\npath = "/home/pi/mnist"' in files["etc/edged/edged.toml"]
    assert "u edged " in files["etc/sysusers.d/edged.conf"]
    assert any(program == "systemctl enable edged.service" for program in image.programs)
    secret = image.root / "etc/edged/credentials/mqtt-password"
    assert (secret.read_text(), secret.stat().st_mode & 0o777) == ("secret\n", 0o600)
    assert not any("secret" in program for program in image.programs), "a password is no argument"
    drop_ins = "etc/systemd/system/edged.service.d"
    assert "LoadCredential=mqtt-password:/etc/edged/cred" in files[f"{drop_ins}/20-password.conf"]
    assert 'BindReadOnlyPaths="-/home/pi/mnist"' in files[f"{drop_ins}/40-pools.conf"]
    assert "TemporaryFileSystem=/home:ro" in files[f"{drop_ins}/40-pools.conf"]


def test_without_a_password_no_unit_asks_for_a_credential(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    assert not any("LoadCredential" in text for text in image.files().values())


def test_a_second_time_changes_nothing(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, tables=TABLES, password="secret")
    before = image.files()
    image.changes.clear()
    installed(image, tmp_path, tables=TABLES, password="secret")
    assert image.files() == before
    assert [line for line in image.changes if line.startswith(("write", "link", "make", "remove"))] == []


def test_a_dry_run_tells_and_does_nothing(image: Image, tmp_path: Path) -> None:
    before = image.files()
    name, data = wheel()
    (tmp_path / name).write_bytes(data)
    wish = board.Wish(tables=TABLES, password="secret", wheel=tmp_path / name)
    list(board.install(image.machine(dry=True), wish))
    assert image.files() == before
    assert "write /etc/edged/edged.toml" in image.changes
    assert "link /opt/edged/current -> 1.0" in image.changes
    assert all("python3 -I -c" in program for program in image.programs), "a dry run only looks"


def test_settings_that_somebody_edited_are_left(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, tables=TABLES)
    file = image.root / "etc/edged/edged.toml"
    edited = file.read_text() + "\n# mine\n"
    file.write_text(edited)
    said = installed(image, tmp_path, tables={"broker": {"host": "198.51.100.7"}})
    assert file.read_text() == edited
    new = file.with_name("edged.toml.new").read_text()
    assert 'host = "198.51.100.7"' in new
    assert "# mine" in new
    assert any("edged.toml.new" in line for line in said)


def test_settings_that_nobody_edited_follow_what_is_asked_for(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, tables=TABLES)
    installed(image, tmp_path, tables={"broker": {"host": "198.51.100.7"}})
    text = (image.root / "etc/edged/edged.toml").read_text()
    assert 'host = "198.51.100.7"\nport = 1884' in text
    assert not (image.root / "etc/edged/edged.toml.new").exists()


def test_settings_edited_into_nonsense_are_left_for_the_service_to_name(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    file = image.root / "etc/edged/edged.toml"
    file.write_text("[broker\n")
    installed(image, tmp_path)
    assert file.read_text() == "[broker\n"


def test_options_that_make_no_settings_are_refused(image: Image, tmp_path: Path) -> None:
    with pytest.raises(InstallError, match=r"board\.id"):
        installed(image, tmp_path, tables={"board": {"id": "Not An Id"}})
    assert not (image.root / "etc/edged/edged.toml").exists()


def test_an_upgrade_keeps_the_release_before_and_no_other(image: Image, tmp_path: Path) -> None:
    for version in ("1.0", "1.1", "1.2"):
        installed(image, tmp_path, version)
    files = image.files()
    assert (files["opt/edged/current"], files["opt/edged/previous"]) == ("1.2", "1.1")
    assert not (image.root / "opt/edged/1.0").exists()


def test_a_rollback_and_back_again(image: Image, tmp_path: Path) -> None:
    for version in ("1.0", "1.1"):
        installed(image, tmp_path, version)
    list(board.roll_back(image.machine()))
    assert (image.files()["opt/edged/current"], image.files()["opt/edged/previous"]) == ("1.0", "1.1")
    list(board.roll_back(image.machine()))
    assert image.files()["opt/edged/current"] == "1.1"


def test_without_an_earlier_release_there_is_no_rollback(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    with pytest.raises(InstallError, match="no earlier release"):
        list(board.roll_back(image.machine()))


def test_the_same_version_with_other_content_does_not_touch_the_running_one(
    image: Image, tmp_path: Path
) -> None:
    installed(image, tmp_path, "1.0", "one")
    installed(image, tmp_path, "1.0", "two")
    assert image.files()["opt/edged/previous"] == "1.0"
    assert image.files()["opt/edged/current"].startswith("1.0-")


def test_an_interrupted_installation_is_mended_by_the_next(image: Image, tmp_path: Path) -> None:
    image.fails = "-m pip"
    with pytest.raises(InstallError, match="running it again goes on"):
        installed(image, tmp_path, tables=TABLES)
    assert "opt/edged/current" not in image.files()
    image.fails = ""
    installed(image, tmp_path, tables=TABLES)
    assert image.files()["opt/edged/current"] == "1.0"


def test_a_failed_upgrade_leaves_the_release_that_runs(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, "1.0")
    image.fails = "-m pip"
    with pytest.raises(InstallError):
        installed(image, tmp_path, "1.1")
    assert image.files()["opt/edged/current"] == "1.0"


def test_a_damaged_release_is_made_anew(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    image.programs.clear()
    image.fails = "/opt/edged/1.0/edged version"
    installed(image, tmp_path)
    assert any("-m venv" in program for program in image.programs)


def test_a_changed_python_is_noticed_and_said(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    image.python["version"] = (3, 13)
    said = installed(image, tmp_path)
    assert any("3.11 was replaced by 3.13" in line for line in said)
    assert "(3, 13)" in image.files()["opt/edged/1.0/edged"]


def test_taking_it_away_leaves_settings_and_purging_nothing(image: Image, tmp_path: Path) -> None:
    before = image.files()
    installed(image, tmp_path, tables=TABLES, password="secret")
    list(board.uninstall(image.machine(), purge=False))
    left = set(image.files()) - set(before)
    assert left == {"etc/edged/edged.toml", "etc/edged/credentials/mqtt-password"}
    installed(image, tmp_path)
    list(board.uninstall(image.machine(), purge=True))
    assert image.files() == before


@pytest.mark.parametrize("purge", [False, True])
def test_what_somebody_added_to_the_unit_stays_and_is_told(image: Image, tmp_path: Path, purge: bool) -> None:
    installed(image, tmp_path, tables=TABLES, password="secret")
    folder = image.root / "etc/systemd/system/edged.service.d"
    (folder / "30-powercap.conf").write_text("[Service]\nSupplementaryGroups=edged-energy\n")
    (folder / "30-mine.conf").write_text("[Service]\nNice=5\n")
    said = list(board.uninstall(image.machine(), purge=purge))
    assert [path.name for path in folder.iterdir()] == ["30-mine.conf"]
    assert any("30-mine.conf stays" in line for line in said)


def test_a_coordinator_on_the_same_machine_keeps_the_release(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    (image.root / "etc/systemd/system/edged-coordinator.service").touch()
    said = list(board.uninstall(image.machine(), purge=True))
    assert image.files()["opt/edged/current"] == "1.0"
    assert any("another service" in line for line in said)


def test_an_image_without_systemd_is_refused(tmp_path: Path) -> None:
    with pytest.raises(InstallError, match="no systemd") as found:
        list(board.install(Machine(tmp_path), board.Wish()))
    assert found.value.status == 69
