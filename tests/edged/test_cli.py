"""The command line: what is there, how it fails, and that help is quick."""

import json
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from edged import __version__
from edged.cli import build
from edged.config import SAMPLE

NAME = "a name is 1 to 63 of a-z, 0-9, - and _, the first a letter or a digit"


def run(*arguments: str) -> Result:
    return CliRunner().invoke(build(), list(arguments))


def test_every_sub_command_has_help_with_an_example() -> None:
    listing = run("--help")
    assert listing.exit_code == 0
    for name in ("run", "config", "version"):
        assert name in listing.output
        text = run(name, "--help").output
        assert "Example" in text, name
        assert "--json" in text, name


@pytest.mark.parametrize("group", ["probe", "data", "tasks"])
def test_every_group_and_all_its_commands_have_help_with_an_example(group: str) -> None:
    listing = run(group, "--help").output
    assert f"Example: edged {group}" in listing
    found = next(one for one in build().registered_groups if one.name == group).typer_instance
    assert found is not None
    for command in found.registered_commands:
        text = " ".join(run(group, str(command.name), "--help").output.split())
        assert f"edged {group} {command.name}" in text.partition("Example")[2]


def test_measures_usage_names_its_command() -> None:
    usage = next(line for line in run("probe", "measure", "--help").output.splitlines() if "Usage" in line)
    assert usage.split()[-1] == "[COMMAND]..."


def test_help_imports_nothing_heavy() -> None:
    code = (
        "import sys\nfrom edged.cli import build\nfrom typer.testing import CliRunner\n"
        "assert CliRunner().invoke(build(), ['--help']).exit_code == 0\n"
        "print([name for name in ('torch', 'numpy', 'paho', 'safetensors') if name in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_the_version_is_said_in_both_forms() -> None:
    assert run("version").output == f"edged {__version__}\n"
    assert run("--version").output == f"edged {__version__}\n"
    assert json.loads(run("version", "--json").output) == {"edged": __version__, "protocols": [1]}


def test_config_prints_the_sample_and_checks_a_file(tmp_path: Path) -> None:
    assert run("config").output == SAMPLE.read_text()
    path = tmp_path / "edged.toml"
    path.write_text("[board]\nid = 'pi4'")
    assert f"{path}: good; board pi4" in run("config", "--check", str(path)).output
    path.write_text("[board]\nname = 'pi4'")
    bad = run("config", "--check", str(path))
    assert bad.exit_code == 78
    assert "board.name: unknown key" in bad.output


def test_run_shows_what_file_and_flags_come_to(tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_text(
        "[board]\nid = 'pi4'\nfleet = 'attic'\n[energy.plug]\nkind = 'shelly'\nurl = 'http://192.0.2.7'"
    )
    flags = [
        "--board",
        "pi5",
        "--broker",
        "far:1884",
        "--pool",
        "a=/a",
        "--pool",
        "b=builtin",
        "--emulate",
        "rpi5",
    ]
    done = run("run", "--config", str(path), "--json", *flags, "--speed-scale", "0.02", "--threads", "2")
    assert done.exit_code == 0, done.output
    settings = json.loads(done.output)
    assert settings["board"] == {"id": "pi5", "fleet": "attic", "silo": ""}
    assert (settings["broker"]["host"], settings["broker"]["port"]) == ("far", 1884)
    assert settings["data"] == {"a": {"path": "/a"}, "b": {"path": "builtin"}}
    assert settings["emulate"] == {"board": "rpi5", "speed_scale": 0.02}
    assert settings["training"]["threads"] == 2
    assert settings["energy"]["probes"] == {"plug": {"kind": "shelly", "url": "http://192.0.2.7"}}


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["--broker", "far:x"], "broker: 'far:x' is not HOST[:PORT]"),
        (["--pool", "mnist"], "pool: 'mnist' is not NAME=PATH"),
        (["--board", "a b"], f"board.id: {NAME}"),
        (["--pool", "a b=/x"], f"edged run: data: {NAME}"),
        (["--speed-scale", "0.02", "--json"], "emulate.speed_scale: it paces an emulated board"),
        (["--config", "/nonexistent.toml"], "/nonexistent.toml: cannot be read"),
        (["--log-level", "loud"], "log.level: "),
    ],
)
def test_run_refuses_bad_settings_in_one_line_with_code_78(arguments: list[str], words: str) -> None:
    done = run("run", *arguments)
    assert done.exit_code == 78
    assert words in done.output
    assert len(done.output.strip().splitlines()) == 1
