"""What the meter costs: a window's two edges, and its sampler, against reading the same files by hand.

Run as `python -m benchmarks.meter [--json]`. Three trees of files stand for three machines; real sysfs adds
the kernel's own time, which both sides pay. Figures are printed, never asserted.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Mapping
from pathlib import Path
from statistics import median

from probes._files import read_bytes
from probes._outside import real_context
from probes.meter import Meter

WINDOW_SECONDS = 2e-3  # begin and end together
SAMPLER_SHARE = 0.01  # of one core
WINDOWS = 300
SAMPLED_SECONDS = 10.0


def package(index: int, name: str, joules: float) -> dict[str, str]:
    folder = f"sys/class/powercap/intel-rapl:{index}"
    return {
        f"{folder}/name": f"{name}\n",
        f"{folder}/energy_uj": f"{round(joules * 1e6)}\n",
        f"{folder}/max_energy_range_uj": "262143328850\n",
    }


def rails(address: str, number: int, *labels: str) -> dict[str, str]:
    folder = f"sys/bus/i2c/devices/1-{address}/hwmon/hwmon{number}"
    files = {f"{folder}/name": "ina3221\n"}
    for k, label in enumerate(labels, start=1):
        files |= {f"{folder}/in{k}_label": f"{label}\n", f"{folder}/in{k}_input": "5040\n"}
        files[f"{folder}/curr{k}_input"] = "960\n"
    return files


def chips(count: int) -> dict[str, str]:
    files: dict[str, str] = {}
    for k in range(count):
        folder = f"sys/bus/i2c/devices/5-{40 + k:04}/hwmon/hwmon{k}"
        files |= {f"{folder}/name": "ina226\n", f"{folder}/power1_input": "1000000\n"}
        files |= {f"{folder}/in1_input": "5000\n", f"{folder}/curr1_input": "200\n"}
    return files


MACHINES: Mapping[str, Mapping[str, str]] = {
    "x86, one package": package(0, "package-0", 900.0),
    "Jetson, three rails": rails("0040", 1, "VDD_IN", "VDD_CPU_GPU_CV", "VDD_SOC"),
    "board with eight INA226": chips(8),
}


def read_by_hand(root: Path, files: Mapping[str, str]) -> float:
    """Seconds of processor time to open, read, close and convert once what changes in these files."""
    paths = [root / name for name in files if name.endswith(("energy_uj", "_input"))]
    laps = []
    for _ in range(200):
        begin = time.thread_time()
        for path in paths:
            int(read_bytes(path))
        laps.append(time.thread_time() - begin)
    return median(laps)


def pace_by_hand(root: Path, files: Mapping[str, str], period: float) -> float:
    """Share of a core of a loop that sleeps and reads these files: what waking up costs is in it as well."""
    paths = [root / name for name in files if name.endswith(("energy_uj", "_input"))]
    begin, cost = time.perf_counter(), time.thread_time()
    while time.perf_counter() - begin < SAMPLED_SECONDS:
        time.sleep(period)
        for path in paths:
            int(read_bytes(path))
    return (time.thread_time() - cost) / (time.perf_counter() - begin)


def measure(name: str, files: Mapping[str, str]) -> dict[str, float | str]:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        for path, text in files.items():
            (root / path).parent.mkdir(parents=True, exist_ok=True)
            (root / path).write_text(text)
        by_hand = read_by_hand(root, files)
        meter = Meter(real_context(root))
        meter.start()
        laps, costs = [], []
        for _ in range(WINDOWS):
            begin, cost = time.perf_counter(), time.process_time()
            meter.mark()
            meter.mark()
            laps.append(time.perf_counter() - begin)
            costs.append(time.process_time() - cost)
        begin, cost = time.perf_counter(), meter.live().cpu_seconds
        time.sleep(SAMPLED_SECONDS)
        share = (meter.live().cpu_seconds - cost) / (time.perf_counter() - begin)
        period = meter.live().period_seconds
        meter.close()
        paced = pace_by_hand(root, files, period)
    return {
        "machine": name,
        "window_seconds": median(laps),
        "window_ratio": median(laps) / WINDOW_SECONDS,
        "window_over_hand": median(costs) / (2 * by_hand),
        "sampler_share": share,
        "sampler_ratio": share / SAMPLER_SHARE,
        "sampler_over_hand": share / paced,
        "period_seconds": period,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--json", action="store_true", help="as JSON")
    rows = [measure(name, files) for name, files in MACHINES.items()]
    if parser.parse_args().json:
        print(json.dumps(rows))
        return
    print(
        f"window: begin and end, median of {WINDOWS}, against {1e3 * WINDOW_SECONDS:g} ms (below 1 meets it)"
    )
    print(f"sampler: share of a core over {SAMPLED_SECONDS:g} s, against {SAMPLER_SHARE:.0%}")
    print("x: processor time over that of reading the same files by hand, as often")
    for row in rows:
        one = {key: value for key, value in row.items() if not isinstance(value, str)}
        print(
            f"{row['machine']:<24} window {1e3 * one['window_seconds']:.3f} ms ({one['window_ratio']:.2f}), "
            f"{one['window_over_hand']:.1f} x; sampler {100 * one['sampler_share']:.3f} % "
            f"({one['sampler_ratio']:.2f}), {one['sampler_over_hand']:.1f} x at {one['period_seconds']:g} s"
        )


if __name__ == "__main__":
    main()
