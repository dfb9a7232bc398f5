"""Which places of the pool's permutation are dealt next (ARCHITECTURE 5). Pure.

Lost pieces stand at the head of the queue. A round that reaches the end of an epoch goes on with the
next one, so that the budget of a round stays what it was; no place is ever dealt twice unless it was lost.
"""

from msgspec import Struct

from edged.messages import Piece


class Queue(Struct):
    """Places that are still to be dealt: those given back, then (epoch, position) and all after it."""

    size: int
    epoch: int = 0
    position: int = 0
    returned: list[Piece] = []

    def take(self, samples: int) -> tuple[Piece, ...]:
        """Pieces of `samples` places in all. Raises ValueError for a pool without samples."""
        if self.size < 1:
            raise ValueError("the pool has no samples")
        taken: list[Piece] = []
        while samples > 0:
            if self.returned:
                head = self.returned[0]
                stop = min(head.stop, head.start + samples)
                taken.append(Piece(head.epoch, head.start, stop))
                if stop == head.stop:
                    self.returned.pop(0)
                else:
                    self.returned[0] = Piece(head.epoch, stop, head.stop)
            else:
                stop = min(self.size, self.position + samples)
                taken.append(Piece(self.epoch, self.position, stop))
                self.position = stop
                if stop == self.size:
                    self.epoch, self.position = self.epoch + 1, 0
            samples -= taken[-1].samples
        return tuple(taken)

    def give_back(self, pieces: tuple[Piece, ...]) -> None:
        """Put lost pieces at the head, in order of epoch and place; neighbours become one piece."""
        merged: list[Piece] = []
        for piece in sorted((*self.returned, *pieces), key=lambda p: (p.epoch, p.start)):
            if merged and merged[-1].epoch == piece.epoch and merged[-1].stop == piece.start:
                merged[-1] = Piece(piece.epoch, merged[-1].start, piece.stop)
            else:
                merged.append(piece)
        self.returned = merged

    @property
    def waiting_samples(self) -> int:
        """Samples that were lost and are not dealt again yet."""
        return sum(piece.samples for piece in self.returned)
