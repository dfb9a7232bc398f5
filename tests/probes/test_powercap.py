"""RAPL zones: found by name in any order, core and psys never added, denied apart from absent."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from probes import Context, Finding
from probes.meter import Meter
from probes.powercap import create
from tests.probes.machines import put

TOP = "/sys/class/powercap"
Make = Callable[..., Context]


def zone(
    index: str, name: str, joules: float = 100.0, span: float | None = 262143.32885, **more: str
) -> dict[str, str]:
    folder = f"{TOP}/{index}"
    files = {f"{folder}/name": f"{name}\n", f"{folder}/energy_uj": f"{round(joules * 1e6)}\n"}
    if span is not None:
        files[f"{folder}/max_energy_range_uj"] = f"{round(span * 1e6)}\n"
    return files | {f"{folder}/{key}": value for key, value in more.items()}


def found(context: Context) -> dict[str, Finding]:
    return {one.source: one for one in create().detect(context)}


def headline(context: Context) -> str | None:
    meter = Meter(context, [create()])
    meter.open()
    return meter.live().headline_channel_id


def test_a_kernel_without_powercap_is_absent_with_its_reason(machine: Make) -> None:
    (only,) = create().detect(machine())
    assert only.status == "absent"
    assert "CONFIG_POWERCAP" in only.reason


@pytest.mark.parametrize(
    "zones",
    [
        {
            **zone("intel-rapl:1", "package-0"),
            **zone("intel-rapl:0", "package-1"),
            **zone("intel-rapl:7", "psys"),
        },
        {
            **zone("intel-rapl:0", "package-0"),
            **zone("intel-rapl:1", "psys"),
            **zone("intel-rapl:9", "package-1"),
        },
    ],
)
def test_the_name_is_the_only_authority(machine: Make, zones: Mapping[str, str]) -> None:
    assert headline(machine(zones)) == "powercap/package-0+powercap/package-1"


def test_dram_is_added_and_core_and_uncore_are_not(machine: Make) -> None:
    context = machine(
        {
            **zone("intel-rapl:0", "package-0"),
            **zone("intel-rapl:0:0", "core"),
            **zone("intel-rapl:0:1", "uncore"),
            **zone("intel-rapl:0:2", "dram"),
        }
    )
    assert headline(context) == "powercap/package-0+powercap/package-0/dram"
    core = found(context)["powercap/package-0/core"].channel
    assert core is not None
    assert core.parent == "powercap/package-0"


def test_mmio_repeats_a_package_and_is_used_only_where_msr_does_not_read(machine: Make) -> None:
    files = {**zone("intel-rapl:0", "package-0"), **zone("intel-rapl-mmio:0", "package-0")}
    shown = found(machine(files))
    assert [name for name in shown if "package" in name] == ["powercap/package-0"]
    channel = shown["powercap/package-0"].channel
    assert channel is not None
    assert "mmio" not in channel.source
    refused = {"files": files, "unreadable": {f"{TOP}/intel-rapl:0/energy_uj": "EACCES"}}
    context = machine(record=refused)
    again = found(context)["powercap/package-0"]
    assert again.status == "ok"
    assert again.channel is not None
    assert "mmio" in again.channel.source
    assert headline(context) == "powercap/package-0"


def test_only_the_nested_folders_are_enough(machine: Make) -> None:
    files = {
        path.replace(f"{TOP}/", f"{TOP}/intel-rapl/").replace(
            "intel-rapl:0:0", "intel-rapl:0/intel-rapl:0:0"
        ): said
        for path, said in {**zone("intel-rapl:0", "package-0"), **zone("intel-rapl:0:0", "dram")}.items()
    }
    assert headline(machine(files)) == "powercap/package-0+powercap/package-0/dram"


def test_dies_are_packages_and_all_but_the_first_may_mirror_it(machine: Make) -> None:
    context = machine({**zone("intel-rapl:0", "package-0-die-0"), **zone("intel-rapl:1", "package-0-die-1")})
    channels = [one.channel for one in found(context).values()]
    assert [one and one.may_mirror for one in channels] == [None, "powercap/package-0-die-0"]


def test_denied_is_told_apart_from_absent_with_the_one_command(machine: Make) -> None:
    record = {
        "files": zone("intel-rapl:0", "package-0"),
        "unreadable": {f"{TOP}/intel-rapl:0/energy_uj": "EACCES"},
    }
    denied = found(machine(record=record))["powercap/package-0"]
    assert denied.status == "denied"
    assert denied.remedy.startswith("sudo edged install")


@pytest.mark.parametrize(
    ("said", "status"),
    [
        ("", "invalid"),
        ("soon\n", "invalid"),
        ("0x10\n", "invalid"),
        ("9" * 400, "invalid"),
        ("1e5\n", "invalid"),
    ],
)
def test_a_file_that_holds_no_counter_is_invalid_and_never_zero(
    machine: Make, said: str, status: str
) -> None:
    context = machine({**zone("intel-rapl:0", "package-0"), f"{TOP}/intel-rapl:0/energy_uj": said})
    assert found(context)["powercap/package-0"].status == status
    assert headline(context) is None


def test_a_failing_driver_is_invalid_and_a_vanished_file_absent(machine: Make) -> None:
    record = {
        "files": zone("intel-rapl:0", "package-0"),
        "unreadable": {f"{TOP}/intel-rapl:0/energy_uj": "EINVAL"},
    }
    assert found(machine(record=record))["powercap/package-0"].status == "invalid"
    context = machine(zone("intel-rapl:0", "package-0"))
    context.path(f"{TOP}/intel-rapl:0/energy_uj").unlink()
    assert found(context)["powercap/package-0"].status == "absent"


@pytest.mark.parametrize(
    ("limit", "watts"),
    [("95000000\n", 380.0), ("17000000\n", 150.0), ("0\n", 500.0), ("", 500.0), ("x", 500.0)],
)
def test_the_power_bound_takes_the_limit_as_a_hint(machine: Make, limit: str, watts: float) -> None:
    context = machine(zone("intel-rapl:0", "package-0", constraint_0_max_power_uw=limit))
    channel = found(context)["powercap/package-0"].channel
    assert channel is not None
    assert channel.max_watts == watts


def test_no_range_file_is_an_unknown_range(machine: Make) -> None:
    channel = found(machine(zone("intel-rapl:0", "package-0", span=None)))["powercap/package-0"].channel
    assert channel is not None
    assert channel.range_joules is None


def test_a_zones_own_text_makes_no_strange_id(machine: Make) -> None:
    context = machine(
        {**zone("intel-rapl:0", "package-0"), **zone("intel-rapl:0:0", "../a b\x07" + "x" * 99)}
    )
    names = [name for name in found(context) if name != "powercap/package-0"]
    assert len(names) == 1
    assert all(character not in names[0] for character in " \x07")
    assert names[0].count("/") == 2


def test_a_wrap_between_two_readings_is_corrected(machine: Make) -> None:
    context = machine(zone("intel-rapl:0", "package-0", joules=64930.873566, span=65532.610987))
    meter = Meter(context, [create()])
    meter.open()
    start = meter.mark()
    context.clock.advance(7.2)  # type: ignore[attr-defined]
    put(context, f"{TOP}/intel-rapl:0/energy_uj", "10000000\n")
    energy = meter.window(start, meter.mark())
    assert energy.joules == pytest.approx(611.737421)
    assert "wrap" in energy.flags


def test_the_heartbeat_is_a_quarter_of_the_time_to_wrap(machine: Make) -> None:
    context = machine(zone("intel-rapl:0", "package-0", span=1000.0))
    meter = Meter(context, [create()])
    meter.open()
    assert meter.live().period_seconds == pytest.approx(0.5)  # 1000 J / (4 x 500 W)
