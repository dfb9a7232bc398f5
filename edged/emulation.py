"""A board to stand in for: its pace and its published watts, out of the table of boards.

Nothing is measured here: everything that follows from it is marked emulated.
"""

from __future__ import annotations

from typing import Any

from msgspec import Struct

from edged import boards


class Emulation(Struct, frozen=True):
    """`seconds_per_sample` is None where the pace is to be measured; `probe_options` is [energy.emulated]."""

    seconds_per_sample: float | None
    probe_options: dict[str, Any]


def emulation_of(name: str, speed_scale: float) -> Emulation:
    """The table's board of that name. `speed_scale` is the seconds that a Raspberry Pi 4 takes for a
    sample; 0: to be measured. Raises BoardError with the boards there are."""
    table = boards.load()
    board = table.find(name)
    relative = table.speed(name).relative
    return Emulation(
        seconds_per_sample=speed_scale / relative if speed_scale else None,
        probe_options=boards.emulated_options(name, board),
    )


def estimate_of_this_board() -> dict[str, Any] | None:
    """[energy.estimate] by the published watts of the board that this is, None where it is not in the
    table.
    """
    table = boards.load()
    found = table.identify()
    return boards.estimate_options(table.find(found)) if found else None
