"""hfl-ddp and ddp on official MNIST files with five emulated boards in two silos, and what moved among them.

`python benchmarks/silos.py MNIST-FOLDER [--rounds 6] [--regime hfl-ddp]`. As root each board gets a network
namespace of its own on one bridge, else all share loopback, where what moved cannot be told by board.
"""

import argparse
import gzip
import struct
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))

from coordinator.broker import find_mosquitto
from tests.scenarios.bridge import Bridge, bridges_work
from tests.scenarios.lab import Lab

SILOS = {"rpi4": "attic", "rpi5": "attic", "visionfive2": "attic", "n100": "cellar", "orangepi5": "cellar"}
CUTS = {"attic": (0, 5000), "cellar": (5000, 8000), "held-out": (8000, 10000)}
SCALE = "0.006"


def cut_mnist(source: Path, target: Path) -> dict[str, Path]:
    """Parts of the official test files, each a folder of its own, in the same format."""
    found = {}
    for name, (start, stop) in CUTS.items():
        folder = found[name] = target / name
        folder.mkdir()
        for part, magic, shape in (("images-idx3", 2051, (28, 28)), ("labels-idx1", 2049, ())):
            data = gzip.decompress((source / f"t10k-{part}-ubyte.gz").read_bytes())
            size = 28 * 28 if shape else 1
            head = 4 + 4 * (1 + len(shape))
            body = data[head + start * size : head + stop * size]
            words = struct.pack(f">{2 + len(shape)}I", magic, stop - start, *shape)
            (folder / f"t10k-{part}-ubyte").write_bytes(words + body)
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("mnist", type=Path, help="the folder with t10k-images-idx3-ubyte.gz and its labels")
    parser.add_argument("--rounds", type=int, default=6)
    parser.add_argument("--regime", choices=("hfl-ddp", "ddp"), default="hfl-ddp")
    parser.add_argument("--policy", default="adaptive")
    given = parser.parse_args()
    if find_mosquitto() is None:
        sys.exit("mosquitto is not installed")
    bridge = Bridge(list(SILOS)) if bridges_work() else None
    with tempfile.TemporaryDirectory(prefix="edged-silos-") as folder:
        parts = cut_mnist(given.mnist, Path(folder))
        lab = Lab(Path(folder), pools={"mnist": str(parts["held-out"])}, bridge=bridge)
        try:
            show(lab, trained(lab, parts, given))
        finally:
            lab.close()
            if bridge is not None:
                bridge.close()


def trained(lab: Lab, parts: dict[str, Path], given: argparse.Namespace) -> str:
    """The run's name, once it is over."""
    lab.start_coordinator()
    for board, silo in SILOS.items():
        # In ddp all boards hold the same data.
        part = parts[silo if given.regime == "hfl-ddp" else "attic"]
        lab.start_board(
            board, "--silo", silo, "--emulate", board, "--speed-scale", SCALE, pools={"mnist": str(part)}
        )
    run = lab.begin(
        task="mnist",
        pool="mnist",
        budget=3200,
        batch=64 if given.regime == "hfl-ddp" else 128,
        rounds=given.rounds,
        regime=given.regime,
        policy=given.policy,
        optimizer_state="average",
        min_boards=len(SILOS),
    )
    row = lab.finish(run, 1200.0)
    print(f"{run}: {row['reason']}")
    until = time.monotonic() + 30
    while time.monotonic() < until and len(lab.rows("evaluation", run)) <= given.rounds:
        time.sleep(0.2)
    return run


def show(lab: Lab, run: str) -> None:
    """Rounds, held-out figures, and what moved."""
    figures: dict[int, dict[str, Any]] = {row["round"]: row for row in lab.rows("evaluation", run)}
    rounds = lab.rows("round", run)
    for row in rounds:
        accuracy = figures.get(row["round"], {}).get("accuracy")
        losses = " ".join(f"{name} {silo['loss']:.3f}" for name, silo in row["silos"].items())
        print(
            f"round {row['round']}: {row['accepted']} samples, makespan {row['makespan_seconds']:.2f} s, "
            f"loss {losses}, held-out accuracy {accuracy if accuracy is None else round(accuracy, 3)}, "
            f"shares {row['shares']}"
        )
    behind = sum(row["behind_pace_steps"] or 0 for row in lab.rows("board_round", run))
    steps = sum(row["steps"] or 0 for row in lab.rows("board_round", run))
    print(f"steps behind their pace: {100 * behind / max(1, steps):.1f} %")
    if lab.bridge is None:
        print("one loopback for all: what moved between boards is not told (run as root for namespaces)")
        return
    for board in SILOS:
        sent, received = lab.bridge.moved(board)
        each = len(rounds)
        print(
            f"{board}: sent {sent / 1e6:.2f} MB, received {received / 1e6:.2f} MB in all, "
            f"{sent / each / 1e6:.2f} and {received / each / 1e6:.2f} MB a round"
        )


if __name__ == "__main__":
    main()
