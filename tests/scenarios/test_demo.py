"""The demo as people start it: real processes, both runs, the picture, and nothing left over."""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
SMALL = ("--boards", "2", "--rounds", "2", "--budget", "64")

pytestmark = pytest.mark.slow


def started(out: Path, arguments: Sequence[str]) -> "subprocess.Popen[str]":
    return subprocess.Popen(
        [sys.executable, "-m", "coordinator", "demo", "--out", str(out), *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        cwd=ROOT,
        text=True,
        start_new_session=True,
        preexec_fn=hear_ctrl_c,  # noqa: PLW1509 - no other thread runs here
    )


def hear_ctrl_c() -> None:
    """A background job of a shell without job control ignores SIGINT, and so would all that it starts."""
    signal.signal(signal.SIGINT, signal.SIG_DFL)


def processes(out: Path) -> dict[int, str]:
    """Whatever runs with that folder on its command line."""
    found = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit() and int(entry.name) != os.getpid():
            try:
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            except OSError:
                continue
            if str(out) in command:
                found[int(entry.name)] = command
    return found


def all_gone(out: Path, seconds: float = 10.0) -> bool:
    until = time.monotonic() + seconds
    while processes(out) and time.monotonic() < until:
        time.sleep(0.1)
    return not processes(out)


def read_until(demo: "subprocess.Popen[str]", words: str) -> str:
    assert demo.stdout is not None
    for line in demo.stdout:
        if words in line:
            return line
    raise AssertionError(f"the demo ended without saying {words!r}: {demo.communicate()[1]}")


def test_the_demo_compares_both_policies_on_the_same_samples(tmp_path: Path) -> None:
    demo = started(tmp_path, ["--json", *SMALL])
    output, complaint = demo.communicate(timeout=300)
    assert demo.returncode == 0, complaint
    found = json.loads(output)
    equal, adaptive = found["comparison"]["runs"]
    assert (equal["policy"], adaptive["policy"], adaptive["w_e"]) == ("equal", "adaptive", 0.25)
    for run in (equal, adaptive):
        assert (run["rounds"], run["samples"], run["basis"]) == (2, 128, "emulated")
        assert run["boards"] == ["rpi4", "rpi5"]
        assert 0 <= run["accuracy"] <= 1
        assert run["joules_total"] > 0
        assert sum(run["seconds"].values()) > run["makespan_total_seconds"]
    assert equal["reallocations"] == 0
    assert adaptive["reallocations"] == 1
    assert Path(found["picture"]).read_bytes().startswith(b"\x89PNG")
    assert tmp_path in Path(found["picture"]).parents
    assert re.search(r"equal 1/2: makespan .* J emulated, shares rpi4:32 rpi5:32", complaint)
    assert found["scale"]["native_share"] <= 0.4 + 1e-9
    assert all_gone(tmp_path)


def test_ctrl_c_ends_all_that_was_started(tmp_path: Path) -> None:
    demo = started(tmp_path, SMALL)
    read_until(demo, "starting 2 boards")
    assert any("edged" in command for command in processes(tmp_path).values())
    demo.send_signal(signal.SIGINT)
    _, complaint = demo.communicate(timeout=60)
    assert demo.returncode == 130
    assert "Traceback" not in complaint
    assert all_gone(tmp_path)


def test_a_board_that_dies_ends_the_demo_with_its_name(tmp_path: Path) -> None:
    demo = started(tmp_path, SMALL)
    read_until(demo, "starting 2 boards")
    until = time.monotonic() + 60
    boards: list[int] = []
    while not boards:
        assert time.monotonic() < until
        time.sleep(0.1)
        boards = [pid for pid, command in processes(tmp_path).items() if "rpi5" in command]
    os.kill(boards[0], signal.SIGKILL)
    _, complaint = demo.communicate(timeout=60)
    assert demo.returncode == 1
    assert "rpi5 ended by signal SIGKILL" in complaint
    assert "rpi5.log" in complaint
    assert all_gone(tmp_path)
