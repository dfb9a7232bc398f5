"""What each word of a recorded machine's `expect` asks of the probes."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import pytest

from probes._counter import step
from probes._recorded import write
from probes.meter import Meter
from tests.probes.machines import Pages
from tests.probes.recorded_machine import Machine

Judge = Callable[[Machine, Any], None]


def packages_are(machine: Machine, names: list[str]) -> None:
    assert machine.headline.split("+") == [f"powercap/{name}" for name in sorted(names)]
    assert machine.meter.live().basis == "measured"


def not_added(machine: Machine, names: list[str]) -> None:
    assert machine.headline
    for name in names:
        part = name.split()[0]
        assert not re.search(rf"(^|[/+]){re.escape(part)}($|[/+])", machine.headline)


def total_is(machine: Machine, rails: str) -> None:
    if "+" not in rails:
        assert machine.headline.rpartition("/")[2] == rails
        return
    (found,) = [one for one in machine.meter.channels() if one.role == "headline"]
    assert found.channel is not None
    assert {name.rpartition("/")[2] for name in found.channel.contains} == set(rails.split("+"))
    assert found.channel.scope == "module"


def watts_are(machine: Machine, watts: float) -> None:
    assert machine.watts() == pytest.approx(watts, abs=0.001)


def watts_of(command: str) -> Judge:
    """The headline when tegrastats prints this one of the recorded lines."""

    def judge(machine: Machine, watts: float) -> None:
        lines = {name: said for name, said in machine.record["commands"].items() if command in name}
        assert len(lines) == 1
        other = Machine(
            {**machine.record, "commands": {"tegrastats": next(iter(lines.values()))}}, machine.folder
        )
        watts_are(other, watts)

    return judge


def scope_is(machine: Machine, told: str) -> None:
    live = machine.meter.live()
    if told.startswith("four rails"):  # the sensors are off as recorded: judged once they are on
        return
    expected = {"board": "dc_in", "module": "module", "system input": "battery", "soc+dram": "dc_in"}
    assert live.scope == next(scope for words, scope in expected.items() if told.startswith(words))


def disabled(machine: Machine, told: str) -> None:
    assert machine.headline == ""
    found = [one for one in machine.meter.channels() if one.source.startswith("ina231/")]
    assert len(found) == 5
    assert {one.status for one in found} == {"absent"}
    assert all("off" in one.reason and one.remedy for one in found)
    for place in ("3-0040", "3-0041", "3-0044", "3-0045"):
        (machine.folder / f"sys/bus/i2c/drivers/INA231/{place}/enable").write_text("1\n")
        (machine.folder / f"sys/bus/i2c/drivers/INA231/{place}/sensor_W").write_text("0.750000\n")
    machine.meter.look_again()
    machine.meter.sample()
    machine.meter.new_run()
    assert machine.watts() == pytest.approx(3.0)
    assert machine.headline == "ina231/rails"


def unusable(machine: Machine, usable: bool) -> None:
    assert not usable
    assert machine.meter.live().watts is None
    assert machine.headline == ""


def reason_is(machine: Machine, told: str) -> None:
    if told == "permission":
        denied = [one for one in machine.meter.channels() if one.status == "denied"]
        assert denied
        assert all(one.remedy.startswith("sudo ") for one in denied)
    else:
        assert told == "status is not Discharging"
        assert any("battery" in one.why and one.role == "unavailable" for one in machine.meter.channels())


def if_readable(machine: Machine, names: list[str]) -> None:
    energies = dict.fromkeys(machine.record["unreadable"], "1000000\n")
    record = {**machine.record, "unreadable": {}, "files": {**machine.record["files"], **energies}}
    packages_are(Machine(record, machine.folder), names)


def left_out(machine: Machine, names: list[str]) -> None:
    for name in names:
        (found,) = machine.found(name)
        assert found.channel is not None
        assert not found.channel.headline


def rejects(machine: Machine, names: list[str]) -> None:
    shown = machine.meter.channels()
    for name in names:
        chip = {"charging battery": "bq28z610_0"}.get(name, name.split()[0].rstrip("*").rstrip("_"))
        mine = [one for one in shown if chip in one.source]
        assert mine
        assert all(one.role == "unavailable" and one.channel is None and one.reason for one in mine)


def nothing_measured(machine: Machine, told: None) -> None:
    live = machine.meter.live()
    assert (live.headline_channel_id, live.watts, live.joules) == (None, None, None)
    start, end = machine.meter.mark(), machine.meter.mark()
    assert machine.meter.window(start, end).joules is None
    assert "nothing measures" in machine.meter.window(start, end).reason


def falls_back(machine: Machine, told: str) -> None:
    assert told == "external meter, else model estimate"
    estimate: dict[str, object] = {"idle_watts": 3.1, "full_watts": 5.3}
    write({"files": {"/proc/stat": "cpu  1 1 1 1 1 1 1 0\ncpu0 1 1 1 1 1 1 1 0\n"}}, machine.folder)
    plug: dict[str, object] = {"kind": "shelly", "url": "http://plug.test"}
    pages = Pages({"/rpc/Switch.GetStatus?id=0": '{"aenergy": {"total": 1.5}, "apower": 4.0}'})
    context = replace(machine.context, http_get=pages, options={"plug": plug, "estimate": estimate})
    for options, basis in (
        ({"plug": plug, "estimate": estimate}, "measured"),
        ({"estimate": estimate}, "estimated"),
    ):
        meter = Meter(replace(context, options=options))
        meter.open()
        assert meter.live().basis == basis


def joules_are(machine: Machine, joules: float) -> None:
    (counter,) = [
        one.channel for one in machine.meter.channels() if one.channel and one.channel.kind == "counter"
    ]
    assert counter.scope == "wall"
    readings = [
        sample
        for source in machine.meter._roster.sampler.sources
        for sample in source.reader.read()
        if sample.channel_id == counter.id
    ]
    assert readings[-1].value == pytest.approx(joules)


def step_is(machine: Machine, joules: float) -> None:
    (counter,) = [
        one.channel for one in machine.meter.channels() if one.channel and one.channel.kind == "counter"
    ]
    assert counter.resolution_joules == pytest.approx(joules)
    # Such a counter needs long rounds: watts come first.
    assert machine.headline.endswith("/power")


def wraps_after(machine: Machine, seconds: float) -> None:
    """The last reading lies so near the range that 85 W wrap it in seconds: known, and not negative."""
    (found,) = machine.found("package-0")[:1]
    channel = found.channel
    assert channel is not None
    assert channel.range_joules is not None
    last = int(machine.record["files"]["/sys/class/powercap/intel-rapl:0/energy_uj"]) * 1e-6
    assert (channel.range_joules - last) / 85 == pytest.approx(seconds, abs=0.01)
    after = step(channel, last, 10.0, 7.2)
    assert after.kind == "wrap"
    assert after.joules == pytest.approx(channel.range_joules - last + 10.0)


def wrap_time(machine: Machine, seconds: float) -> None:
    ranges = [one.channel.range_joules for one in machine.meter.channels() if one.channel]
    assert all(one is not None and one / 130 == pytest.approx(seconds, abs=1) for one in ranges)
    periods = [source.period_seconds for source in machine.meter._roster.sampler.sources]
    assert max(periods) < seconds / 4


def by_name(machine: Machine, told: bool) -> None:
    """Where psys took index 1: with what the report left out put in, the second package is found."""
    record = dict(machine.record)
    top = "/sys/class/powercap"
    record["files"] = {
        **record["files"],
        f"{top}/intel-rapl:0/name": "package-0\n",
        f"{top}/intel-rapl:0/energy_uj": "5000000\n",
        f"{top}/intel-rapl:0:0/energy_uj": "4000000\n",
        f"{top}/intel-rapl:1/name": "psys\n",
        f"{top}/intel-rapl:2/name": "package-1\n",
        f"{top}/intel-rapl:2/energy_uj": "6000000\n",
    }
    whole = Machine(record, machine.folder)
    expected = "powercap/package-0+powercap/package-1+powercap/package-0/dram"
    assert whole.headline == expected
    (psys,) = whole.found("psys")
    assert psys.channel is not None
    assert psys.channel.resolution_joules == machine.record["expect"]["psys_resolution_j"]
    assert psys.role == "component"


def dram_flagged(machine: Machine, told: str) -> None:
    (dram,) = machine.found("dram")
    assert dram.channel is not None
    assert dram.channel.flags == ("unit-suspect",)


def inside_package(machine: Machine, told: str) -> None:
    assert told == "core+uncore <= package"
    parts = [one.channel for one in machine.meter.channels() if one.channel and one.channel.scope == "rail"]
    assert {one.parent for one in parts} == {"powercap/package-0"}


def parallel_unknown(machine: Machine, told: bool) -> None:
    assert machine.headline == ""
    rails = [one for one in machine.meter.channels() if one.role == "component"]
    assert len(rails) > 20
    assert {one.channel.scope for one in rails if one.channel} == {"rail"}


def kind_is(machine: Machine, kind: str) -> None:
    (found,) = [one for one in machine.meter.channels() if one.role == "headline"]
    assert found.channel is not None
    assert (found.channel.kind, found.channel.scope) == (kind, "gpu")


def resets(machine: Machine, told: str) -> None:
    assert told == "driver reload"
    (found,) = [one for one in machine.meter.channels() if one.role == "headline"]
    assert found.channel is not None
    after = step(found.channel, 5000.0, 3.0, 1.0)
    assert (after.joules, after.kind) == (None, "reset")


def usable_only(machine: Machine, told: str) -> None:
    assert told == "status == Discharging and no Mains/USB supply online"
    for path, content in (("AC/online", "1\n"), ("BAT0/status", "Charging\n")):
        target = machine.folder / "sys/class/power_supply" / path
        kept = target.read_text()
        target.write_text(content)
        machine.clock.advance(1.0)
        machine.meter.sample()
        assert machine.watts() is None
        target.write_text(kept)


def basis_is(machine: Machine, told: bool) -> None:
    assert (machine.meter.live().basis == "calibrated") == told


def rail_sum_is(machine: Machine, watts: float) -> None:
    (rails,) = machine.found("rails")
    assert rails.watts == pytest.approx(watts, abs=0.001)


def probe_is(machine: Machine, name: str) -> None:
    assert any(one.source.startswith(f"{name}/") for one in machine.meter.channels())


def known_elsewhere(machine: Machine, told: Any) -> None:
    """Judged by another word of the same record."""
