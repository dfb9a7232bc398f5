"""Prepared pools: time to load one of any size, and batches of MNIST's size against plain tensor slicing.

Run as `python -m benchmarks.pools [--json]`. Best of several repeats; printed as ratios, never asserted.
"""

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from edged import schedule, tasks
from edged.formats import prepared
from edged.tasks import Prepared

TARGET_LOAD_SECONDS = 0.05
TARGET_SPEED = 0.8
SIZES_BYTES = (1_000_000, 30_000_000, 300_000_000)
SAMPLES = 20_000
BATCHES = (16, 32, 64)
REPEATS = 9


def best(*calls: Callable[[], object]) -> list[float]:
    """Processor seconds of each call, taken in turns so that a busy machine disturbs all alike."""
    seconds: list[list[float]] = [[] for _ in calls]
    for _ in range(REPEATS):
        for call, taken in zip(calls, seconds, strict=True):
            start = time.process_time()
            call()
            taken.append(time.process_time() - start)
    return [min(taken) for taken in seconds]


def write(folder: Path, images: int) -> Path:
    """A pool of made-up pictures of MNIST's size."""
    pixels = (np.arange(images * 784, dtype=np.uint32) >> 3).astype(np.uint8).reshape(images, 28, 28)
    labels = np.arange(images) % 10
    arrays: dict[str, NDArray[Any]] = {
        "inputs": pixels,
        "targets": labels,
        "test_inputs": pixels[:10],
        "test_targets": labels[:10],
    }
    prepared.write(folder, "mnist", Prepared(arrays, "benchmark", "none", "made up"))
    return folder


def loading(folder: Path) -> dict[str, dict[str, float]]:
    """By size of the pool: seconds to load it mapped, and to read it into memory instead."""
    figures = {}
    for size in SIZES_BYTES:
        pool = write(folder / str(size), size // 784)

        def mapped(pool: Path = pool) -> object:
            return prepared.load(pool, "mnist")

        def copied(pool: Path = pool) -> object:
            return np.load(pool / "inputs.npy", allow_pickle=False)

        seconds, reading = best(mapped, copied)
        figures[f"{size / 1e6:.0f} MB"] = {
            "seconds": seconds,
            "of_target": seconds / TARGET_LOAD_SECONDS,
            "of_reading_it": seconds / reading,
        }
    return figures


def batching(folder: Path) -> dict[str, dict[str, float]]:
    """By batch size: the speed of an epoch of the task's batches over that of slicing ready float tensors."""
    import torch

    torch.set_num_threads(1)
    task = tasks.find("mnist")
    data = task.load(write(folder / "batches", SAMPLES), task.Options())
    inputs, targets = task.batch(data, np.arange(data.samples))
    order = schedule.permutation(1, 0, data.samples)
    places = torch.from_numpy(order)
    figures = {}
    for batch in BATCHES:
        starts = range(0, data.samples, batch)

        def sliced(starts: range = starts, batch: int = batch) -> object:
            return [len(inputs[places[a : a + batch]]) + len(targets[places[a : a + batch]]) for a in starts]

        def dealt(starts: range = starts, batch: int = batch) -> object:
            return [len(task.batch(data, order[a : a + batch])) for a in starts]

        seconds, plain = best(dealt, sliced)
        figures[f"batch {batch}"] = {
            "samples_per_second": data.samples / seconds,
            "of_plain_slicing": plain / seconds,
        }
    return figures


def main() -> None:
    """Prints the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="as a JSON object")
    as_json = parser.parse_args().json
    with tempfile.TemporaryDirectory() as folder:
        figures = {"loading": loading(Path(folder)), "batching": batching(Path(folder))}
    if as_json:
        print(json.dumps(figures, indent=1))
        return
    for size, load in figures["loading"].items():
        print(
            f"load {size:>7}: {1000 * load['seconds']:.2f} ms, {load['of_target']:.3f} of the target,"
            f" {load['of_reading_it']:.4f} of reading it"
        )
    for batch, speed in figures["batching"].items():
        print(
            f"{batch:>9}: {speed['samples_per_second']:.0f} samples/s, {speed['of_plain_slicing']:.2f}"
            f" of plain slicing (target >= {TARGET_SPEED})"
        )


if __name__ == "__main__":
    main()
