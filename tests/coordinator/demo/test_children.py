"""Processes of the demo: ended in order and whatever happens, and told when they end by themselves."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from coordinator.demo.children import ChildError, Children

SLEEP = ["-c", "import time; print('up', flush=True); time.sleep(60)"]
DEAF = [
    "-c",
    "import signal, time; signal.signal(15, signal.SIG_IGN); print('up', flush=True); time.sleep(60)",
]


def gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    # A process that is only left to be waited for has ended, too.
    return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"


def wait_for(log: Path, text: str) -> None:
    until = time.monotonic() + 30
    while not log.exists() or text not in log.read_text():
        assert time.monotonic() < until
        time.sleep(0.02)


def test_all_are_ended_when_the_context_ends(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        pids = [children.start(name, SLEEP).pid for name in ("a", "b")]
        children.check()
    assert all(gone(pid) for pid in pids)


def test_all_are_ended_when_it_is_interrupted(tmp_path: Path) -> None:
    children = Children(tmp_path)
    with children:
        pid = children.start("a", SLEEP).pid
        children.__exit__(KeyboardInterrupt, KeyboardInterrupt(), None)
        assert gone(pid)


def test_one_that_does_not_listen_is_ended_all_the_same(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        pid = children.start("deaf", DEAF).pid
        wait_for(children.log("deaf"), "up")
        children.end_seconds = 0.2
    assert gone(pid)


def test_what_a_child_started_ends_with_it(tmp_path: Path) -> None:
    script = (
        "import subprocess, sys, time; "
        "child = subprocess.Popen([sys.executable, '-c', 'import time; time.sleep(60)']); "
        "print('pid', child.pid, flush=True); time.sleep(60)"
    )
    with Children(tmp_path) as children:
        children.start("parent", ["-c", script])
        wait_for(children.log("parent"), "pid")
        grandchild = int(children.log("parent").read_text().split()[1])
        assert not gone(grandchild)
    until = time.monotonic() + 5
    while not gone(grandchild):
        assert time.monotonic() < until
        time.sleep(0.02)


def test_one_that_ends_by_itself_is_told_with_its_last_words(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        process = children.start("a", ["-c", "import sys; sys.exit('no such board')"])
        process.wait()
        with pytest.raises(ChildError, match=r"a ended with status 1: no such board \(log: .*a\.log\)"):
            children.check()


def test_one_that_was_killed_is_told_by_the_signal(tmp_path: Path) -> None:
    with Children(tmp_path) as children:
        process = children.start("a", SLEEP)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        with pytest.raises(ChildError, match="a ended by signal SIGKILL: "):
            children.check()


def test_they_end_when_this_process_is_killed(tmp_path: Path) -> None:
    script = (
        "import sys, time; from pathlib import Path; from coordinator.demo.children import Children\n"
        "with Children(Path(sys.argv[1])) as children:\n"
        "    process = children.start('a', ['-c', 'import time; print(1, flush=True); time.sleep(60)'])\n"
        "    print(process.pid, flush=True); time.sleep(60)\n"
    )
    parent = subprocess.Popen(
        [sys.executable, "-c", script, str(tmp_path)], stdout=subprocess.PIPE, text=True
    )
    assert parent.stdout is not None
    pid = int(parent.stdout.readline())
    wait_for(tmp_path / "a.log", "1")
    parent.kill()
    parent.wait()
    parent.stdout.close()
    until = time.monotonic() + 10
    while not gone(pid):
        assert time.monotonic() < until
        time.sleep(0.02)
