"""Setting up the coordinator's machine, in an image: broker, service, boards' passwords."""

from pathlib import Path
from typing import Any

import pytest

from coordinator import install
from coordinator.config import parse
from edged.install.machine import InstallError
from tests.edged.install.image import Image, wheel


@pytest.fixture
def image(tmp_path: Path) -> Image:
    """With mosquitto, as Debian lays it out."""
    made = Image(tmp_path / "image")
    (made.root / "usr/sbin/mosquitto").touch()
    (made.root / "etc/mosquitto/conf.d").mkdir(parents=True)
    (made.root / "etc/mosquitto/mosquitto.conf").write_text("persistence true\n")
    return made


def installed(image: Image, tmp_path: Path, **wish: Any) -> list[str]:
    name, data = wheel()
    (tmp_path / name).write_bytes(data)
    return list(install.install(image.machine(), install.Wish(wheel=tmp_path / name, **wish)))


def provisioned(image: Image, board: str, *, again: bool = False) -> str:
    return "\n".join(install.provision(image.machine(), board, again=again, host="192.0.2.9"))


def test_broker_and_service_are_set_up(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, fleet="attic", port=1884)
    files = image.files()
    config = parse(files["etc/edged/coordinator.toml"].encode(), "x")
    assert (config.fleet, config.broker.port, config.broker.username) == ("attic", 1884, "coordinator")
    assert config.broker.password_file == install.SECRET
    broker = files["etc/mosquitto/conf.d/edged.conf"].splitlines()
    assert {"listener 1884", "allow_anonymous false", "max_queued_messages 10000"} <= set(broker)
    assert "persistence true" not in broker, "Debian's own file says so already, and twice is an error"
    assert files["etc/mosquitto/edged.access"] == "user coordinator\ntopic readwrite edged/v1/attic/#\n"
    password = files[install.SECRET.lstrip("/")].strip()
    assert password not in files["etc/mosquitto/edged.passwords"]
    assert "systemctl enable edged-coordinator.service" in image.programs
    assert not any(password in program for program in image.programs)


def test_a_second_time_changes_no_password(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    provisioned(image, "pi4")
    before = image.files()
    installed(image, tmp_path)
    assert image.files() == before


def test_the_line_for_a_board_is_whole(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path, fleet="attic")
    line = provisioned(image, "pi4")
    assert '| sudo "$(command -v edged)" install --broker 192.0.2.9:1883 --board pi4 --fleet attic' in line
    password = line.split("echo ")[1].split()[0]
    assert password not in str(image.files())
    assert "user pi4" in image.files()["etc/mosquitto/edged.access"]


def test_an_id_that_another_board_has_is_refused(image: Image, tmp_path: Path) -> None:
    installed(image, tmp_path)
    provisioned(image, "pi4")
    before = image.files()
    with pytest.raises(InstallError, match="has a password already"):
        provisioned(image, "pi4")
    assert image.files() == before
    provisioned(image, "pi4", again=True)
    assert image.files() != before


@pytest.mark.parametrize(("board", "fault"), [("Pi 4", "BOARD"), ("coordinator", "own name")])
def test_an_id_that_no_board_may_have_is_refused(
    image: Image, tmp_path: Path, board: str, fault: str
) -> None:
    installed(image, tmp_path)
    with pytest.raises(InstallError, match=fault):
        provisioned(image, board)


def test_no_board_before_the_broker(image: Image) -> None:
    with pytest.raises(InstallError, match="install first"):
        provisioned(image, "pi4")


def test_a_port_that_is_taken_in_the_brokers_settings_is_told(image: Image, tmp_path: Path) -> None:
    (image.root / "etc/mosquitto/conf.d/mine.conf").write_text("listener 1883\n")
    with pytest.raises(InstallError, match=r"conf.d/mine.conf has `listener 1883`.*--port 1884"):
        installed(image, tmp_path)


def test_a_machine_without_mosquitto_is_told(image: Image, tmp_path: Path) -> None:
    (image.root / "usr/sbin/mosquitto").unlink()
    with pytest.raises(InstallError, match="apt install mosquitto"):
        installed(image, tmp_path)


def test_purging_leaves_the_broker_as_it_was(image: Image, tmp_path: Path) -> None:
    before = image.files()
    installed(image, tmp_path)
    provisioned(image, "pi4")
    list(install.uninstall(image.machine(), purge=True))
    assert image.files() == before
