"""What ranks tell each other every few steps, and what a user is shown of it."""

from __future__ import annotations

from msgspec import Struct

from edged.balance.joules import Reading


class Said(Struct, frozen=True):
    """One rank since the last exchange: compute seconds for so many samples; and so far: batches of its loop,
    steps of the epoch that its DataLoader has been dealt, joules (None: not asked for)."""

    batches: int
    seconds: float
    samples: int
    dealt: int
    energy: Reading | None = None


class Rank(Struct, frozen=True):
    """`samples` of a whole step as agreed; `seconds_per_sample` as last measured.

    Joules are those of the whole machine since `balance` was called: None with the reason where they are not
    known, or another rank has them.
    """

    rank: int
    samples: int
    seconds_per_sample: float | None
    energy: Reading | None = None


class Report(Struct, frozen=True):
    """As of the last exchange; the same on all ranks. `str()` is a table of a few lines.

    >>> print(balancer.report())  # doctest: +SKIP
    96 samples a step, sizes changed 1 time in 40 steps
    rank  samples  seconds a sample
       0       64             0.001
       1       32             0.002
    """

    batch: int
    batches: int
    changes: int
    ranks: tuple[Rank, ...]

    def __str__(self) -> str:
        times = "time" if self.changes == 1 else "times"
        with_energy = any(one.energy is not None for one in self.ranks)
        lines = [
            f"{self.batch} samples a step, sizes changed {self.changes} {times} in {self.batches} steps",
            "rank  samples  seconds a sample" + ("  joules" if with_energy else ""),
        ]
        for one in self.ranks:
            tau = "not yet" if one.seconds_per_sample is None else f"{one.seconds_per_sample:.3g}"
            line = f"{one.rank:4}  {one.samples:7}  {tau:>16}"
            lines.append(line + ("" if one.energy is None else f"  {one.energy}"))
        return "\n".join(lines)
