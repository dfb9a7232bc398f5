"""Sets of chunk numbers as sorted, disjoint ranges [start, stop): what is missing, wanted and granted.

PURE. Every function takes ranges in any order and returns them normal: sorted, disjoint, joined, none empty.
"""

from collections.abc import Iterable
from typing import TypeAlias

Range: TypeAlias = tuple[int, int]


def merge(*wants: Iterable[Range]) -> list[Range]:
    """The union: several boards' wants answered as one."""
    merged: list[Range] = []
    for start, stop in sorted(piece for want in wants for piece in want if piece[0] < piece[1]):
        if merged and start <= merged[-1][1]:
            merged[-1] = (merged[-1][0], max(merged[-1][1], stop))
        else:
            merged.append((start, stop))
    return merged


def clip(ranges: Iterable[Range], chunks: int) -> list[Range]:
    """What of it lies in 0..chunks: nobody can want a chunk that does not exist."""
    return merge([(max(0, start), min(chunks, stop)) for start, stop in ranges])


def subtract(ranges: Iterable[Range], without: Iterable[Range]) -> list[Range]:
    """What is in `ranges` and not in `without`."""
    left = merge(ranges)
    for low, high in merge(without):
        left = [
            piece
            for start, stop in left
            for piece in ((start, min(stop, low)), (max(start, high), stop))
            if piece[0] < piece[1]
        ]
    return left


def size(ranges: Iterable[Range]) -> int:
    """How many chunks."""
    return sum(stop - start for start, stop in merge(ranges))


def next_grant(missing: Iterable[Range], granted: Iterable[Range], window: int) -> list[Range]:
    """The first missing chunks to grant now so that no more than `window` granted ones are outstanding.

    `missing` is what has not arrived, `granted` all that was granted before; arrived ones no longer count. A
    chunk that was granted and got lost is granted anew once the caller drops it from `granted`.
    """
    lacking = merge(missing)
    new = subtract(lacking, granted)
    room = window - (size(lacking) - size(new))
    grant: list[Range] = []
    for start, stop in new:
        if room <= 0:
            break
        grant.append((start, min(stop, start + room)))
        room -= stop - start
    return grant
