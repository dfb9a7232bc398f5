"""Boards as they are in the attic: no name server and no clock at boot, a read-only root, a full disk.

Real processes; the kernel's mounts, a silent name server and a shifted clock stand for the board.
"""

import os
import re
import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetBoards, GetStatus, Resume
from tests.scenarios.lab import ENVIRONMENT, Lab, check_account

pytestmark = [pytest.mark.server, pytest.mark.slow]

NAME_SERVER = "127.0.0.77"
IN_THE_ATTIC = (
    "mount --bind {0}/hosts /etc/hosts && mount --bind {0}/resolv.conf /etc/resolv.conf && "
    'mount -t tmpfs tmpfs {0}/runtime && mount -o remount,bind,ro / && exec "$@"'
)
WITHOUT_BATTERY = """
import pathlib, time
real, shift = time.time, pathlib.Path({!r})
time.time = lambda: real() + float(shift.read_text())
time.time_ns = lambda: int(time.time() * 1e9)
"""
"""The wall clock of every Python process, with the shift that the file tells at that moment."""
BROKER = "broker.attic.test"
SCALE = "0.01"
"""Seconds a sample on an emulated Raspberry Pi 4."""
WATTS = 5.0
"""Of one that trains, as published."""


@pytest.fixture
def lab(tmp_path: Path) -> Iterator[Lab]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    if os.geteuid() != 0:
        pytest.skip("mounting needs root")
    made = Lab(tmp_path)
    yield made
    made.close()


class Attic:
    """What a board has there: names of hosts, a name server that keeps silent, a clock, a service manager."""

    def __init__(self, folder: Path) -> None:
        if shutil.which("unshare") is None:
            pytest.skip("unshare is not installed (Debian: util-linux)")
        self.hosts, self.clock = folder / "hosts", folder / "clock"
        (folder / "runtime").mkdir()
        (folder / "resolv.conf").write_text(f"nameserver {NAME_SERVER}\noptions timeout:2 attempts:2\n")
        self.hosts.write_text("127.0.0.1 localhost\n")
        self.clock.write_text(str(20 - time.time()))
        (folder / "sitecustomize.py").write_text(WITHOUT_BATTERY.format(str(self.clock)))
        self.asked = socket.socket(socket.AF_INET, socket.SOCK_DGRAM)
        self.asked.bind((NAME_SERVER, 53))
        self.asked.setblocking(False)
        self._manager = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._manager.bind(str(folder / "notify"))
        self._manager.settimeout(0.2)
        self.said: list[str] = []
        self.prefix = ("unshare", "--mount", "sh", "-c", IN_THE_ATTIC.format(folder), "sh")
        self.environment = {
            **ENVIRONMENT,
            "PYTHONPATH": str(folder),
            "NOTIFY_SOCKET": str(folder / "notify"),
            "TMPDIR": str(folder / "runtime"),  # as PrivateTmp has it
        }

    def hear(self, word: str) -> str:
        """The next word to the service manager that has this in it, "" if none is there yet."""
        try:
            self.said.append(self._manager.recv(4096).decode())
        except TimeoutError:
            return ""
        return self.said[-1] if word in self.said[-1] else ""

    def questions(self) -> int:
        """Packets that the name server got since this was asked last."""
        count = 0
        while True:
            try:
                self.asked.recv(4096)
            except BlockingIOError:
                return count
            count += 1

    def close(self) -> None:
        self.asked.close()
        self._manager.close()


@pytest.fixture
def attic(tmp_path: Path) -> Iterator[Attic]:
    (tmp_path / "attic").mkdir()
    made = Attic(tmp_path / "attic")
    yield made
    made.close()


def seen(lab: Lab, board: str) -> dict[str, Any]:
    """What the coordinator knows of the board."""
    rows = lab.ask(GetBoards()).data["boards"]
    return next((row for row in rows if row["board"] == board), {})


def test_a_board_boots_without_names_and_clock_and_trains_when_both_are_there(lab: Lab, attic: Attic) -> None:
    lab.start_coordinator()
    words = f"--board pi --fleet lab --broker {BROKER}:{lab.broker.port} --pool digits=builtin --threads 1"
    words += f" --emulate rpi4 --speed-scale {SCALE} --runtime {lab.folder}/attic/runtime"
    command = ("edged", "run", *words.split())
    lab.start("pi", *command, prefix=attic.prefix, environment=attic.environment)
    lab.wait(lambda: attic.hear("READY=1"), "READY")
    # One attempt is two packets, for both kinds of addresses: the start has not waited for the second.
    assert attic.questions() <= 2
    waits = lab.wait(lambda: attic.hear("the name does not resolve"), "what it waits for")
    assert waits.startswith(f"STATUS=waiting for broker {BROKER}:{lab.broker.port}")

    attic.hosts.write_text(f"127.0.0.1 localhost {BROKER}\n")
    lab.wait(lambda: seen(lab, "pi").get("pools"), "the board")
    assert seen(lab, "pi")["address"] == "127.0.0.1"
    begun = time.monotonic()
    run = lab.begin(budget=400, rounds=1, policy="equal", learning_rate=0.05)
    lab.wait(lambda: seen(lab, "pi").get("samples_done"), "a step")
    assert seen(lab, "pi")["skew_seconds"] < -50 * 365 * 86400
    attic.clock.write_text("0")
    row = lab.finish(run)
    seconds = time.monotonic() - begun
    assert row["complete"], row["reason"]
    check_account(lab, run, 400, 1)
    (share,) = lab.rows("board_round", run)
    assert 400 * float(SCALE) <= share["seconds"] <= seconds
    assert share["joules"] == pytest.approx(WATTS * share["seconds"], rel=1e-3)
    lab.wait(lambda: abs(seen(lab, "pi")["skew_seconds"]) < 5, "a state by the right clock")
    assert "Read-only" not in (lab.folder / "pi.log").read_text()


@contextmanager
def small_disk(lab: Lab, name: str, size: str) -> Iterator[Path]:
    """A file system of that size as a folder of the laboratory."""
    folder = lab.folder / name
    folder.mkdir()
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={size}", "tmpfs", str(folder)], check=True)
    try:
        yield folder
    finally:
        lab.close()
        # Lazily: a child of theirs may take a moment longer to be gone.
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def leave(disk: Path, bytes_free: int) -> None:
    """Fill the disk up to this."""
    filler = disk / "filler"
    filler.unlink(missing_ok=True)
    size = shutil.disk_usage(disk).free - bytes_free
    if size > 0:
        filler.write_bytes(b"\0" * size)


def test_a_full_disk_is_named_loses_nothing_and_is_forgotten_when_there_is_room(lab: Lab) -> None:
    """Half a megabyte for models and updates; the digits' model has 87 kB."""
    with small_disk(lab, "runtime-full", "512k") as disk:
        lab.start_coordinator()
        for board in ("full", "roomy"):
            lab.start_board(board, "--emulate", "rpi4", "--speed-scale", SCALE)
        lab.wait(lambda: seen(lab, "full").get("tasks") and seen(lab, "roomy").get("tasks"), "both boards")
        leave(disk, 40_000)
        run = lab.begin(budget=120, rounds=4, policy="equal", learning_rate=0.05, min_boards=2)

        def abandoned(words: str) -> bool:
            rows = [row for row in lab.rows("board_round", run) if row["board"] == "full"]
            return any(row["status"] == "abandoned" and words in row["reason"] for row in rows)

        lab.wait(lambda: abandoned("needs 87,392 bytes"), "the model that has no room")
        leave(disk, 120_000)
        lab.wait(lambda: abandoned("No space left on device"), "the update that has no room")
        (disk / "filler").unlink()
        row = lab.finish(run)
        assert row["complete"], row["reason"]
        check_account(lab, run, 120, 4)
        last = [row for row in lab.rows("board_round", run) if row["board"] == "full"][-1]
        assert last["status"] == "accepted"


def complaint(lab: Lab, run: str) -> str:
    """What the operator is told of a disk without room: by the store, the merge, or an upload."""
    status = lab.ask(GetStatus()).data
    told = [status["problem"], (status["run"] or {}).get("reason", "")]
    told += [row["reason"] for row in lab.rows("board_round", run)]
    return next((text for text in told if re.search("full|No space left|bytes free| free$", text)), "")


def test_a_coordinator_whose_disk_is_full_says_so_and_loses_nothing(lab: Lab) -> None:
    """What cannot be saved is tried again by itself; a merge without room waits for the operator."""
    with small_disk(lab, "store", "4m") as disk:
        lab.start_coordinator()
        lab.start_board("pi", "--emulate", "rpi4", "--speed-scale", SCALE)
        lab.wait(lambda: seen(lab, "pi").get("tasks"), "the board")
        run = lab.begin(budget=100, rounds=3, policy="equal", learning_rate=0.05)
        lab.wait_round(run, 2)
        leave(disk, 0)
        lab.wait(lambda: complaint(lab, run), "what is wrong")
        assert lab.ended(run) is None
        (disk / "filler").unlink()

        def over() -> dict[str, Any] | None:
            present = lab.ask(GetStatus()).data["run"]
            if present and present["paused"]:
                lab.ask(Resume())
            return lab.ended(run)

        row = lab.wait(over, "the end")
        assert row["complete"], row["reason"]
        check_account(lab, run, 100, 3)
