"""A million random counter traces: wraps, resets, gaps, sleeps, steps back. Fails on the first misread.

Run as `python -m benchmarks.counters [--traces N] [--seed N]`; prints how often each was met.
"""

from __future__ import annotations

import argparse
import time
from dataclasses import fields

from tests.probes.traces import Tally, run

PART = 50_000


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--traces", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    asked = parser.parse_args()
    begin = time.perf_counter()
    whole = Tally()
    for part in range(0, asked.traces, PART):
        found = run(min(PART, asked.traces - part), asked.seed + part)
        for field in fields(Tally):
            setattr(whole, field.name, getattr(whole, field.name) + getattr(found, field.name))
        print(f"\r{whole.traces:,} traces", end="", flush=True)
    print(
        f" in {time.perf_counter() - begin:.0f} s: never negative, never above plausible, unknown not wrong"
    )
    print(", ".join(f"{field.name} {getattr(whole, field.name):,}" for field in fields(Tally)))


if __name__ == "__main__":
    main()
