"""What messages are made of: pieces of data, files in chunks, parts of a round, joules. Pure."""

import math
from typing import Annotated

from msgspec import Meta, Struct

from edged.fields import Count, Joules, Natural, Seconds, Sha256, Text, Unit


class Piece(Struct, frozen=True, array_like=True):
    """Places start..stop (exclusive) of one epoch's permutation of the pool (ARCHITECTURE 5)."""

    epoch: Count
    start: Count
    stop: Count

    @property
    def samples(self) -> int:
        """Samples of the piece; negative when the piece is not one (callers check)."""
        return self.stop - self.start


class Manifest(Struct, frozen=True):
    """A file cut in chunks: all but the last are `chunk_bytes` long."""

    length_bytes: Natural
    chunk_bytes: Annotated[int, Meta(ge=1, le=1 << 28)]
    sha256: Sha256

    @property
    def chunks(self) -> int:
        """Number of chunks."""
        return math.ceil(self.length_bytes / self.chunk_bytes)


class Part(Struct, frozen=True):
    """One part of a board's round. `joules` is None where they are not known."""

    seconds: Seconds = 0.0
    joules: Joules | None = None


class Parts(Struct, frozen=True):
    """The parts of a board's round; together they are all of it (ARCHITECTURE 4)."""

    compute: Part = Part()
    communication: Part = Part()
    wait: Part = Part()
    lost: Part = Part()
    overhead: Part = Part()


class Energy(Struct, frozen=True):
    """Joules of the compute window in the headline scope, and how far to trust them."""

    joules: Joules | None = None
    reason: Text = ""
    channel: Text = ""
    scope: Text = ""
    basis: Text = ""
    uncertainty_joules: Joules | None = None
    coverage: Unit | None = None
    above_idle_joules: float | None = None  # beside `joules`, never instead; null without an idle baseline
    flags: tuple[Text, ...] = ()


class Steady(Struct, frozen=True):
    """What the controller charges: the compute window without a new child's first two steps."""

    samples: Count = 0
    seconds: Seconds = 0.0
    joules: Joules | None = None


class EnergyChannel(Struct, frozen=True):
    """One energy channel of a board, as announced at birth."""

    id: Text
    scope: Text
    basis: Text
    kind: Text = ""
    headline: bool = False
    status: Text = "ok"
    reason: Text = ""


class PoolOffer(Struct, frozen=True):
    """A pool that a board holds: equal fingerprints mean equal data."""

    fingerprint: Text
    samples: Count
    tasks: tuple[Text, ...] = ()
    error: Text = ""
