"""Lines on the disk: in order, bounded by dropping watts, there after a kill, whole."""

import os
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from coordinator.telemetry.spool import REFUSED_FILE, Spool

Make = Callable[..., Spool]


@pytest.fixture
def make(tmp_path: Path) -> Iterator[Make]:
    """Spools in one folder; those still open are closed at the end."""
    spools: list[Spool] = []

    def made(limit_bytes: int = 1 << 20, segment_bytes: int = 1000) -> Spool:
        spools.append(Spool(tmp_path / "spool", limit_bytes, segment_bytes))
        return spools[-1]

    yield made
    for spool in spools:
        spool.close()


def taken(spool: Spool) -> list[str]:
    """Everything, in the order in which it would be sent."""
    lines: list[str] = []
    while (segment := spool.oldest()) is not None:
        lines += segment.lines()
        spool.remove(segment)
    return lines


def test_rounds_go_before_watts_and_each_in_order(make: Make) -> None:
    spool = make()
    for number in range(200):
        spool.append("power", [f"power {number}"])
        spool.append("rounds", [f"round {number}"])
    expected = [f"round {n}" for n in range(200)] + [f"power {n}" for n in range(200)]
    assert taken(spool) == expected
    assert spool.size_bytes == 0


def test_what_was_taken_is_there_after_a_kill(make: Make) -> None:
    spool = make()
    spool.append("rounds", ["round 1", "round 2"])
    spool.append("power", ["power 1"])
    again = make()  # nobody closed the first one
    assert taken(again) == ["round 1", "round 2", "power 1"]
    again.append("rounds", ["round 3"])
    assert taken(again) == ["round 3"]


def test_a_line_that_a_kill_cut_off_is_left_out(make: Make, tmp_path: Path) -> None:
    spool = make()
    spool.append("rounds", ["round 1"])
    spool.close()
    [file] = (tmp_path / "spool").glob("rounds-*")
    with file.open("a") as half:
        half.write("round 2,fle")
    assert taken(make()) == ["round 1"]


def test_beyond_its_bound_the_oldest_watts_go_and_no_round(make: Make) -> None:
    spool = make(limit_bytes=5000)
    for number in range(2000):
        spool.append("power", [f"power {number:08d}"])
        if number % 100 == 0:
            spool.append("rounds", [f"round {number:08d}"])
        assert spool.size_bytes <= 5000 + 1000
    lines = taken(spool)
    rounds = [line for line in lines if line.startswith("round")]
    powers = [int(line.split()[1]) for line in lines if line.startswith("power")]
    assert len(rounds) == 20
    assert powers == list(range(powers[0], 2000)), "the newest, without a gap"
    assert spool.dropped == {"rounds": 0, "power": 2000 - len(powers)}


def test_a_disk_that_takes_nothing_is_said_and_rounds_wait_for_it(make: Make, tmp_path: Path) -> None:
    spool = make()
    # No file can be made any more, for root either.
    folder = tmp_path / "spool"
    spool.close()
    folder.rename(tmp_path / "aside")
    folder.write_text("not a folder")
    spool.append("rounds", ["round 1"])
    spool.append("power", ["power 2"])
    assert "spool" in spool.problem
    folder.unlink()
    (tmp_path / "aside").rename(folder)
    spool.append("rounds", ["round 2"])
    assert spool.problem == ""
    lines = taken(spool)
    assert lines == ["round 1", "round 2"]
    assert spool.dropped == {"rounds": 0, "power": 1}, "watts that did not fit are counted"


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="no /dev/full here")  # noqa: PTH110
def test_a_full_disk_drops_watts_to_make_room_for_a_round(make: Make, tmp_path: Path) -> None:
    spool = make()
    spool.append("power", ["power 1"])
    spool.oldest()  # seals it
    descriptor = os.open("/dev/full", os.O_WRONLY)
    spool._open["rounds"] = (descriptor, tmp_path / "spool" / "rounds-9.lp", 0)
    spool.append("rounds", ["round 1"])
    assert spool.dropped["power"] == 1
    assert "No space left" in spool.problem
    os.close(descriptor)
    del spool._open["rounds"]
    spool.append("rounds", [])
    spool.append("rounds", ["round 2"])
    assert taken(spool) == ["round 1", "round 2"]


def test_lines_that_no_server_takes_are_kept_to_be_looked_at(make: Make, tmp_path: Path) -> None:
    spool = make()
    spool.refuse("rounds", ["round 7"], "field type\nconflict")
    assert (tmp_path / "spool" / REFUSED_FILE).read_text() == "# field type conflict\nround 7\n"
    assert spool.dropped["rounds"] == 1
    assert taken(make()) == []
