"""The ranks of one silo in one round, over its attempts: a plain value. What happens to it is `attempts`'."""

from typing import Literal

from msgspec import Struct

from edged.messages import Piece

Standing = Literal["mustering", "training", "ending", "failing", "done", "lost"]


class Group(Struct):
    """`boards` and `shares` stand in rank order and are those of the running attempt. `name` is the process
    group that it trains in, `uploader` the rank whose update counts for all."""

    silo: str
    pieces: tuple[Piece, ...]
    steps: int
    boards: tuple[str, ...] = ()
    shares: tuple[int, ...] = ()
    attempt: int = 0
    standing: Standing = "mustering"
    name: str = ""
    uploader: str = ""
    uploaded: bool = False
    reason: str = ""
    until_seconds: float = 0.0
    """While failing: so long the ranks have to say that they have stopped."""
    answered: list[str] = []
    out: dict[str, str] = {}
    """Boards that are left out of this round, and why."""
    blamed: list[tuple[str, str]] = []
    """Who cannot reach whom."""
    failures: list[str] = []
    """Why each attempt so far ended."""

    @property
    def samples(self) -> int:
        """Of all ranks."""
        return sum(piece.samples for piece in self.pieces)
