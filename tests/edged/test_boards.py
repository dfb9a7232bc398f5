"""The table of boards holds together, and a board is told by its own files."""

from pathlib import Path

import pytest

from edged.boards import BoardError, emulated_options, estimate_options, load
from probes import Context
from probes._outside import real_context
from probes.emulated import Activity, create
from probes.estimate import create as create_estimate

BOARDS = load()


def lay_out(root: Path, files: dict[str, str]) -> Path:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    return root


@pytest.mark.parametrize("board_id", sorted(BOARDS.by_id))
def test_every_board_has_watts_and_a_speed_with_sources(board_id: str) -> None:
    board = BOARDS.by_id[board_id]
    assert 0 < board.idle_watts < board.full_watts < 100
    assert board.watts_source
    assert (board.hpl_gigaflops is None) == (board.hpl_source == "")
    assert (board.sevenzip_mips is None) == (board.sevenzip_source == "")
    assert 0.05 < BOARDS.speed(board_id).relative < 20
    assert BOARDS.speed(board_id).source.startswith("derived: ")


@pytest.mark.parametrize(
    ("files", "board_id"),
    [
        ({"proc/device-tree/model": "Raspberry Pi 4 Model B Rev 1.4\0"}, "rpi4"),
        ({"proc/device-tree/model": "Raspberry Pi 3 Model B Plus Rev 1.3\0"}, "rpi3bplus"),
        ({"sys/firmware/devicetree/base/model": "StarFive VisionFive 2 v1.3B\0"}, "visionfive2"),
        ({"proc/device-tree/model": "NVIDIA Jetson Orin Nano Developer Kit\0"}, "jetson-orin-nano"),
        ({"proc/device-tree/model": "Orange Pi 5\0"}, "orangepi5"),
        ({"proc/device-tree/model": "Orange Pi 5 Max\0"}, None),
        ({"proc/device-tree/model": "Radxa ROCK 5B+\0"}, None),
        ({"sys/class/dmi/id/product_name": "NucBox G3 Plus\n"}, "n150"),
        ({"proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) N100\n"}, "n100"),
        ({"proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) N1000\n"}, None),
        ({}, None),
    ],
)
def test_a_board_is_told_by_its_files(tmp_path: Path, files: dict[str, str], board_id: str | None) -> None:
    assert BOARDS.identify(lay_out(tmp_path, files)) == board_id


def test_an_unknown_board_is_refused_with_the_known_ones() -> None:
    with pytest.raises(BoardError, match=r"'rpi9'.*rpi3bplus, rpi4, rpi5"):
        BOARDS.find("rpi9")


def context_of(tmp_path: Path, table: str, options: dict[str, object]) -> Context:
    return real_context(tmp_path, {table: options}, activity=Activity())


@pytest.mark.parametrize("board_id", sorted(BOARDS.by_id))
def test_its_options_are_what_the_probes_take(tmp_path: Path, board_id: str) -> None:
    board = BOARDS.by_id[board_id]
    lay_out(tmp_path, {"proc/stat": "cpu  1 1 1 1 1 1 1 0 0 0\ncpu0 1 1 1 1 1 1 1 0 0 0\n"})
    (emulated,) = create().detect(context_of(tmp_path, "emulated", emulated_options(board_id, board)))
    assert emulated.channel is not None
    assert (emulated.status, emulated.channel.basis) == ("ok", "emulated")
    assert emulated.channel.scope == board.scope
    (estimate,) = create_estimate().detect(context_of(tmp_path, "estimate", estimate_options(board)))
    assert estimate.channel is not None
    assert (estimate.status, estimate.channel.basis) == ("ok", "estimated")
    assert estimate.channel.scope == board.scope
