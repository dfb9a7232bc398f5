"""Drop-ins for the sensors that are here, and what the service can read of what root can."""

import json
from pathlib import Path

import pytest

from edged.install import sensors, units
from tests.edged.install.image import UNITS, Image

LIST = "probe list --json"


def channel(name: str, status: str = "ok", role: str = "headline") -> dict[str, str]:
    return {"id": name, "role": role, "status": status, "reason": "it says no", "remedy": "", "why": ""}


def listed(*channels: dict[str, str]) -> str:
    return json.dumps({"headline": {}, "channels": channels})


@pytest.fixture
def board(image: Image) -> Image:
    """With the units of a release in place."""
    place = image.root / "opt/edged/1.0/share/edged/systemd"
    (place / "sensors").mkdir(parents=True)
    for path in UNITS.rglob("*.*"):
        (place / path.relative_to(UNITS)).write_bytes(path.read_bytes())
    (image.root / "opt/edged/current").symlink_to("1.0")
    return image


def drop_ins(image: Image) -> list[str]:
    folder = image.root / units.DROP_INS.lstrip("/")
    return sorted(path.name for path in folder.iterdir()) if folder.is_dir() else []


def test_each_sensor_that_is_here_gets_its_drop_in(board: Image) -> None:
    board.answers[LIST] = listed(channel("rpi_pmic"), channel("nvml/0"), channel("jtop", "absent"))
    list(sensors.put(board.running(), energy_group=True))
    assert drop_ins(board) == ["30-nvml.conf", "30-rpi_pmic.conf"]


def test_a_drop_in_goes_with_its_sensor(board: Image) -> None:
    board.answers[LIST] = listed(channel("rpi_pmic"))
    list(sensors.put(board.running(), energy_group=True))
    board.answers[LIST] = listed()
    list(sensors.put(board.running(), energy_group=True))
    assert drop_ins(board) == []


def test_a_group_that_the_system_does_not_have_is_told_not_used(board: Image) -> None:
    board.answers[LIST] = listed(channel("jtop"))
    said = list(sensors.put(board.running(), energy_group=True))
    assert drop_ins(board) == []
    assert said == ["sensors: jtop needs the group jtop, which this system does not have"]


def test_energy_counters_are_opened_to_a_group_and_said_so(board: Image) -> None:
    (board.root / "etc/group").write_text("edged-energy:x:999:\n")
    board.answers[LIST] = listed(channel("powercap/package-0", "denied"))
    said = list(sensors.put(board.running(), energy_group=True))
    assert "30-powercap.conf" in drop_ins(board)
    assert "energy_uj" in (board.root / sensors.RULE.lstrip("/")).read_text()
    assert sensors.SIDE_CHANNEL in said
    assert any("udevadm trigger" in program for program in board.programs)


def test_energy_counters_are_closed_again_where_that_is_the_answer(board: Image) -> None:
    (board.root / "etc/group").write_text("edged-energy:x:999:\n")
    counter = board.root / "sys/class/powercap/intel-rapl:0/energy_uj"
    counter.parent.mkdir(parents=True)
    counter.touch()
    board.answers[LIST] = listed(channel("powercap/package-0"))
    list(sensors.put(board.running(), energy_group=True))
    list(sensors.put(board.running(), energy_group=False))
    assert drop_ins(board) == []
    assert not (board.root / sensors.RULE.lstrip("/")).exists()
    assert "chmod 0400 /sys/class/powercap/intel-rapl:0/energy_uj" in board.programs


def test_what_root_reads_and_the_service_does_not_is_told(board: Image, tmp_path: Path) -> None:
    unit = board.root / units.UNIT.lstrip("/")
    unit.parent.mkdir(parents=True)
    unit.write_text((UNITS / "edged.service").read_text())
    board.answers["systemd-run"] = listed(channel("a"), channel("b", "denied", "unavailable"))
    board.answers[LIST] = listed(channel("a"), channel("b"))
    said = list(sensors.as_the_service_sees(board.running()))
    assert said == ["sensors: root reads b, the service does not: it says no", "sensors: joules from a"]
    asked = next(program for program in board.programs if program.startswith("systemd-run"))
    assert "-p User=edged" in asked
    assert "-p PrivateDevices=yes" in asked
    assert "-p Restart=" not in asked


def test_a_program_runs_as_the_service_with_the_limits_of_unit_and_drop_ins(board: Image) -> None:
    machine = board.machine()
    machine.write(units.UNIT, (UNITS / "edged.service").read_text())
    units.bind_pools(machine, {"mnist": "/home/pi/mnist"})
    words = units.as_the_service(machine)
    options = [words[number + 1] for number, word in enumerate(words) if word == "-p"]
    assert {"User=edged", "ProtectSystem=strict", "RestrictNamespaces=yes"} <= set(options)
    assert options.index("ProtectHome=yes") < options.index("ProtectHome=no")
    assert not [option for option in options if option.startswith(("Exec", "Restart", "Type", "Watchdog"))]
