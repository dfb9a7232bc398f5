"""hwmon chips: units by the ABI, signs from the current, dead counters, contracts and twins rejected."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import pytest

from probes import Context, Finding
from probes.hwmon import create
from probes.meter import Meter
from tests.probes.machines import put

Make = Callable[..., Context]


def chip(place: str, name: str, number: int = 3, **files: str | int) -> dict[str, str]:
    folder = f"/sys/bus/i2c/devices/{place}/hwmon/hwmon{number}"
    return {f"{folder}/name": f"{name}\n"} | {f"{folder}/{key}": f"{value}\n" for key, value in files.items()}


def found(context: Context) -> dict[str, Finding]:
    return {one.source: one for one in create().detect(context)}


def watts(context: Context) -> dict[str, float | None]:
    meter = Meter(context, [create()])
    meter.open()
    return {one.channel_id: one.watts for one in meter.live().channels}


def scopes(context: Context) -> dict[str, str]:
    return {one.source: one.channel.scope for one in found(context).values() if one.channel is not None}


@pytest.mark.parametrize(
    ("files", "expected"),
    [
        (chip("1-0040", "ina226", power1_input=5_000_000, in1_input=12000, curr1_input=417), 5.0),
        (chip("1-0040", "ina231", in1_input=5000, curr1_input=1000), 5.0),
        (chip("1-0040", "ltc2947", in0_input=12000, curr1_input=500), 6.0),
        (chip("1-0040", "scmi_sensors", power1_average=2_500_000), 2.5),
    ],
)
def test_watts_come_in_the_units_of_the_abi(machine: Make, files: Mapping[str, str], expected: float) -> None:
    assert list(watts(machine(files)).values()) == pytest.approx([expected])


def test_a_voltage_without_its_current_is_no_power(machine: Make) -> None:
    assert found(machine(chip("1-0040", "pvt", in0_input=800, in1_input=900))) == {}
    assert found(machine(chip("1-0041", "nct6775", in1_input=12000, curr1_input=400))) == {}


def test_a_current_that_flows_back_is_no_consumption(machine: Make) -> None:
    context = machine(chip("1-0040", "ina219", power1_input=176_000, in1_input=4400, curr1_input=-40))
    (only,) = found(context).values()
    assert only.status == "invalid"
    assert "flows back" in only.reason


@pytest.mark.parametrize(
    "name",
    [
        "tcpm_source_psy_2_0022",
        "ucsi_source_psy_USBC000:001",
        "CROS_USBPD_CHARGER",
        "PDO3",
        "BAT0",
        "bq27500_battery",
        "acpi_fan",
        "rpi_volt",
    ],
)
def test_contracts_twins_and_tables_are_rejected_with_a_reason(machine: Make, name: str) -> None:
    context = machine(chip("1-0022", name, in0_input=9000, curr1_input=2250, power1_input=20_000_000))
    (only,) = found(context).values()
    assert (only.status, only.channel) == ("invalid", None)
    assert only.reason


def test_a_power_supplys_twin_is_told_by_its_device(machine: Make) -> None:
    files = chip("1-0022", "mystery", power1_input=20_000_000)
    files["/sys/bus/i2c/devices/1-0022/hwmon/hwmon3/device/type"] = "Battery\n"
    (only,) = found(machine(files)).values()
    assert "twin of a power supply (Battery)" in only.reason


def test_a_sensor_that_is_switched_off_is_absent_and_not_0_watts(machine: Make) -> None:
    (only,) = found(machine(chip("1-0040", "ina226", power1_input=0, power1_enable=0))).values()
    assert (only.status, "off" in only.reason) == ("absent", True)


def test_the_same_chip_reached_three_ways_is_one(machine: Make) -> None:
    context = machine(chip("1-0040", "ina226", power1_input=5_000_000))
    driver = context.path("/sys/bus/i2c/drivers/ina2xx")
    driver.mkdir(parents=True)
    (driver / "1-0040").symlink_to(context.path("/sys/bus/i2c/devices/1-0040"))
    assert list(found(context)) == ["hwmon/1-0040/power1"]


def test_ids_do_not_move_with_the_boots_numbering(machine: Make) -> None:
    names = set()
    for number in (0, 7):
        context = machine(chip("1-0040", "ina226", number, power1_input=5_000_000))
        names.add(tuple(found(context)))
        for path in sorted(context.path("/sys").rglob("*"), reverse=True):
            path.rmdir() if path.is_dir() and not path.is_symlink() else path.unlink()
    assert names == {("hwmon/1-0040/power1",)}


def test_which_rail_is_the_input_is_not_guessed_but_asked(machine: Make) -> None:
    (only,) = found(machine(chip("1-0040", "ina226", power1_input=5_000_000, in1_input=12000))).values()
    assert only.channel is not None
    assert (only.channel.scope, only.channel.headline) == ("rail", False)
    assert only.remedy == 'if this is the board\'s input: [energy.hwmon] input = "hwmon/1-0040/power1"'


@pytest.mark.parametrize(
    ("files", "options"),
    [
        (
            chip("1-0040", "ina226", power1_input=5_000_000, in1_input=12000),
            {"hwmon": {"input": "hwmon/1-0040/power1"}},
        ),
        (chip("1-0040", "ina226", power1_input=5_000_000, in1_input=12000, in1_label="DC_IN"), {}),
        (
            {
                **chip("9-0044", "ina226", power1_input=7_100_000, in1_input=12000),
                "/proc/device-tree/model": "SiFive HiFive Premier P550\0",
            },
            {},
        ),
        (
            {
                **chip("5-0048", "ina226", 1, power1_input=7_380_000, in1_input=12040),
                **chip("5-0044", "ina226", 2, power1_input=1_000_000, in1_input=796),
            },
            {},
        ),
        (
            {
                **chip("4-0044", "ina226", 1, power1_input=7_120_000, in1_input=11940),
                **chip(
                    "4-0010",
                    "pac1934",
                    2,
                    power1_input=2_500_000,
                    in1_input=4970,
                    energy1_input=67_040_000_000,
                ),
            },
            {},
        ),
    ],
)
def test_the_input_is_known_by_config_label_profile_or_as_the_only_high_one(
    machine: Make, files: Mapping[str, str], options: Mapping[str, Mapping[str, object]]
) -> None:
    assert list(scopes(machine(files, options=options)).values()).count("dc_in") == 1


def test_a_12_volt_rail_that_carries_less_than_another_is_no_input(machine: Make) -> None:
    files = {
        **chip("4-0044", "ina226", 1, power1_input=1_120_000, in1_input=11940),
        **chip("4-0010", "pac1934", 2, power1_input=2_500_000, in1_input=4970),
    }
    assert set(scopes(machine(files)).values()) == {"rail"}


def test_two_high_rails_leave_it_open(machine: Make) -> None:
    files = {
        **chip("5-0048", "ina226", 1, power1_input=7_380_000, in1_input=12040),
        **chip("5-0049", "ina226", 2, power1_input=2_000_000, in1_input=11900),
        **chip("5-0044", "ina226", 4, power1_input=1_000_000, in1_input=796),
    }
    assert set(scopes(machine(files)).values()) == {"rail"}


def test_an_input_that_is_not_there_is_named_with_those_that_are(machine: Make) -> None:
    context = machine(
        chip("1-0040", "ina226", power1_input=1), options={"hwmon": {"input": "hwmon/9-0040/power1"}}
    )
    assert found(context)["hwmon"].reason.endswith("there are: hwmon/1-0040/power1")


def test_a_dead_energy_counter_is_frozen_once_its_own_watts_pass_20_joules(machine: Make) -> None:
    folder = "/sys/bus/i2c/devices/1-0040/hwmon/hwmon3"
    context = machine(
        chip("1-0040", "ina228", power1_input=5_000_000, energy1_input=1_000_000, in1_label="VIN"),
    )
    meter = Meter(context, [create()])
    meter.open()
    assert meter.live().headline_channel_id == "hwmon/1-0040/VIN/energy"
    for _ in range(6):
        context.clock.advance(1.0)  # type: ignore[attr-defined]
        meter.sample()
    shown = {one.channel_id: one for one in meter.live().channels}
    assert shown["hwmon/1-0040/VIN/energy"].status == "frozen"
    meter.look_again()
    assert meter.live().headline_channel_id == "hwmon/1-0040/VIN"
    assert meter.live().scope == "dc_in"
    put(context, f"{folder}/energy1_input", "60000000\n")


def test_a_counter_that_moves_is_counted(machine: Make) -> None:
    folder = "/sys/bus/i2c/devices/1-0040/hwmon/hwmon3"
    context = machine(
        chip("1-0040", "ina228", power1_input=5_000_000, energy1_input=1_000_000, in1_label="VIN")
    )
    meter = Meter(context, [create()])
    meter.open()
    start = meter.mark()
    context.clock.advance(4.0)  # type: ignore[attr-defined]
    put(context, f"{folder}/energy1_input", "21000000\n")
    assert meter.window(start, meter.mark()).joules == pytest.approx(20.0)


def test_amd_energy_is_left_to_powercap_where_that_is_there(machine: Make) -> None:
    files = chip("0-0000", "amd_energy", energy1_input=5, energy1_label="Esocket0")
    assert scopes(machine(files)) == {"hwmon/0-0000/Esocket0/energy": "package"}
    context = machine({**files, "/sys/class/powercap/intel-rapl:0/name": "package-0\n"})
    assert found(context) == {}


def test_an_apus_graphics_figure_is_not_added(machine: Make) -> None:
    (only,) = found(machine(chip("0-0000", "amdgpu", power1_input=85_000_000))).values()
    assert only.channel is not None
    assert (only.channel.scope, only.channel.headline) == ("gpu", False)
    assert "inside the package" in only.channel.note
