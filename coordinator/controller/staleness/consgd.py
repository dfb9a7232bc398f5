"""ConSGD (Jiang and others, SIGMOD '17): every update counts less by the same constant (ALGORITHMS 3.5).

The constant was not verified here; 1 over the number of boards is our choice where none is given.
"""

from msgspec import Struct

NAME = "consgd"
SUMMARY = "the same constant for all, else 1 / boards (ConSGD)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`constant`: the factor; None is 1 / boards."""

    constant: float | None = None

    def __post_init__(self) -> None:
        if self.constant is not None and not 0 < self.constant <= 1:
            raise ValueError(f"constant = {self.constant}: it must be above 0 and at most 1")


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1 / max(1, boards) if options.constant is None else options.constant
