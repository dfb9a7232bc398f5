"""Bounded staleness (stale synchronous parallel): updates count in full, fast boards wait for the slowest.

A board gets no order while it has `ahead` accepted updates more than the slowest board that takes part.
"""

from msgspec import Struct

NAME = "ssp"
SUMMARY = "1; a board that is `ahead` updates ahead of the slowest waits (SSP)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`ahead`: updates that a board may be ahead of the slowest, at least 1."""

    ahead: int = 3

    def __post_init__(self) -> None:
        if self.ahead < 1:
            raise ValueError(f"ahead = {self.ahead}: it must be at least 1")


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1.0


def ahead(options: Options) -> int:
    """See staleness.Holding."""
    return options.ahead
