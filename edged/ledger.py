"""The time of one order, cut into parts without a gap: compute, communication, wait, lost, overhead.

Pure. A boundary is an instant with whatever the meter knew at it; joules of a part are differences between
boundaries, so that the parts add up to the meter's difference over the whole.
"""

from collections.abc import Callable
from typing import Generic, TypeVar

from msgspec import Struct
from msgspec.structs import replace

from edged.messages import PARTS, Part, Parts

M = TypeVar("M")


class Boundary(Struct, Generic[M], frozen=True):
    """An instant of the monotonic clock, and the meter's mark there."""

    at_seconds: float
    mark: M


class Span(Struct, Generic[M], frozen=True):
    """One part from one boundary to the next."""

    part: str
    start: Boundary[M]
    stop: Boundary[M]

    @property
    def seconds(self) -> float:
        """Length of the span."""
        return self.stop.at_seconds - self.start.at_seconds


class Ledger(Struct, Generic[M], frozen=True):
    """An order's spans so far, and the part that runs since the last boundary (None: nothing is charged)."""

    order: str
    since: Boundary[M]
    part: str | None = None
    spans: tuple[Span[M], ...] = ()

    def enter(self, part: str | None, here: Boundary[M]) -> "Ledger[M]":
        """Another part runs from here on; the same part goes on without a cut.

        An instant before the last boundary (a stamp that came late) counts as that boundary.
        """
        if part is not None and part not in PARTS:
            raise ValueError(f"{part!r} is no part of an order's time; there are: {', '.join(PARTS)}")
        if part == self.part:
            return self
        if here.at_seconds <= self.since.at_seconds:
            return replace(self, part=part)
        return replace(self, part=part, since=here, spans=self._spans_until(here))

    def lose(self) -> "Ledger[M]":
        """What was computed for this order is of no use: it counts as lost."""
        spans = tuple(replace(span, part="lost") if span.part == "compute" else span for span in self.spans)
        return replace(self, spans=spans, part="lost" if self.part == "compute" else self.part)

    def until(self, here: Boundary[M]) -> tuple[Span[M], ...]:
        """All spans, the running part included."""
        return self._spans_until(here) if here.at_seconds > self.since.at_seconds else self.spans

    def _spans_until(self, here: Boundary[M]) -> tuple[Span[M], ...]:
        if self.part is None:
            return self.spans
        return (*self.spans, Span(self.part, self.since, here))


def parts(spans: tuple[Span[M], ...], joules: Callable[[Span[M]], float | None]) -> Parts:
    """Seconds and joules by part. A part's joules are None as soon as those of one of its spans are;
    those of a part that did not occur are 0, unless nothing is known of the whole."""
    totals: dict[str, Part] = {}
    for span in spans:
        before = totals.get(span.part, Part(0.0, 0.0))
        used = joules(span)
        known = None if used is None or before.joules is None else before.joules + used
        totals[span.part] = Part(before.seconds + span.seconds, known)
    known_at_all = not totals or any(part.joules is not None for part in totals.values())
    absent = Part(0.0, 0.0 if known_at_all else None)
    return Parts(**{name: totals.get(name, absent) for name in PARTS})
