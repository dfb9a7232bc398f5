"""FedAsync's hinge strategy: s(u) = 1 up to b, then 1 / (a (u - b) + 1) (ALGORITHMS 3.3)."""

from msgspec import Struct

NAME = "hinge"
SUMMARY = "1 up to b, then 1 / (a (u - b) + 1) (FedAsync, hinge)"


class Options(Struct, frozen=True, forbid_unknown_fields=True):
    """`b`: up to this staleness an update counts in full; `a`: how fast it falls after that."""

    a: float = 0.5
    b: float = 4.0

    def __post_init__(self) -> None:
        if not 0 < self.a < float("inf"):
            raise ValueError(f"a = {self.a}: it must be above 0")
        if not 0 <= self.b < float("inf"):
            raise ValueError(f"b = {self.b}: it must not be negative")


def factor(staleness: int, boards: int, options: Options) -> float:
    """See staleness.Rule."""
    return 1.0 if staleness <= options.b else 1 / (options.a * (staleness - options.b) + 1)
