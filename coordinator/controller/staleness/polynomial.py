"""FedAsync's polynomial strategy: s(u) = (u + 1)^-a (ALGORITHMS 3.3)."""

from msgspec import Struct

NAME = "polynomial"
SUMMARY = "(u + 1)^-a (FedAsync, polynomial)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`a`: how fast it falls."""

    a: float = 0.5

    def __post_init__(self) -> None:
        if not 0 < self.a < float("inf"):
            raise ValueError(f"a = {self.a}: it must be above 0")


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return float((staleness + 1) ** -options.a)
