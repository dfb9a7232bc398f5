"""What a board's daemon costs while nobody looks: start, idle CPU, bytes that it has the disk write.

`python -m benchmarks.board [--minutes 2]`. Models lie in memory (/dev/shm), as under the service, and so does
the log, which is the journal's there. Bytes are the kernel's count of both processes (/proc/PID/io).
"""

import argparse
import os
import socket
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from statistics import median

from benchmarks.kills import child_of
from coordinator.broker import free_port
from edged.controls import GetBoards
from tests.scenarios.lab import Lab

STARTS = 7
READY_LIMIT_SECONDS = 3.0
CPU_LIMIT = 0.003
WRITTEN_LIMIT_BYTES = 1e6
BOARD = "rpi4"


def seconds_to_ready(folder: Path) -> float:
    """From the start of the command to READY, where no broker answers."""
    place = folder / "notify"
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
        manager.bind(str(place))
        words = f"--board bench --broker 127.0.0.1:{free_port()} --pool digits=builtin --runtime {folder}"
        begun = time.monotonic()
        daemon = subprocess.Popen(
            [sys.executable, "-m", "edged", "run", *words.split()],
            env={**os.environ, "NOTIFY_SOCKET": str(place)},
            stderr=subprocess.DEVNULL,
        )
        try:
            while manager.recv(4096) != b"READY=1":
                pass
            return time.monotonic() - begun
        finally:
            daemon.terminate()
            daemon.wait()
            place.unlink()


def cpu_seconds(pid: int) -> float:
    """Of the process itself, all its threads included."""
    fields = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def written_bytes(pid: int) -> int:
    lines = Path(f"/proc/{pid}/io").read_text().splitlines()
    return int(dict(line.split(": ") for line in lines)["write_bytes"])


@contextmanager
def laboratory() -> Iterator[Lab]:
    """A coordinator and one emulated board, its models in memory."""
    with tempfile.TemporaryDirectory(prefix="edged-board-", dir="/dev/shm") as folder:
        lab = Lab(Path(folder))
        try:
            lab.start_coordinator()
            lab.start_board(BOARD, "--emulate", BOARD, "--speed-scale", "0.02")
            lab.wait(lambda: any(row["pools"] for row in lab.ask(GetBoards()).data["boards"]), "the board")
            yield lab
        finally:
            lab.close()


def main() -> None:
    """Print the three figures with their limits."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--minutes", type=float, default=2.0, help="how long to look, idle and training")
    seconds = 60 * parser.parse_args().minutes
    with tempfile.TemporaryDirectory(prefix="edged-board-") as folder:
        ready = median(seconds_to_ready(Path(folder)) for _ in range(STARTS))
    print(f"start to READY without broker: {ready:.2f} s (limit {READY_LIMIT_SECONDS:g})")
    with laboratory() as lab:
        pid = lab.processes[BOARD].pid
        time.sleep(5.0)
        begun, before = time.monotonic(), cpu_seconds(pid)
        time.sleep(seconds)
        share = (cpu_seconds(pid) - before) / (time.monotonic() - begun)
        print(f"idle agent: {100 * share:.2f} % of a core (limit {100 * CPU_LIMIT:g})")
        run = lab.begin(budget=100, rounds=10_000, policy="equal", evaluate=False)
        lab.wait_round(run, 2)
        child = child_of(pid)
        assert child is not None
        begun, before = time.monotonic(), written_bytes(pid) + written_bytes(child)
        start = before
        first = len(lab.rows("round", run))
        busy = cpu_seconds(pid)
        time.sleep(seconds)
        hours = (time.monotonic() - begun) / 3600
        written = written_bytes(pid) + written_bytes(child) - before
        rounds = len(lab.rows("round", run)) - first
        busy = (cpu_seconds(pid) - busy) / (hours * 3600)
    print(
        f"disk, training: {written / hours / 1e6:.3f} MB an hour (limit {WRITTEN_LIMIT_BYTES / 1e6:g}), "
        f"{written} bytes in {rounds} rounds, {start} from the start to round 2; "
        f"agent meanwhile {100 * busy:.2f} % of a core"
    )


if __name__ == "__main__":
    main()
