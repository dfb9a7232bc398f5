"""The surface as a whole: each command helps with an example and has JSON; exit statuses are written down."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.commands import exits

ROOT = Path(__file__).resolve().parents[2]
COMMANDS = sorted(str(command.callback.__name__) for command in app.registered_commands if command.callback)
ASKED_FOR = (
    "serve run weights policy pause resume stop boards rounds runs status top doctor compare config demo "
    "version telemetry dashboards simulate advise replay"
)


def test_all_commands_are_there() -> None:
    assert set(ASKED_FOR.split()) <= set(COMMANDS)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_helps_with_an_example_and_has_a_json_form(command: str) -> None:
    done = CliRunner().invoke(app, [command, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert done.exit_code == 0
    assert f"Example: edged-coordinator {command}" in done.stdout
    assert "--json" in done.stdout
    assert "\x1b" not in done.stdout


@pytest.mark.parametrize(("group", "example"), [((), "demo"), (("fleet",), "fleet show paper-eleven")])
def test_a_group_helps_with_an_example_too(group: tuple[str, ...], example: str) -> None:
    done = CliRunner().invoke(app, [*group, "--help"], env={"COLUMNS": "200", "NO_COLOR": "1"})
    assert f"Example: edged-coordinator {example}" in done.stdout


def test_an_unknown_command_is_a_usage_fault() -> None:
    assert CliRunner().invoke(app, ["dance"]).exit_code == exits.USAGE


def test_the_help_needs_no_heavy_library() -> None:
    script = (
        "import sys; from coordinator.cli import app; "
        "print([m for m in ('torch', 'numpy', 'matplotlib', 'paho', 'rich') if m in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, cwd=ROOT, check=True
    )
    assert done.stdout.strip() == "[]"


def test_the_manual_tells_all_exit_statuses() -> None:
    manual = (ROOT / "docs" / "operate.md").read_text()
    told = {int(status): text for status, text in re.findall(r"^\| (\d+) \| (.+?) \|$", manual, re.MULTILINE)}
    assert told == exits.MEANINGS


def test_the_manual_tells_all_commands() -> None:
    manual = (ROOT / "docs" / "operate.md").read_text()
    assert [command for command in COMMANDS if f"edged-coordinator {command}" not in manual] == []


def test_the_sample_configuration_can_be_checked(tmp_path: Path) -> None:
    sample = CliRunner().invoke(app, ["config"]).stdout
    path = tmp_path / "coordinator.toml"
    path.write_text(sample)
    assert "good" in CliRunner().invoke(app, ["config", "--check", str(path)]).stdout
    path.write_text("fleet = 3\n")
    done = CliRunner().invoke(app, ["config", "--check", str(path)])
    assert done.exit_code == exits.CONFIG
    assert "fleet: Expected" in done.stderr


def test_the_version_is_told() -> None:
    done = CliRunner().invoke(app, ["version", "--json"])
    assert '"edged"' in done.stdout
    assert "protocol 1" in CliRunner().invoke(app, ["version"]).stdout
