"""`edged doctor` from the command line: every part of it, its exit status, its JSON, and other roots."""

from __future__ import annotations

import io
import json
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from edged.checks._working import Working
from edged.commands.doctor import app
from tests.probes.machines import FIXTURES

SETTINGS = """
[board]
id = "pi4"
[broker]
host = "127.0.0.1"
port = 1
[data.digits]
path = "builtin"
[energy.estimate]
idle_watts = 3
full_watts = 9
"""


def call(*words: str) -> Result:
    return CliRunner().invoke(app, list(words))


def test_every_part_of_a_board_is_looked_at(tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_text(SETTINGS + f'[storage]\nruntime = "{tmp_path}"\n[tasks]\nfolder = "{tmp_path}"\n')
    done = call("--config", str(path), "--json")
    found = {one["what"]: one for one in json.loads(done.stdout)}
    assert set(found) >= {
        "settings",
        "joules",
        "clock",
        "suspend",
        "broker",
        "interface",
        "host name",
        "torch",
        "gloo",
        "tasks",
        "pool digits",
        "user",
        "disk",
        "memory",
        "memory limit",
    }
    assert [name for name, one in found.items() if one["verdict"] == "fail"] == ["broker"]
    assert " TCP: no connection" in found["broker"]["text"]
    assert done.exit_code == 1
    assert found["joules"]["verdict"] == "ok"


@pytest.mark.parametrize(
    ("text", "said"),
    [("[broker]\nhost = 5", "broker.host: Expected"), ("[brokr]", "brokr: unknown key"), ("x", "not TOML")],
)
def test_settings_that_cannot_be_used_are_a_line_and_not_the_end(
    tmp_path: Path, text: str, said: str
) -> None:
    path = tmp_path / "edged.toml"
    path.write_text(text)
    done = call("--config", str(path), "--root", str(tmp_path))
    assert done.exit_code == 1
    assert said in done.stdout
    assert "joules: none" in done.stdout


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("jetson_orin_nano_jp5", "ok    joules: ina3221/1-0040/VDD_IN (module, measured"),
        ("x86_intel_client_psys_noroot", "sudo edged install"),
        ("riscv_visionfive2_none", "warn  joules: none"),
    ],
)
def test_a_recorded_machine_is_told_its_sensors_and_nothing_of_this_one(name: str, said: str) -> None:
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recorded machines at {FIXTURES}")
    done = call("--root", str(path))
    assert said in done.stdout
    assert done.exit_code == 0
    assert "torch" not in done.stdout.replace("torch and", "")


def test_a_root_that_is_none_fails_in_one_line() -> None:
    done = call("--root", "/no/such/board")
    assert done.exit_code == 1
    assert "neither a folder nor a recorded machine" in done.stdout


def test_a_long_look_says_what_it_waits_for() -> None:
    out = io.StringIO()
    with Working(out, patience_seconds=0.05) as working:
        working.on("importing torch")
        until = time.monotonic() + 10.0
        while not out.getvalue() and time.monotonic() < until:
            time.sleep(0.02)
    assert out.getvalue() == "...   importing torch\n"
