"""DynSGD (Jiang and others, SIGMOD '17): an update counts by its own delay, 1 / (u + 1) (ALGORITHMS 3.5)."""

from msgspec import Struct

NAME = "dynsgd"
SUMMARY = "1 / (u + 1) (DynSGD)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1 / (staleness + 1)
