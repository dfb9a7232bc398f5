"""Channels as `edged doctor` tells them, and pyRAPL held against powercap on a made-up processor."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from edged.checks import Finding
from edged.checks.sensors import cross_check, examine
from probes import Channel, Context
from probes._recorded import lay_out
from probes.meter import Found

ZONE = "sys/class/powercap/intel-rapl:0"
RANGE = 262_143_328_850


def channel(name: str, **changes: Any) -> Channel:
    given = {"kind": "power", "scope": "dc_in", "basis": "measured", "relative_uncertainty": 0.02}
    return Channel(id=name, source="the test", **{**given, **changes})


def found(name: str, role: Any, status: Any = "ok", remedy: str = "", **changes: Any) -> Found:
    made = None if status == "absent" else channel(name, **changes)
    return Found(name, made, status, f"{name} is {status}", remedy, role, "why it is so", None)


def told(*rows: Found, asked: tuple[str, ...] = ()) -> dict[str, Finding]:
    return {one.what: one for one in examine(rows, "the first that reads", asked)}


def test_the_headline_is_told_with_its_reason_and_the_rest_beside_it() -> None:
    said = told(found("hwmon/1-0040/power1", "headline"), found("powercap/package-0", "component"))
    assert said["joules"].text == "hwmon/1-0040/power1 (dc_in, measured, +-2 %): the first that reads"
    assert said["joules"].verdict == "ok"
    assert "why it is so" in said["sensor powercap/package-0"].text


def test_a_denied_sensor_comes_with_the_one_command() -> None:
    said = told(
        found("estimate/model", "headline", basis="estimated", relative_uncertainty=0.4),
        found("powercap/package-0", "unavailable", "denied", "sudo edged install"),
        found("nvml", "unavailable", "absent"),
    )
    denied = said["sensor powercap/package-0"]
    assert (denied.verdict, denied.way_out) == ("warn", "sudo edged install")
    assert "sensor nvml" not in said
    assert "plug" in said["joules"].way_out


def test_nothing_that_measures_is_a_warning_and_never_a_number() -> None:
    said = told(found("powercap", "unavailable", "absent"))
    assert (said["joules"].verdict, said["joules"].text) == ("warn", "none: the first that reads")
    assert said["joules"].way_out
    assert said["sensor powercap"].verdict == "warn"


def test_a_plug_that_was_asked_for_and_does_not_answer_fails() -> None:
    row = found("shelly:192.0.2.7", "unavailable", "stale")
    assert told(row)["sensor shelly:192.0.2.7"].verdict == "warn"
    assert told(row, asked=("shelly",))["sensor shelly:192.0.2.7"].verdict == "fail"


class Processor:
    """A package whose counter moves while the check sleeps; pyRAPL reads it with an error of its own."""

    def __init__(
        self, folder: Path, microjoules: int, error: int = 0, fault: type[Exception] | None = None
    ) -> None:
        self.microjoules, self.error, self.fault = microjoules, error, fault
        files = {f"/{ZONE}/name": "package-0\n", f"/{ZONE}/max_energy_range_uj": f"{RANGE}\n"}
        self.context: Context = replace(lay_out({"files": files}, folder), load_module=self._load)
        self._path = folder / ZONE / "energy_uj"
        self._write()

    def sleep(self, seconds: float) -> None:
        self.microjoules = (self.microjoules + 15_000_000) % RANGE
        self._write()
        self.error *= 2

    def _write(self) -> None:
        self._path.write_text(f"{self.microjoules}\n")

    def _load(self, name: str) -> Any:
        if name == "pyRAPL.device":
            return SimpleNamespace(Device=SimpleNamespace(PKG=0))
        return SimpleNamespace(Sensor=self._sensor)

    def _sensor(self, devices: object) -> Any:
        if self.fault is not None:
            raise self.fault
        return SimpleNamespace(energy=lambda: [self.microjoules + self.error, -1])


def checked(processor: Processor) -> list[Finding]:
    return list(cross_check(processor.context, processor.sleep))


@pytest.mark.parametrize("start", [1_000_000, RANGE - 5_000_000])
def test_two_readers_of_one_counter_agree_also_over_a_wrap(tmp_path: Path, start: int) -> None:
    (only,) = checked(Processor(tmp_path, start))
    assert (only.verdict, "15.000 J" in only.text) == ("ok", True), only.text


def test_a_reader_that_is_off_by_a_joule_is_found_out(tmp_path: Path) -> None:
    (only,) = checked(Processor(tmp_path, 1_000_000, error=1_000_000))
    assert (only.verdict, "apart" in only.text) == ("warn", True)


def test_without_pyrapl_or_without_rapl_nothing_is_said(tmp_path: Path) -> None:
    assert list(cross_check(lay_out({"files": {}}, tmp_path / "bare", {}))) == []
    processor = Processor(tmp_path, 1, fault=ImportError)
    assert all(one.verdict == "warn" for one in checked(processor))
