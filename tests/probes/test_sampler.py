"""The sampler with real threads: one hung device stops no other, dear readers stay out of the way.

Nothing here depends on how fast the machine is, only on which of two things comes back.
"""

from __future__ import annotations

import os
import threading
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest

from probes import Context, Sample
from probes._outside import real_context
from probes._sampler import Sampler, Source
from probes.hwmon import create as hwmon
from probes.meter import Meter, Options
from tests.probes.scripted import Scripted, channel

PATIENCE_SECONDS = 20.0


def until(true: Callable[[], bool]) -> None:
    """Wait for something that must come; a machine that is slow only takes longer."""
    end = time.monotonic() + PATIENCE_SECONDS
    while not true():
        assert time.monotonic() < end, "it did not come"
        time.sleep(0.01)


def chip(root: Path, place: str, name: str = "ina226", microwatts: str = "5000000\n") -> Path:
    """An hwmon chip with one power file; gives that file."""
    folder = root / f"sys/bus/i2c/devices/{place}/hwmon/hwmon{int(place[-1])}"
    folder.mkdir(parents=True)
    (folder / "name").write_text(f"{name}\n")
    (folder / "in1_input").write_text("12000\n")
    (folder / "power1_input").write_text(microwatts)
    return folder / "power1_input"


@pytest.fixture
def fifo() -> Iterator[Callable[[Path], None]]:
    """Turns a file into a FIFO that never answers; lets its readers go at the end."""
    made: list[Path] = []

    def hang(path: Path) -> None:
        path.unlink()
        os.mkfifo(path)
        made.append(path)

    yield hang
    for path in made:
        handle = os.open(path, os.O_RDWR | os.O_NONBLOCK)
        os.write(handle, b"1\n" * 64)
        time.sleep(0.05)
        os.close(handle)


def meter_of(context: Context) -> Meter:
    return Meter(context, [hwmon()], Options(hang_seconds=0.2, power_seconds=0.02))


def status(meter: Meter, channel_id: str) -> tuple[str, str]:
    found = {one.channel_id: one for one in meter.live().channels}
    return found[channel_id].status, found[channel_id].reason


def test_a_device_that_hangs_is_stale_and_the_others_go_on(
    tmp_path: Path, fifo: Callable[[Path], None]
) -> None:
    hanging, _ = chip(tmp_path, "1-0041"), chip(tmp_path, "1-0042")
    meter = meter_of(real_context(tmp_path))
    meter.start()
    fifo(hanging)
    until(lambda: status(meter, "hwmon/1-0041/power1")[0] == "stale")
    assert "not come back" in status(meter, "hwmon/1-0041/power1")[1]
    start = meter.mark()
    time.sleep(0.5)
    end = meter.mark()
    other = meter.window(start, end, ["hwmon/1-0042/power1"])
    assert other.coverage > 0
    assert other.partial_joules == pytest.approx(5.0 * other.coverage * other.seconds)
    hung = meter.window(start, end, ["hwmon/1-0041/power1"])
    assert hung.joules is None
    meter.close()


def test_a_device_that_comes_back_is_read_again(tmp_path: Path, fifo: Callable[[Path], None]) -> None:
    hanging = chip(tmp_path, "1-0041")
    meter = meter_of(real_context(tmp_path))
    meter.start()
    fifo(hanging)
    until(lambda: status(meter, "hwmon/1-0041/power1")[0] == "stale")
    writer = os.open(hanging, os.O_RDWR)
    hanging.unlink()
    hanging.write_text("7000000\n")
    os.write(writer, b"7000000\n")
    os.close(writer)
    until(lambda: status(meter, "hwmon/1-0041/power1")[0] == "ok")
    meter.close()


def test_a_device_that_hangs_from_the_start_is_named_and_hides_no_other(
    tmp_path: Path, fifo: Callable[[Path], None]
) -> None:
    hanging = chip(tmp_path, "1-0041")
    chip(tmp_path, "1-0042")
    fifo(hanging)
    meter = meter_of(real_context(tmp_path))
    meter.start()
    found = {one.source: one for one in meter.channels()}
    assert found["hwmon/1-0041/power1"].status == "stale"
    assert "does not come back" in found["hwmon/1-0041/power1"].reason
    assert found["hwmon/1-0042/power1"].status == "ok"
    meter.close()


def test_a_mark_does_not_wait_for_a_hung_device_for_ever(
    tmp_path: Path, fifo: Callable[[Path], None]
) -> None:
    chip(tmp_path, "1-0042")
    hanging = chip(tmp_path, "1-0041")
    meter = meter_of(real_context(tmp_path))
    meter.start()
    fifo(hanging)
    done = threading.Event()
    threading.Thread(target=lambda: (meter.mark(), done.set()), daemon=True).start()  # type: ignore[func-returns-value]
    assert done.wait(PATIENCE_SECONDS)
    meter.close()


class Slow:
    """A dear reader that answers when it is let."""

    cost = "dear"

    def __init__(self) -> None:
        self.gate = threading.Event()
        self.reads = 0
        self.channel_ids: tuple[str, ...] = ("slow",)

    def read(self) -> list[Sample]:
        self.gate.wait(PATIENCE_SECONDS)
        self.reads += 1
        return [Sample("slow", time.monotonic(), 0.0, 1.0)]

    def close(self) -> None: ...


def test_a_dear_reader_has_its_own_thread(tmp_path: Path) -> None:
    taken: list[str] = []
    clock = real_context(tmp_path).clock
    sampler = Sampler(clock, lambda samples, period: taken.extend(one.channel_id for one in samples), 0.2)
    slow = Slow()
    probe = Scripted("x", (channel("fast"), lambda now: 1.0))
    (fast,) = probe.open(replace(real_context(tmp_path)), [channel("fast")])
    sampler.add(Source(slow, 0.01))  # type: ignore[arg-type]
    sampler.add(Source(fast, 0.01))
    sampler.start()
    until(lambda: taken.count("fast") > 5)
    assert "slow" not in taken
    slow.gate.set()
    until(lambda: "slow" in taken)
    sampler.stop()


def test_the_samplers_own_cost_is_published_and_a_costly_one_reads_half_as_often() -> None:
    def burns(now: float) -> float:
        end = time.thread_time() + 0.002
        while time.thread_time() < end:
            pass
        return 5.0

    meter = Meter(
        real_context(Path("/nowhere")),
        [Scripted("x", (channel("ina/VDD_IN"), burns))],
        Options(power_seconds=0.02),
    )
    meter.start()
    until(lambda: meter.live().cpu_seconds > 0.02)
    start = meter.mark()
    until(lambda: meter.live().cpu_seconds > start.cpu_seconds + 0.02)
    assert meter.window(start, meter.mark()).meter_cpu_seconds > 0
    assert meter.live().period_seconds == pytest.approx(0.02)
    meter._roster.slow_down(0.10)
    assert meter.live().period_seconds == pytest.approx(0.04)
    for _ in range(9):
        meter._roster.slow_down(0.10)
    assert meter.live().period_seconds == pytest.approx(1.0)
    meter._roster.slow_down(0.001)
    assert meter.live().period_seconds == pytest.approx(1.0)
    meter.close()


def test_the_sampler_alone_keeps_a_window_covered() -> None:
    """Nobody calls mark in between: the thread reads at its own pace, also after many marks in a row."""
    meter = Meter(
        real_context(Path("/nowhere")),
        [Scripted("x", (channel("ina/VDD_IN"), lambda now: 5.0))],
        Options(power_seconds=0.05),
    )
    meter.start()
    for _ in range(100):
        meter.mark()
    start = meter.mark()
    time.sleep(1.0)
    end = meter.mark()
    found = meter.window(start, end)
    assert found.partial_joules == pytest.approx(5.0 * found.coverage * found.seconds)
    assert found.coverage > 0
    meter.close()
