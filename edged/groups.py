"""What boards that train with synchronous gradients are told and say beside an order: values of messages.

Pure. A group is the ranks of one silo for one attempt at a round; how it forms is `edged.gloo`'s.
"""

from msgspec import Struct

from edged.fields import Count, Id, Natural, OrderId, Seconds, Sha256, Text


class Stepwise(Struct, frozen=True):
    """Batch sizes that the ranks change among themselves every so many steps (`edged.stepwise`). `lower` and
    `upper` bound a rank's samples of the round; a loss of throughput above `fall` teaches it a ceiling."""

    rule: Text
    every: Natural
    beta: float
    deadband: float = 0.0
    lower: Count = 0
    upper: Natural | None = None
    fall: float | None = None


class Rendezvous(Struct, frozen=True):
    """Who trains an order together. `boards` and `shares` stand in rank order; `plan` is the hash of all
    that must be equal on every rank (`edged.dealing`)."""

    silo: Id
    boards: tuple[Id, ...]
    rank: Count
    shares: tuple[Count, ...]
    steps: Natural
    plan: Sha256
    collective_seconds: Seconds
    stepwise: Stepwise | None = None

    @property
    def world(self) -> int:
        """Number of ranks."""
        return len(self.boards)


class Readiness(Struct, frozen=True):
    """A rank has everything in memory and waits for the others: what must be equal on all of them, where
    it listens, and the process group that it still holds ("": none)."""

    order: OrderId
    plan: Sha256
    model: Sha256
    torch: Text = ""
    address: Text = ""
    port: Count = 0
    holds: Text = ""


class Peer(Struct, frozen=True, array_like=True):
    """Where a rank listens."""

    address: Text
    port: Count


class Synchronous(Struct, frozen=True):
    """A rank's steps: the all-reduced loss of the round, the time of all steps, its own forward time, how far
    it was from rank 0 at the round's end before it took rank 0's state, and the checksum of that state."""

    group: Text
    rank: Count
    world: Natural
    samples: Count
    loss_sum: float
    window_seconds: Seconds
    forward_seconds: Seconds
    deviation: float
    checksum: Text
