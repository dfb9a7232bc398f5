"""No rule: every update counts in full, however old (OmniLearn ASP)."""

from msgspec import Struct

NAME = "none"
SUMMARY = "1, however old"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """There are none."""


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1.0
