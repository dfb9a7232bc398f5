"""FedAsync's constant strategy: s = 1, alpha alone says how much an update counts (ALGORITHMS 3.3)."""

from msgspec import Struct

NAME = "constant"
SUMMARY = "1 (FedAsync, constant)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none: alpha is the run's."""


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1.0
