"""Settings that name what is not there: `config --check` says what `run` would say."""

from pathlib import Path

import pytest
from typer.testing import CliRunner

from edged.cli import build
from edged.config import SAMPLE, check
from edged.vetting import vet


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ('[emulate]\nboard = "nope"', "emulate.board: no board named 'nope' in the table; there are: "),
        (
            "[emulate]\nspeed_scale = 0.02",
            "emulate.speed_scale: it paces an emulated board, and there is none",
        ),
        ('[energy.plugg]\nkind = "shelly"', "energy.plugg: no sensor has such a table; there are: "),
        ('[energy.shelly]\nurl = "http://192.0.2.7"', "energy.shelly: a plug's table is [energy.plug]"),
        ('[energy.plug]\nkind = "shelly"', "energy.plug takes either url"),
        ('[energy.plug]\nurl = "http://192.0.2.7"', "energy.plug.kind is missing"),
        ('[energy.plug]\nkind = "fritz"', "energy.plug.kind: 'fritz' is none of shelly, tasmota"),
        ('[energy.plug]\nkind = "shelly"\nurll = "http://192.0.2.7"', "energy.plug.urll: unknown key"),
        (
            '[energy.plug]\nkind = "zigbee2mqtt"\nurl = "http://192.0.2.7"',
            "energy.plug.url: zigbee2mqtt speaks",
        ),
        ('[energy.plug]\nkind = "tasmota"\ntopic = "a"\ncomponent = "x"', "energy.plug.component: 'x'"),
        ('[energy.plug]\nkind = "shelly"\ntopic = "a"\nhost = "h"\nport = "x"', "energy.plug: host 'h'"),
        ("[energy.estimate]\nidle_watts = 5", "energy.estimate.full_watts is missing"),
        ("[energy.estimate]\nidle_watts = 5\nfull_watts = 2", "energy.estimate: full_watts (2) lies below"),
        ("[energy.hwmon]\ninput = 3", "energy.hwmon.input: 3 is no text"),
        ('[energy.calibration."a/b"]\nfactor = "x"', 'energy.calibration."a/b".factor: '),
    ],
)
def test_the_check_refuses_what_run_refuses_in_the_same_words(tmp_path: Path, text: str, words: str) -> None:
    path = tmp_path / "edged.toml"
    path.write_text(text)
    checked = CliRunner().invoke(build(), ["config", "--check", str(path)])
    ran = CliRunner().invoke(build(), ["run", "--config", str(path), "--json"])
    assert (checked.exit_code, ran.exit_code) == (78, 78)
    assert checked.output.startswith(f"edged config: {path}: {words}")
    assert ran.output.startswith(f"edged run: {words}")
    assert len(checked.output.splitlines()) == 1


@pytest.mark.parametrize(
    "energy",
    [
        {},
        {"plug": {"kind": "shelly", "url": "http://192.0.2.7", "shared": ["nas"]}},
        {"plug": {"kind": "zigbee2mqtt", "topic": "zigbee2mqtt/desk", "host": "192.0.2.8", "port": 1884}},
        {"estimate": {"idle_watts": 2, "full_watts": 6.5}, "pyrapl": {"enabled": True}},
        {"calibration": {"hwmon/a": {"factor": 1.02, "date": "2026-01-01"}}},
    ],
)
def test_what_is_documented_is_good(energy: dict[str, object]) -> None:
    vet(check({"energy": energy}))


def test_the_sample_with_every_example_taken_up_is_good(tmp_path: Path) -> None:
    lines = SAMPLE.read_text().splitlines()
    path = tmp_path / "edged.toml"
    path.write_text("\n".join(line.removeprefix("#") if line[:2] != "# " else line for line in lines))
    done = CliRunner().invoke(build(), ["config", "--check", str(path)])
    assert done.exit_code == 0, done.output
