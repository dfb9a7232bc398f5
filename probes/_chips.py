"""What is known of hwmon chips by name: which are no meters, and which voltage belongs to which current."""

from __future__ import annotations

import re
from typing import NamedTuple

from probes import Context
from probes._files import Trouble, text
from probes._hwmon import Chip, channels_of

# Names of chips that look like meters and are none.
_NO_METERS = (
    (
        re.compile(r"tcpm[_-]source[_-]psy.*|ucsi.*|cros_usbpd_charger|pdo\d*", re.I),
        "a USB-PD contract, no measurement",
    ),
    (
        re.compile(r"bat\d*|.*battery.*|bq2\w+|max170\w+|sbs.*|cw2015.*|.*_fuel_gauge", re.I),
        "a battery's twin: the battery probe reads it where it discharges",
    ),
    (re.compile(r"acpi_fan"), "a fan's, by its firmware's table"),
    (
        re.compile(r"ac\d*|.*_charger|.*_ac|.*_usb", re.I),
        "a charger's twin: it says what goes in, not what is used",
    ),
    (re.compile(r"rp1_adc|rpi_volt"), "voltages without currents"),
)
# Volts and amperes that are of one place: (inN, currN). Everything else is not multiplied.
_PAIRS = {
    "ina3221": ((1, 1), (2, 2), (3, 3)),
    "ltc2947": ((0, 1),),
    "ltc2992": ((0, 1), (2, 2)),
}
_FILES = (("energy", "input"), ("power", "input"), ("power", "average"), ("curr", "input"))
_INA2 = re.compile(r"ina2\d\d|sq52206|isl28022")
_INPUT = re.compile(r"vin|v_?in|dc_?in|vdc_?in|vdd_?in|12v_?in|5v_?in|power_?in|board_?in(put)?|input", re.I)

# (part of the device tree's model, chip, I2C address): the sensor at the board's input.
_PROFILES = (("HiFive Premier P550", "ina226", "0044"),)


class Reject(NamedTuple):
    """Why a chip that shows watts measures no board."""

    reason: str


def rejected(context: Context, chip: Chip) -> Reject | None:
    """Why a chip is no meter; None where it may be one."""
    if not chip.name:
        return Reject("has no name, so nothing says what it is")
    kind = text(context, chip.path / "device" / "type")
    if kind in ("Battery", "Mains", "USB", "Wireless", "UPS"):
        return Reject(f"the twin of a power supply ({kind})")
    for pattern, why in _NO_METERS:
        if pattern.fullmatch(chip.name):
            return Reject(why)
    return None


def looks_like_a_meter(chip: Chip) -> bool:
    """Whether it has watts, joules or amperes at all: a thermometer needs no reason for being none."""
    return any(channels_of(chip, kind, ending) for kind, ending in _FILES)


def pairs(chip: Chip) -> tuple[tuple[int, int], ...]:
    """(volts, amperes) numbers that may be multiplied."""
    if _INA2.fullmatch(chip.name):
        return ((1, 1),)
    return _PAIRS.get(chip.name, ())


def says_input(label: str) -> bool:
    """Whether a label names the board's input."""
    return _INPUT.fullmatch(label.strip()) is not None


def at_input(context: Context, chip: Chip) -> bool:
    """Whether a shipped profile of this board names the chip as its input."""
    model = text(context, context.path("/proc/device-tree/model"))
    if isinstance(model, Trouble):
        return False
    address = chip.place.partition(".")[0].partition("-")[2]
    return any(part in model and (chip.name, address) == (name, place) for part, name, place in _PROFILES)
