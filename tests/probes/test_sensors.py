"""Jetson rails, batteries, the Pi 5's PMIC and NVIDIA GPUs: what each shows, and what it refuses to."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from probes import CommandResult, Context, load
from probes._virtual import VirtualClock
from probes.meter import Meter
from tests.probes.machines import commands, nvml, put, recorded

Make = Callable[..., Context]
SUPPLY = "/sys/class/power_supply"


def rails(chip: str, address: str, number: int, **milliwatts: int) -> dict[str, str]:
    """An ina3221 with these rails at 5 V."""
    folder = f"/sys/bus/i2c/devices/1-{address}/hwmon/hwmon{number}"
    files = {f"{folder}/name": f"{chip}\n"}
    for k, (label, value) in enumerate(milliwatts.items(), start=1):
        files |= {f"{folder}/in{k}_label": f"{label}\n", f"{folder}/in{k}_input": "5000\n"}
        files[f"{folder}/curr{k}_input"] = f"{value // 5}\n"
    return files


def opened(context: Context, *names: str) -> Meter:
    meter = Meter(context, [load(name) for name in names])
    meter.open()
    return meter


@pytest.mark.parametrize(
    ("files", "total", "scope"),
    [
        (rails("ina3221", "0040", 1, VDD_IN=4850, VDD_CPU_GPU_CV=685, VDD_SOC=1495), 4.85, "module"),
        (
            {
                **rails("ina3221", "0040", 1, VDD_GPU_SOC=4000, VDD_CPU_CV=1200, VIN_SYS_5V0=4900),
                **rails("ina3221", "0041", 2, NC=0, VDDQ_VDD2_1V8AO=710),
            },
            10.1,
            "module",
        ),
        (
            {
                **rails("ina3221", "0040", 1, GPU=0, CPU=215, SOC=865),
                **rails("ina3221", "0041", 2, CV=0, VDDRQ=145, SYS5V=1890),
            },
            3.115,
            "module",
        ),
        (rails("ina3221", "0041", 2, VDD_CPU=500, VDD_GPU=300), None, None),  # Nano 2GB: no total is known
    ],
)
def test_the_total_is_the_input_or_the_documented_parallel_rails(
    machine: Make, files: Mapping[str, str], total: float | None, scope: str | None
) -> None:
    live = opened(machine(files), "ina3221", "hwmon").live()
    assert live.scope == scope
    assert live.watts == (None if total is None else pytest.approx(total, abs=0.001))


def test_a_thor_has_one_input_in_microwatts(machine: Make) -> None:
    folder = "/sys/bus/i2c/devices/2-0044/hwmon/hwmon5"
    files = {
        f"{folder}/name": "ina238\n",
        f"{folder}/power1_label": "VIN\n",
        f"{folder}/power1_input": "34500000\n",
    }
    live = opened(machine(files), "ina3221", "hwmon").live()
    assert (live.scope, live.headline_channel_id) == ("dc_in", "ina3221/2-0044/VIN")
    assert live.watts == pytest.approx(34.5)


def test_a_broken_rail_costs_itself_and_the_sum_that_holds_it(machine: Make) -> None:
    files = rails("ina3221", "0040", 1, VDD_GPU_SOC=4000, VDD_CPU_CV=1200, VIN_SYS_5V0=4900)
    files["/sys/bus/i2c/devices/1-0040/hwmon/hwmon1/curr2_input"] = "\n"
    meter = opened(machine(files), "ina3221")
    assert meter.live().watts is None
    shown = {one.source: one.status for one in meter.channels()}
    assert shown["ina3221/1-0040/VDD_GPU_SOC"] == "ok"
    assert shown["ina3221/1-0040/VDD_CPU_CV"] == shown["ina3221/module"] == "invalid"


def test_other_boards_ina3221_is_left_to_hwmon(machine: Make) -> None:
    meter = opened(machine(rails("ina3221", "0040", 1, VCC_A=500, VCC_B=300)), "ina3221", "hwmon")
    assert [one.source for one in meter.channels()] == ["hwmon/1-0040/VCC_A", "hwmon/1-0040/VCC_B"]


def supply(name: str, **files: str | int) -> dict[str, str]:
    return {f"{SUPPLY}/{name}/{key}": f"{value}\n" for key, value in files.items()}


BATTERY = supply("BAT0", type="Battery", status="Discharging", power_now=5_002_000)


@pytest.mark.parametrize(
    ("files", "watts"),
    [
        (BATTERY, 5.002),
        (supply("BAT0", type="Battery", status="Discharging", power_now=-5_002_000), 5.002),
        (supply("b", type="Battery", status="Discharging", voltage_now=8_000_000, current_now=-500_000), 4.0),
        ({**BATTERY, **supply("BAT1", type="Battery", status="Discharging", power_now=1_000_000)}, 6.002),
        ({**BATTERY, **supply("BAT1", type="Battery", status="Not charging", power_now=0)}, 5.002),
        (
            {**BATTERY, **supply("mouse", type="Battery", scope="Device", status="Discharging", power_now=9)},
            5.002,
        ),
        ({**BATTERY, **supply("AC", type="Mains", online=1)}, None),
        ({**BATTERY, **supply("usb", type="USB", online=1)}, None),
        ({**BATTERY, **supply("BAT1", type="Battery", status="Charging", power_now=9)}, None),
        (supply("BAT0", type="Battery", status="Full", power_now=0), None),
        (supply("BAT0", type="Battery", status="Discharging", power_now=0), None),
        (supply("BAT0", type="Battery", status="Discharging"), None),
        (supply("BAT0", type="Battery", status="Discharging", power_now="much"), None),
    ],
)
def test_a_battery_tells_the_load_only_while_it_feeds_it(
    machine: Make, files: Mapping[str, str], watts: float | None
) -> None:
    meter = opened(machine(files), "battery")
    assert meter.live().watts == (None if watts is None else pytest.approx(watts))
    assert all(one.reason or one.status == "ok" for one in meter.channels())


def test_a_plug_pulled_in_mid_round_is_told(machine: Make, clock: VirtualClock) -> None:
    context = machine({**BATTERY, **supply("AC", type="Mains", online=0)})
    meter = opened(context, "battery")
    start = meter.mark()
    for second in range(20):
        clock.advance(1.0)
        if second == 10:
            put(context, f"{SUPPLY}/AC/online", "1\n")
        meter.sample()
    found = meter.window(start, meter.mark())
    assert found.joules is None
    assert found.partial_joules == pytest.approx(10 * 5.002)
    assert "supply-change" in meter.live().channels[0].reason


READ_ADC = "vcgencmd pmic_read_adc"
PI5 = {"/proc/device-tree/model": "Raspberry Pi 5 Model B Rev 1.0\0"}


def adc() -> str:
    said: str = recorded("rpi5_pmic_read_adc")["commands"][READ_ADC]
    return said


@pytest.mark.parametrize(
    ("said", "status", "reason"),
    [
        (None, "absent", "is not installed"),
        (CommandResult(255, "", "Can't open device file: /dev/vcio\n"), "denied", "/dev/vcio"),
        (CommandResult(0, 'error=1 error_msg="Command not registered"\n', ""), "invalid", "not registered"),
        (CommandResult(0, "", ""), "invalid", "0 rails"),
        (
            CommandResult(0, "VDD_CORE_A current(7)=1.0A\nVDD_CORE_V volt(15)=0.9V\n", ""),
            "invalid",
            "1 rails",
        ),
    ],
)
def test_a_pi_5_that_does_not_tell_says_why(
    machine: Make, said: CommandResult | None, status: str, reason: str
) -> None:
    run = commands({} if said is None else {READ_ADC: said})
    (only,) = load("rpi_pmic").detect(machine(PI5, run=run))
    assert (only.status, reason in only.reason) == (status, True)
    assert load("rpi_pmic").detect(machine({"/proc/device-tree/model": "Raspberry Pi 4"}, run=run)) == []


def test_rails_without_both_figures_and_wrong_channel_numbers_do_not_matter(machine: Make) -> None:
    lines = adc().splitlines()
    run = commands({READ_ADC: "\n".join(reversed(lines)) + "\nNEW_RAIL_A current(99)=5.0A\n"})
    live = opened(machine(PI5, run=run), "rpi_pmic").live()
    assert live.watts == pytest.approx(12.9549, abs=0.001)
    assert (live.scope, live.basis) == ("dc_in", "calibrated")


def test_a_package_counter_comes_before_the_fit(machine: Make) -> None:
    folder = "/sys/class/powercap/intel-rapl:0"
    files = {f"{folder}/name": "package-0\n", f"{folder}/energy_uj": "5\n", **PI5}
    context = machine(files, run=commands({READ_ADC: adc()}))
    assert opened(context, "rpi_pmic", "powercap").live().scope == "package"


def test_a_gpu_is_found_by_a_reading_and_not_by_its_library(machine: Make) -> None:
    context = machine(load_module=nvml(millijoules=None, milliwatts=None))
    meter = opened(context, "nvml")
    assert meter.live().watts is None
    (only,) = meter.channels()
    assert (only.status, "Not Supported" in only.reason) == ("absent", True)


@pytest.mark.parametrize(
    ("millijoules", "milliwatts", "ending"),
    [(5_000_000, 70_000, "/energy"), (None, 70_000, "/power"), (5_000_000, None, "/energy")],
)
def test_the_counter_comes_before_the_watts(
    machine: Make, millijoules: int | None, milliwatts: int | None, ending: str
) -> None:
    meter = opened(machine(load_module=nvml(millijoules=millijoules, milliwatts=milliwatts)), "nvml")
    assert (meter.live().headline_channel_id or "").endswith(ending)


def test_gpus_are_added_to_the_package(machine: Make) -> None:
    folder = "/sys/class/powercap/intel-rapl:0"
    files = {f"{folder}/name": "package-0\n", f"{folder}/energy_uj": "5\n"}
    context = machine(files, load_module=nvml(millijoules=5_000_000, milliwatts=70_000, count=2))
    live = opened(context, "nvml", "powercap").live()
    assert live.scope == "package+gpu"
    assert live.headline_channel_id == "powercap/package-0+nvml/GPU-0/energy+nvml/GPU-1/energy"


def test_no_library_and_no_driver_is_nothing_to_say(machine: Make) -> None:
    assert load("nvml").detect(machine()) == []
    (only,) = load("nvml").detect(machine({"/proc/driver/nvidia/version": "NVRM\n"}))
    assert only.remedy == "pip install 'edged[gpu]'"


def iio(**files: str) -> dict[str, str]:
    return {
        f"/sys/bus/iio/devices/iio:device2/{name}": said
        for name, said in {"name": "pac1934\n", **files}.items()
    }


def test_iio_power_is_milliwatts_by_its_scale_and_a_rail(machine: Make) -> None:
    files = iio(
        in_power1_raw="2000\n", in_power1_scale="0.5\n", in_power1_label="VDDREG\n", in_power2_raw="40\n"
    )
    meter = opened(machine(files), "iio")
    assert {one.channel_id: one.watts for one in meter.live().channels} == {
        "iio/pac1934/VDDREG": pytest.approx(1.0),
        "iio/pac1934/power2": pytest.approx(0.04),
    }
    assert meter.live().headline_channel_id is None
    meter = opened(machine(files, options={"iio": {"input": "iio/pac1934/VDDREG"}}), "iio")
    assert (meter.live().headline_channel_id, meter.live().scope) == ("iio/pac1934/VDDREG", "dc_in")


@pytest.mark.parametrize(
    "files",
    [{"in_power1_raw": "-5\n"}, {"in_power1_raw": "x"}, {"in_power1_raw": "5", "in_power_scale": "0"}],
)
def test_iio_files_that_hold_no_power_are_invalid(machine: Make, files: dict[str, str]) -> None:
    (only,) = opened(machine(iio(**files)), "iio").channels()
    assert (only.status, only.reason != "") == ("invalid", True)
