"""Seconds and joules of the orders: the ledger's cuts with the meter's marks, and what a report says of them.

It decides nothing: which part runs when is the state machine's word.
"""

from __future__ import annotations

from typing import Protocol

from msgspec.structs import replace

from edged import division, messages
from edged.ledger import Boundary, Ledger, Span, parts
from edged.messages import Part, Parts, Steady
from edged.waiting import Waiting
from edged.work import Finished, Split
from probes._baseline import Baseline
from probes._energy import Energy, Live, Mark, MarkError

LATE = "late-mark"
HELD_UP = "the board was held up for longer than its meter remembers: what its computing used is lost"


class Metering(Protocol):
    """What is asked of a meter (`probes.meter.Meter`)."""

    def mark(self, at_seconds: float | None = None) -> Mark: ...

    def window(self, start: Mark, end: Mark) -> Energy: ...

    def live(self) -> Live: ...

    def new_run(self) -> None: ...

    def set_idle(self, start: Mark, end: Mark) -> Baseline: ...


class Books:
    """For one order at a time; the next opens at the instant at which the last closed."""

    def __init__(self, meter: Metering, waiting: Waiting | None = None) -> None:
        self._meter = meter
        self._waiting = waiting
        self._ledger: Ledger[Mark] | None = None
        self._last: Boundary[Mark] | None = None
        self._before: Live | None = None

    def open(self, order: str, at_seconds: float) -> None:
        """The order's time begins."""
        self._ledger = Ledger(order, self._boundary(at_seconds))
        self._before = self._meter.live()

    def enter(self, part: str | None, at_seconds: float) -> None:
        """Another part of the order's time runs from here on."""
        if self._ledger is not None and part != self._ledger.part:
            self._ledger = self._ledger.enter(part, self._boundary(at_seconds))

    def lose(self) -> None:
        """The order's compute so far is lost."""
        if self._ledger is not None:
            self._ledger = self._ledger.lose()

    def close(self) -> None:
        """The order's time has ended; its parts have been asked for."""
        self._ledger = None

    def parts(self, at_seconds: float, split: Split | None = None) -> Parts:
        """Where the order's time went until this instant; `split` divides a window of synchronous steps."""
        if self._ledger is None:
            return Parts()
        found = parts(self._ledger.until(self._boundary(at_seconds)), self._joules)
        if split is None or not self._compute():
            return found
        return division.merged(found, self._divided(found.compute, split, None))

    def order_joules(self) -> float | None:
        """The order's joules so far by the meter's last readings; None where they are not known, as when
        another sensor has become the headline."""
        before, now = self._before, self._meter.live()
        if self._ledger is None or before is None or before.headline_channel_id != now.headline_channel_id:
            return None
        if before.joules is None or now.joules is None:
            return None
        return max(0.0, now.joules - before.joules)

    def energy(self, split: Split | None = None) -> messages.Energy:
        """Joules of the compute window in the headline scope, or why they are not known; those of
        synchronous steps are derived (`division`)."""
        spans = self._compute()
        if not spans:
            return messages.Energy(reason="nothing was computed that counts")
        first, last = spans[0].start, spans[-1].stop
        try:
            found = self._meter.window(first.mark, last.mark)
        except MarkError as error:
            return messages.Energy(reason=str(error), flags=(LATE,))
        if _late(first) or _late(last):
            return messages.Energy(reason=HELD_UP, flags=(*found.flags, LATE))
        energy = messages.Energy(
            joules=found.joules,
            reason=found.reason,
            channel=found.channel_id or "",
            scope=found.scope or "",
            basis=found.basis or "",
            uncertainty_joules=found.uncertainty_joules,
            coverage=found.coverage,
            above_idle_joules=found.above_idle_joules,
            flags=found.flags,
        )
        return energy if split is None else self._derived(energy, split)

    def _derived(self, energy: messages.Energy, split: Split) -> messages.Energy:
        spans = self._compute()
        seconds = sum(span.seconds for span in spans)
        found = self._divided(Part(seconds, energy.joules), split, energy.uncertainty_joules)
        unknown = energy.joules is not None and found.compute.joules is None
        return replace(
            energy,
            joules=found.compute.joules,
            reason=division.NO_WATTS if unknown else energy.reason,
            uncertainty_joules=found.uncertainty_joules,
            above_idle_joules=None,
            flags=(*energy.flags, division.FLAG),
        )

    def _divided(self, window: Part, split: Split, uncertainty: float | None) -> division.Divided:
        waiting, spans = self._waiting.watts if self._waiting is not None else None, self._compute()
        try:
            scope = self._meter.window(spans[0].start.mark, spans[-1].stop.mark).scope
        except MarkError:
            scope = None
        if waiting is None or waiting.scope != scope:
            return division.divide(window, split, None)
        return division.divide(window, split, waiting.watts, uncertainty, waiting.uncertainty_watts)

    def steady(self, finished: Finished) -> Steady:
        """The compute window without a new process's first steps; without samples when it had no others."""
        spans = self._compute()
        if (
            not spans
            or finished.steady_samples == 0
            or finished.steady_at_seconds >= spans[-1].stop.at_seconds
        ):
            return Steady()
        split = finished.split
        if split is not None:
            joules = self.energy(split).joules
            part = split.steady_seconds / split.compute_seconds if split.compute_seconds > 0 else 0.0
            return Steady(
                samples=finished.steady_samples,
                seconds=split.steady_seconds,
                joules=None if joules is None else joules * part,
            )
        start, stop = spans[0].start, spans[-1].stop
        if finished.steady_at_seconds > start.at_seconds:
            start = self._boundary(finished.steady_at_seconds)
        return Steady(
            samples=finished.steady_samples,
            seconds=stop.at_seconds - start.at_seconds,
            joules=None if _late(start) or _late(stop) else self._joules(Span("compute", start, stop)),
        )

    def _compute(self) -> list[Span[Mark]]:
        spans = self._ledger.spans if self._ledger is not None else ()
        return [span for span in spans if span.part == "compute"]

    def _joules(self, span: Span[Mark]) -> float | None:
        try:
            return self._meter.window(span.start.mark, span.stop.mark).joules
        except MarkError:
            return None  # one of its marks is a late one

    def _boundary(self, at_seconds: float) -> Boundary[Mark]:
        """Two parts that meet share one mark, so that nothing is lost or counted twice between them."""
        if self._last is not None and self._last.at_seconds == at_seconds:
            return self._last
        try:
            mark = self._meter.mark(at_seconds)
        except MarkError:
            # The stamp is older than the meter's memory: the loop was held up that long. With the mark of now
            # the order's parts still add up, though those that meet here do not have their own joules.
            mark = self._meter.mark()
        self._last = Boundary(at_seconds, mark)
        return self._last


def _late(boundary: Boundary[Mark]) -> bool:
    return boundary.mark.monotonic_seconds > boundary.at_seconds
