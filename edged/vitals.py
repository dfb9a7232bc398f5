"""A board's temperature and throttling from sysfs, for telemetry; `root` stands for `/`. No energy here."""

from pathlib import Path

# Bits of the Raspberry Pi's get_throttled; the upper half is "has occurred since boot".
_THROTTLE_BITS = {
    0: "under-voltage",
    1: "frequency-capped",
    2: "throttled",
    3: "soft-temperature-limit",
    16: "under-voltage-before",
    17: "frequency-capped-before",
    18: "throttled-before",
    19: "soft-temperature-limit-before",
}
_THROTTLE_FILES = (
    "sys/devices/platform/soc/soc:firmware/get_throttled",
    "sys/devices/platform/soc@107c000000/soc@107c000000:firmware/get_throttled",
)


def temperature_celsius(root: Path) -> float | None:
    """The hottest thermal zone that gives a believable value, None if none does."""
    found = []
    for path in root.glob("sys/class/thermal/thermal_zone*/temp"):
        try:
            celsius = int(path.read_text()) / 1000
        except (OSError, ValueError):
            continue  # a zone that is switched off answers with an error
        if -40 < celsius < 150:
            found.append(celsius)
    return max(found, default=None)


def throttled(root: Path) -> tuple[str, ...]:
    """What holds the processor back now or has since boot, in words; empty where nothing says so."""
    for name in _THROTTLE_FILES:
        try:
            bits = int((root / name).read_text().strip(), 16)
        except (OSError, ValueError):
            continue
        return tuple(word for bit, word in _THROTTLE_BITS.items() if bits >> bit & 1)
    return ()
