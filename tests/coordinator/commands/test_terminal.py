"""Tables on terminals that are too narrow for them: what is one word or one figure stays on one line."""

import pytest
from rich.console import Console

from coordinator.commands import _terminal

COLUMNS = ["level", "run", "cores", "seconds", "waiting", "what it is"]
ROWS = [
    ["hl4", "asp uniform", "10 10 4 16", "377.3", "0.1 %", "four workers with unlike cores"],
    ["hl8", "ddp dynamic", "4 4 4 28", "1,399.0", "12.6 %", "watts are invented"],
]
SIDES = "<<<>><"


def shown(width: int, keys: int = 2) -> list[str]:
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        _terminal.show(console, "an invented table", COLUMNS, ROWS, SIDES, keys=keys)
    return captured.get().splitlines()


@pytest.mark.parametrize("width", [200, 80, 66, 60, 50, 40, 30, 20, 10])
def test_no_figure_and_no_word_is_broken_however_narrow_the_terminal(width: int) -> None:
    lines = shown(width)
    for figure in ("377.3", "1,399.0", "0.1 %", "12.6 %", "10 10 4 16", "4 4 4 28"):
        assert sum(figure in line for line in lines) == 1, figure
    words = {word for line in lines for word in line.split()}
    assert {"uniform", "dynamic", "seconds", "waiting", "invented", "unlike"} <= words


def test_where_all_fits_a_row_is_a_line() -> None:
    lines = shown(90)
    assert [line.split()[0] for line in lines if line.startswith("hl")] == ["hl4", "hl8"]
    assert max(map(len, lines)) <= 90


def test_texts_wrap_between_words_before_columns_move() -> None:
    lines = shown(66)
    assert sum(line.startswith("level") for line in lines) == 1
    assert max(len(line.rstrip()) for line in lines) <= 66


def test_columns_that_do_not_fit_follow_below_with_the_first_ones_again() -> None:
    lines = shown(40)
    heads = [line.split() for line in lines if line.startswith("level")]
    assert len(heads) > 1
    assert all(head[:2] == ["level", "run"] for head in heads)
    following = [name for head in heads for name in head[2:]]
    assert following[:3] == ["cores", "seconds", "waiting"]


def test_a_very_long_word_pushes_nothing_out() -> None:
    console = Console(width=60, force_terminal=False)
    with console.capture() as captured:
        _terminal.show(console, "", ["board", "share", "reason"], [["pi4", "7", "x" * 500]], "<><", keys=1)
    lines = captured.get().splitlines()
    assert max(map(len, lines)) <= 60
    assert sum(line.count("x") for line in lines) == 500


@pytest.mark.parametrize("width", [90, 40])
def test_lines_between_rows_are_told_once_where_they_belong(width: int) -> None:
    between = {1: ["- paused by somebody"], 2: ["- gone on"]}
    console = Console(width=width, force_terminal=False)
    with console.capture() as captured:
        _terminal.show(console, "", COLUMNS, ROWS, SIDES, keys=2, between=between)
    told = [line.split()[0] for line in captured.get().splitlines() if line.startswith(("hl", "-", "level"))]
    assert told[:5] == ["level", "hl4", "-", "hl8", "-"]
    assert told[5:] == [] if width == 90 else ["level", "hl4", "hl8"] * ((len(told) - 5) // 3)
