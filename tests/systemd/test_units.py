"""The units as systemd's own tools see them: nothing unknown in them, and little that they leave open."""

import configparser
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from edged.install.machine import Machine
from edged.install.units import POOLS, bind_pools

ROOT = Path(__file__).resolve().parents[2]
UNITS = ROOT / "systemd"
SERVICES = ("edged", "edged-coordinator")
SENSORS = sorted(path.stem for path in (UNITS / "sensors").glob("*.conf"))

pytestmark = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None, reason="systemd-analyze is not installed (Debian: systemd)"
)


def laid_out(folder: Path, name: str, *drop_ins: Path, change: tuple[str, str] = ("", "")) -> Path:
    """The unit with programs that exist here, which is all of it that verify can look up."""
    text = (UNITS / f"{name}.service").read_text()
    text = text.replace("/opt/edged/current/" + name, "/bin/true").replace(*change)
    unit = folder / f"{name}.service"
    unit.write_text(text)
    (folder / f"{name}.service.d").mkdir()
    for drop_in in drop_ins:
        shutil.copy(drop_in, folder / f"{name}.service.d")
    return unit


def complaints(unit: Path) -> str:
    """Of `systemd-analyze verify`: it only warns of unknown keys, so any line counts."""
    done = subprocess.run(
        ["systemd-analyze", "verify", "--man=no", unit], capture_output=True, text=True, check=False
    )
    return done.stderr or ("" if done.returncode == 0 else f"exit status {done.returncode}")


def exposure(unit: Path) -> float:
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--threshold=100", unit],
        capture_output=True,
        text=True,
        check=True,
    )
    last = next(line for line in done.stdout.splitlines() if "Overall exposure level" in line)
    return float(last.partition(": ")[2].split()[0])


def settings(name: str) -> configparser.ConfigParser:
    parser = configparser.ConfigParser(strict=False, delimiters="=", interpolation=None)
    parser.optionxform = str  # type: ignore[assignment,method-assign]
    parser.read(UNITS / f"{name}.service")
    return parser


@pytest.mark.parametrize("name", SERVICES)
def test_a_unit_has_nothing_that_systemd_does_not_know(tmp_path: Path, name: str) -> None:
    assert complaints(laid_out(tmp_path, name)) == ""


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_sensors_drop_in_has_nothing_that_systemd_does_not_know(tmp_path: Path, sensor: str) -> None:
    assert complaints(laid_out(tmp_path, "edged", UNITS / "sensors" / f"{sensor}.conf")) == ""


def test_the_drop_in_for_pools_has_nothing_that_systemd_does_not_know(tmp_path: Path) -> None:
    machine = Machine(tmp_path)
    bind_pools(machine, {"mnist": "/home/pi/my mnist"})
    unit = laid_out(tmp_path, "edged", machine.path(POOLS))
    assert complaints(unit) == ""
    assert exposure(unit) <= 1.6


@pytest.mark.parametrize("change", [("Restart=", "Restrat="), ("WatchdogSec=30", "WatchdogSec=banana")])
def test_a_planted_fault_is_seen(tmp_path: Path, change: tuple[str, str]) -> None:
    assert complaints(laid_out(tmp_path, "edged", change=change)) != ""


@pytest.mark.parametrize("name", SERVICES)
def test_a_service_is_little_exposed(tmp_path: Path, name: str) -> None:
    assert exposure(laid_out(tmp_path, name)) <= 1.6


@pytest.mark.parametrize("sensor", SENSORS)
def test_a_sensor_opens_little_more(tmp_path: Path, sensor: str) -> None:
    assert exposure(laid_out(tmp_path, "edged", UNITS / "sensors" / f"{sensor}.conf")) <= 2.0


def test_an_opened_unit_is_seen(tmp_path: Path) -> None:
    assert exposure(laid_out(tmp_path, "edged", change=("CapabilityBoundingSet=\n", ""))) > 1.6


@pytest.mark.parametrize("name", SERVICES)
def test_only_a_faulty_configuration_ends_a_service_for_good(name: str) -> None:
    found = settings(name)
    service, unit = found["Service"], found["Unit"]
    assert service["Restart"] == "on-failure"
    assert service["RestartPreventExitStatus"] == "78"
    assert service["RestartSec"] == "10"
    assert unit["StartLimitIntervalSec"] == "0"
    # Wanted only: a board without network starts, and tells what it waits for.
    assert unit["Wants"] == "network-online.target"
    assert "Requires" not in unit


def test_a_units_accounts_are_made_before_it_starts() -> None:
    """A group that is not there keeps a service from starting; that it is named here is not enough."""
    made = (UNITS / "edged.sysusers").read_text() + (UNITS / "edged-coordinator.sysusers").read_text()
    for name in SERVICES:
        assert f"u {settings(name)['Service']['User']} " in made
    assert "g edged-energy" in made


def test_every_sensors_drop_in_is_a_probes() -> None:
    from probes import names

    assert set(SENSORS) <= set(names())


def test_the_rules_programs_are_where_it_says() -> None:
    """Udev looks none up: a program without its whole path never runs."""
    rule = (UNITS / "60-edged-energy.rules").read_text().splitlines()[-1]
    programs = re.findall(r'RUN\+="(\S+) ', rule)
    assert programs == ["/bin/chgrp", "/bin/chmod"]
    assert all(Path(program).exists() for program in programs)


def test_json_of_security_names_no_exception_without_a_word(tmp_path: Path) -> None:
    """Each of the protections that is left out is named in a comment of the unit."""
    done = subprocess.run(
        ["systemd-analyze", "security", "--offline=true", "--json=short", laid_out(tmp_path, "edged")],
        capture_output=True,
        text=True,
        check=False,
    )
    left_out = {row["json_field"] for row in json.loads(done.stdout) if row["set"] is False}
    comments = [line for line in (UNITS / "edged.service").read_text().splitlines() if line.startswith("#")]
    for key in ("MemoryDenyWriteExecute", "ProcSubset", "IPAddressDeny"):
        assert any(key in line for line in comments), key
        assert key in left_out
