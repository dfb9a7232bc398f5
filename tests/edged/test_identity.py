"""Who a board is, and how warm: from files below a root that the test makes."""

from pathlib import Path

import pytest

from edged import identity, vitals


def write(root: Path, name: str, text: str) -> None:
    path = root / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)


def test_the_model_is_the_device_trees_else_the_firmwares_else_unknown(tmp_path: Path) -> None:
    assert identity.board_model(tmp_path) == ""
    write(tmp_path, "sys/class/dmi/id/product_name", "NUC11\n")
    assert identity.board_model(tmp_path) == "NUC11"
    write(tmp_path, "proc/device-tree/model", "Raspberry Pi 4 Model B Rev 1.4\0")
    assert identity.board_model(tmp_path) == "Raspberry Pi 4 Model B Rev 1.4"


@pytest.mark.parametrize(
    ("text", "found"),
    [("MemTotal:  1024 kB\n", 1 << 20), ("MemFree: 3 kB\n", 0), ("MemTotal: lots\n", 0), ("MemTotal:\n", 0)],
)
def test_memory_is_what_the_kernel_says_or_unknown(tmp_path: Path, text: str, found: int) -> None:
    write(tmp_path, "proc/meminfo", text)
    assert identity.memory_bytes(tmp_path) == found


def test_each_process_has_its_own_boot() -> None:
    first, second = identity.identify(), identity.identify()
    assert first.boot != second.boot
    assert (first.host, first.arch) == (second.host, second.arch)


def test_the_address_is_the_one_on_the_route_and_no_route_is_unknown() -> None:
    assert identity.address_towards("127.0.0.1", 1883) == "127.0.0.1"
    assert identity.address_towards("127.0.0.1", 1883, look_up=False) == "127.0.0.1"
    assert identity.address_towards("localhost", 1883, look_up=False) == ""


def test_the_hottest_believable_zone_is_the_temperature(tmp_path: Path) -> None:
    assert vitals.temperature_celsius(tmp_path) is None
    for number, text in enumerate(("48250", "51000", "255000", "nan", "-274000")):
        write(tmp_path, f"sys/class/thermal/thermal_zone{number}/temp", text)
    assert vitals.temperature_celsius(tmp_path) == 51.0


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("0", ()),
        ("50005", ("under-voltage", "throttled", "under-voltage-before", "throttled-before")),
        ("80000", ("soft-temperature-limit-before",)),
        ("?", ()),
    ],
)
def test_throttling_is_said_in_words(tmp_path: Path, text: str, words: tuple[str, ...]) -> None:
    write(tmp_path, "sys/devices/platform/soc/soc:firmware/get_throttled", text)
    assert vitals.throttled(tmp_path) == words
