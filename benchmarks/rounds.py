"""What a round costs beyond its compute: four boards as real processes over mosquitto on loopback.

Prints the median of orders out to next orders out minus the longest compute, and what the time goes into:
`python -m benchmarks.rounds [--rounds 8] [--widths 128 3136]` (90 kB and 40 MB of weights).
"""

import argparse
import os
import statistics
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from coordinator.broker import Broker, start_broker
from coordinator.config import Broker as BrokerOptions
from coordinator.config import Config, Pool, StoreOptions
from coordinator.service import follow_run, opened
from edged.controls import RunSettings

BOARDS = ("rpi4", "rpi5", "visionfive2", "n100")
POOL = "builtin/synthetic"
PARTS = ("communication", "wait", "lost", "overhead")
BUDGET = 1024


def board(name: str, broker: Broker, folder: Path) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "edged", "run", "--board", name, "--emulate", name]
    command += ["--broker", f"{broker.host}:{broker.port}", "--pool", f"synthetic={POOL}"]
    command += ["--speed-scale", "0.002", "--runtime", str(folder / f"runtime-{name}"), "--threads", "1"]
    with (folder / f"{name}.log").open("wb") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"})


def peak_bytes(pid: int) -> int | None:
    """Largest memory that the process has had, None where the kernel does not say."""
    try:
        lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    except OSError:
        return None
    return next((int(line.split()[1]) * 1024 for line in lines if line.startswith("VmHWM")), None)


def run(width: int, rounds: int, folder: Path) -> None:
    rows: dict[str, list[dict[str, Any]]] = {}
    broker = start_broker(folder / "broker")
    boards = {name: board(name, broker, folder) for name in BOARDS}
    config = Config(
        broker=BrokerOptions(broker.host, broker.port),
        store=StoreOptions(str(folder / "store")),
        data={"synthetic": Pool(POOL)},
    )
    settings = RunSettings(
        "synthetic", "synthetic", BUDGET, rounds, options={"width": width}, boards=BOARDS, evaluate=False
    )
    try:
        with opened(config, follow=lambda what, row: rows.setdefault(what, []).append(row)) as server:
            follow_run(server, settings, "benchmark", lambda run: None)
            published = server.distribution.published_bytes
            length = server.rounds.state.manifest.length_bytes if server.rounds else 0
        agents = [peak_bytes(process.pid) for process in boards.values()]
    finally:
        for process in boards.values():
            process.terminate()
        for process in boards.values():
            process.wait()
        broker.stop()
    tell(rows, length, published, agents)


def tell(
    rows: dict[str, list[dict[str, Any]]], length: int, published: dict[str, int], agents: list[int | None]
) -> None:
    # The first two rounds start the boards' training processes and find the shares.
    counted = rows["round"][2:]
    beyond = [row["wall_seconds"] - row["makespan_seconds"] for row in counted]
    print(f"model {length / 1e6:.2f} MB, {len(BOARDS)} boards, {len(counted)} rounds")
    print(f"  beyond the longest compute: median {statistics.median(beyond):.3f} s, most {max(beyond):.3f} s")
    numbers = {row["round"] for row in counted}
    closed = [row for row in rows.get("closed", []) if row["round"] in numbers]
    for part in PARTS:
        seconds = [row["parts"][part]["seconds"] for row in closed]
        if seconds:
            print(
                f"  {part} of a board: median {statistics.median(seconds):.3f} s, most {max(seconds):.3f} s"
            )
    copies = {version: count / length for version, count in published.items()}
    print(f"  copies of the model published a round: {statistics.mean(copies.values()):.2f}")
    known = [peak for peak in agents if peak is not None]
    print(f"  memory of an agent: {max(known) / 1e6:.0f} MB at most" if known else "  memory: not known here")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--widths", type=int, nargs="+", default=[128, 3136])
    arguments = parser.parse_args()
    for width in arguments.widths:
        with tempfile.TemporaryDirectory() as name:
            run(width, max(3, arguments.rounds), Path(name))


if __name__ == "__main__":
    main()
