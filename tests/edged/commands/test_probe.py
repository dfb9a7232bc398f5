"""`edged probe` from the command line: lists, figures of a command, a calibration, and what it refuses."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from edged.commands import _probe_show
from edged.commands._probe_meter import Refused, compared, measured
from edged.commands.probe import app
from probes._outside import real_context
from probes.meter import Meter
from tests.probes.machines import FIXTURES
from tests.probes.scripted import Scripted, channel

FIGURES = ["--idle-watts", "3", "--full-watts", "20"]


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


@pytest.mark.parametrize(
    ("name", "headline"),
    [
        ("jetson_orin_nano_jp5", "* headline: ina3221/1-0040/VDD_IN (module, measured)"),
        ("x86_intel_client_psys_noroot", "No figure: nothing measures here (powercap/package-0 is denied"),
        ("rpi5_pmic_read_adc", "* headline: rpi_pmic/input (dc_in, calibrated)"),
        ("riscv_visionfive2_none", "[energy.estimate] idle_watts"),
    ],
)
def test_a_recorded_machine_is_listed_with_its_headline_and_the_way_out(name: str, headline: str) -> None:
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recorded machines at {FIXTURES}")
    shown = call("list", "--root", str(path))
    assert headline in shown.output
    assert shown.exit_code == int("No figure" in shown.output)
    rows = json.loads(call("list", "--root", str(path), "--json").output)
    assert all(row["role"] and row["why"] for row in rows["channels"])


def test_a_folder_of_another_board_is_read_with_its_own_published_watts(tmp_path: Path) -> None:
    for name, text in (
        ("proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0"),
        ("proc/stat", "cpu  1 1 1 1 1 1 1 0\ncpu0 1 1 1 1 1 1 1 0\n"),
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text(text)
    found = json.loads(call("list", "--root", str(tmp_path), "--json").output)
    assert (found["headline"]["basis"], found["headline"]["scope"]) == ("estimated", "wall")
    assert "published for Raspberry Pi 4 Model B" in found["channels"][0]["source"]


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["list", "--root", "/no/such/board"], "neither a folder nor a recorded machine"),
        (["list", "--config", "/no/such/file"], "/no/such/file: cannot be read"),
        (["list", "--idle-watts", "5"], "go together"),
        (["list", "--idle-watts", "5", "--full-watts", "2"], "full is not below idle"),
        (["measure"], "no command given"),
        (["measure", "--", "no-such-command-here"], "no-such-command-here: No such file"),
    ],
)
def test_what_cannot_be_done_is_refused_in_one_line(words: list[str], said: str) -> None:
    shown = call(*words)
    assert shown.exit_code not in (0, 1)
    assert said in shown.output
    assert "Traceback" not in shown.output


def test_a_file_that_is_no_record_is_refused(tmp_path: Path) -> None:
    (tmp_path / "x.json").write_text("[]")
    shown = call("list", "--root", str(tmp_path / "x.json"))
    assert shown.exit_code == 78
    assert "no recorded machine" in shown.output


def test_a_command_is_measured_and_its_status_passed_on() -> None:
    shown = call("measure", *FIGURES, "--json", "--", sys.executable, "-c", "raise SystemExit(3)")
    assert shown.exit_code == 3
    found = json.loads(shown.stderr)
    low, high = found["bounds_joules"] or (0.0, float("inf"))
    assert found["joules"] is None or found["basis"] != "estimated" or low <= found["joules"] <= high * 1.2
    assert found["exit_status"] == 3


def scripted(*plan: tuple[str, str, float]) -> Meter:
    """A meter in real time over channels (id, scope, watts)."""
    probes = [
        Scripted(id.partition("/")[0], (channel(id, scope=scope), lambda now, watts=watts: watts))  # type: ignore[misc]
        for id, scope, watts in plan
    ]
    return Meter(real_context(Path("/nowhere")), probes)


def test_nothing_that_measures_is_said_in_words_and_never_as_zero() -> None:
    meter = scripted()
    meter.open()
    outcome = measured(meter, [sys.executable, "-c", ""])
    text = _probe_show.measured_text(outcome, meter.channels())
    assert "joules   unknown: nothing measures here" in text
    assert json.loads(_probe_show.measured_json(outcome, meter.channels()))["joules"] is None


def test_a_measured_command_shows_what_stands_beside_it() -> None:
    meter = scripted(("plug/1/power", "wall", 12.0), ("ina/VDD_IN", "module", 5.0))
    meter.open()
    text = _probe_show.measured_text(measured(meter, [sys.executable, "-c", ""]), meter.channels())
    assert "measured, wall" in text
    assert "beside   ina/VDD_IN" in text


def test_a_channel_is_scaled_to_the_plug() -> None:
    meter = scripted(("plug/1/power", "wall", 6.0), ("ina/VDD_IN", "module", 5.0))
    meter.start()
    found = compared(meter, None, None, 0.5, tell=lambda done: None, step_seconds=0.1)
    meter.close()
    assert (found.channel_id, found.against, found.scope) == ("ina/VDD_IN", "plug/1/power", "wall")
    assert found.factor == pytest.approx(1.2)
    text = _probe_show.calibration_text(found)
    assert '[energy.calibration."ina/VDD_IN"]' in text
    assert "factor = 1.2" in text


@pytest.mark.parametrize(
    ("plan", "wanted", "said"),
    [
        ((("ina/VDD_IN", "module", 5.0),), None, "no wall meter to scale to"),
        ((("plug/1/power", "wall", 6.0),), None, "no other channel reads"),
        ((("plug/1/power", "wall", 6.0),), "ina/VDD_IN", "no channel 'ina/VDD_IN'"),
    ],
)
def test_a_calibration_without_two_channels_is_refused(
    plan: tuple[tuple[str, str, float], ...], wanted: str | None, said: str
) -> None:
    meter = scripted(*plan)
    meter.open()
    with pytest.raises(Refused, match=said):
        compared(meter, wanted, None, 0.1, tell=lambda done: None)
