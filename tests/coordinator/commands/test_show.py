"""Figures, durations and tables as people read them; what is not known is never 0."""

import pytest

from coordinator.commands import _show


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (None, "?"),
        (0.0, "0"),
        (1.0, "1.00"),
        (12.345, "12.3"),
        (123.4, "123"),
        (1234.5, "1,234"),
        (0.5, "0.500"),
        (0.0123, "0.0123"),
        (-3.2, "-3.20"),
        (1e-9, "0.000000"),
    ],
)
def test_a_figure_has_three_digits_and_no_exponent(value: float | None, shown: str) -> None:
    assert _show.figure(value) == shown


@pytest.mark.parametrize(
    ("seconds", "shown"),
    [(None, "?"), (0.04, "0.0 s"), (59.94, "59.9 s"), (125.4, "2 min 5 s"), (7325.0, "2 h 2 min")],
)
def test_a_duration_is_said_as_people_say_it(seconds: float | None, shown: str) -> None:
    assert _show.duration(seconds) == shown


def test_a_plain_table_is_aligned_and_has_no_control_characters() -> None:
    lines = _show.plain("boards", ["board", "share"], [["pi4", "7"], ["visionfive2", "1,234"]], "<>")
    assert lines == ["boards", "board        share", "pi4              7", "visionfive2  1,234"]


def test_foreign_text_is_no_markup() -> None:
    from rich.console import Console

    console = Console(width=60, force_terminal=False)
    with console.capture() as captured:
        console.print(_show.rich_table("", ["reason"], [["[red]no[/red] [bold"]], "<"))
    assert "[red]no[/red] [bold" in captured.get()


def test_lines_between_rows_stand_where_they_belong_and_move_no_column(
    capsys: pytest.CaptureFixture[str],
) -> None:
    rows = [["1", "7 s"], ["2", "8 s"]]
    _show.table("r1", ["round", "in all"], rows, ">>", between={0: ["- first"], 1: ["- then"], 2: ["- last"]})
    told = capsys.readouterr().out.splitlines()
    assert told == ["r1", "round  in all", "- first", "    1     7 s", "- then", "    2     8 s", "- last"]
