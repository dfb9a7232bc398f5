"""How a program of edged begins and is ended: Ctrl-C while it imports, output that cannot be written."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path

import pytest

from edged.commands import _exits

ROOT = Path(__file__).resolve().parents[2]
INTERRUPTED_AT = """
import os, runpy, signal, sys

class Interrupt:
    def find_spec(self, name, *more):
        if name == {module!r}:
            os.kill(os.getpid(), signal.SIGINT)

signal.signal(signal.SIGINT, signal.default_int_handler)  # whatever this test was started with
sys.meta_path.insert(0, Interrupt())
sys.argv = {argv!r}
runpy.run_module({program!r}, run_name="__main__")
"""


@pytest.mark.parametrize(
    ("program", "module"),
    [
        ("edged", "typer"),
        ("edged", "edged.commands.tasks"),  # while the command line is put together
        ("coordinator", "typer"),
        ("edged.entry", "msgspec"),
    ],
)
def test_ctrl_c_while_a_program_imports_ends_it_quietly_with_130(program: str, module: str) -> None:
    code = INTERRUPTED_AT.format(program=program, module=module, argv=[program, "edged.daemon", "{}"])
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stdout, done.stderr) == (130, "", "")


@pytest.mark.parametrize("program", ["edged", "coordinator"])
def test_ctrl_c_while_a_program_goes_down_is_quiet_too(program: str) -> None:
    code = (
        "import atexit, os, runpy, signal, sys\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "atexit.register(os.kill, os.getpid(), signal.SIGINT)\n"
        f"sys.argv = ['x', 'version']; runpy.run_module({program!r}, run_name='__main__')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
    assert done.stdout.startswith("edged")


def test_ctrl_c_between_the_command_and_the_daemon_is_not_lost() -> None:
    code = (
        "import os, signal; from edged import entry\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT}); os.kill(os.getpid(), signal.SIGINT)\n"
        "entry.hand_over('edged.daemon', '')"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no /dev/full here")
@pytest.mark.parametrize("arguments", [("config",), ("tasks", "list", "--json"), ("version",), ("--help",)])
def test_output_that_cannot_be_written_is_one_line_and_status_70(arguments: tuple[str, ...]) -> None:
    command = [sys.executable, "-m", "edged", *arguments]
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == _exits.FAULT
    assert len(done.stderr.splitlines()) == 1, done.stderr
    assert "No space left on device" in done.stderr


def test_a_child_whose_reader_went_away_ends_quietly() -> None:
    child = subprocess.Popen(
        [sys.executable, "-m", "edged.pools"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
    )
    assert child.stdout is not None
    child.stdout.close()
    child.stdout = None
    _, words = child.communicate(json.dumps({"pools": {}}).encode())
    assert (child.returncode, words) == (1, b"")


def test_ctrl_c_ends_a_running_daemon_and_its_stocktaking_without_a_traceback(tmp_path: Path) -> None:
    """The terminal sends it to the whole group, here while a task file of the owner takes its time."""
    slow = "import os, pathlib, time\npathlib.Path({!r}).write_text(str(os.getpid()))\ntime.sleep(600)\n"
    (tmp_path / "tasks").mkdir()
    (tmp_path / "tasks" / "slow.py").write_text(slow.format(str(tmp_path / "pid")))
    command = [sys.executable, "-m", "edged", "run", "--broker", "127.0.0.1:1", "--board", "b"]
    command += ["--tasks", str(tmp_path / "tasks"), "--emulate", "rpi4"]
    code = (
        "import os, signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "os.execv(sys.argv[1], sys.argv[1:])"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, *command], stderr=subprocess.PIPE, text=True, start_new_session=True
    ) as daemon:
        try:
            _until(lambda: (tmp_path / "pid").exists() and (tmp_path / "pid").read_text() != "")
            os.killpg(daemon.pid, signal.SIGINT)
            _, words = daemon.communicate(timeout=60)
        finally:
            daemon.kill()
    assert daemon.returncode == 0, words
    assert "ending: SIGINT" in words
    assert "Traceback" not in words
    child = int((tmp_path / "pid").read_text())
    _until(lambda: not _runs(child))


def test_the_manual_tells_all_exit_statuses() -> None:
    manual = (ROOT / "docs" / "install.md").read_text()
    told = {int(status): text for status, text in re.findall(r"^\| (\d+) \| (.+?) \|$", manual, re.MULTILINE)}
    assert told == _exits.MEANINGS


def _until(so: Callable[[], bool]) -> None:
    until = time.monotonic() + 60
    while not so():
        assert time.monotonic() < until
        time.sleep(0.05)


def _runs(pid: int) -> bool:
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False
