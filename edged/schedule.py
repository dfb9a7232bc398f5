"""Which samples a board trains, in which order and in which batches: a pure function of the run's seed.

The permutation comes from an integer hash and a stable sort, never from a library's generator, so every
ISA and every numpy deals the same samples (ARCHITECTURE 5). Who gets how many is decided elsewhere.
"""

from __future__ import annotations

import hashlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy as np
    from numpy.typing import NDArray

    from edged.messages import Piece

# Constants of splitmix64 (Steele, Lea, Flood 2014); the finaliser is a bijection of 64-bit words, so no two
# indices of one epoch ever tie.
_STEP = 0x9E3779B97F4A7C15
_MIX1 = 0xBF58476D1CE4E5B9
_MIX2 = 0x94D049BB133111EB


def subseed(seed: int, *names: str | int) -> int:
    """A named seed below 2**63 of the run's one seed, e.g. `subseed(7, "dropout", "pi4", 3)`."""
    text = "\x1f".join([str(int(seed)), *(f"{type(name).__name__}:{name}" for name in names)])
    return int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "big") >> 1


def permutation(seed: int, epoch: int, size: int) -> NDArray[np.int64]:
    """The order in which an epoch deals the `size` samples of a pool; the same on every machine."""
    import numpy as np

    if size < 0:
        raise ValueError(f"a pool cannot have {size} samples")
    key = np.uint64(subseed(seed, "permutation", epoch))
    # In place: a permutation of a large pool must not cost a small board five temporaries.
    words = np.arange(1, size + 1, dtype=np.uint64)
    words *= np.uint64(_STEP)
    words += key
    words ^= words >> np.uint64(30)
    words *= np.uint64(_MIX1)
    words ^= words >> np.uint64(27)
    words *= np.uint64(_MIX2)
    words ^= words >> np.uint64(31)
    return np.argsort(words, kind="stable").astype(np.int64, copy=False)


def indices(pieces: Sequence[Piece], seed: int, size: int) -> NDArray[np.int64]:
    """The pool indices that an order's pieces stand for, in the order in which they are trained.

    Raises ValueError naming the piece that does not lie inside a pool of `size` samples.
    """
    import numpy as np

    for piece in pieces:
        if piece.epoch < 0 or not 0 <= piece.start <= piece.stop <= size:
            raise ValueError(
                f"piece (epoch {piece.epoch}, {piece.start} to {piece.stop}) is outside a pool of {size}"
            )
    orders = {epoch: permutation(seed, epoch, size) for epoch in {piece.epoch for piece in pieces}}
    cuts = [orders[piece.epoch][piece.start : piece.stop] for piece in pieces]
    return np.concatenate(cuts) if cuts else np.empty(0, dtype=np.int64)


def even_batches(samples: int, batch: int) -> list[int]:
    """ceil(samples / batch) sizes that add up to `samples` and differ by at most one: no tail batch."""
    if samples < 0 or batch < 1:
        raise ValueError(f"cannot cut {samples} samples into batches of {batch}")
    steps = -(-samples // batch)
    if steps == 0:
        return []
    small, larger = divmod(samples, steps)
    return [small + 1] * larger + [small] * (steps - larger)
