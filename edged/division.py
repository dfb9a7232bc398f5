"""How the window of synchronous steps is divided into parts: the split rule of ARCHITECTURE 7. Pure.

Steps are too short to be metered one by one, so their joules follow from the window's, the seconds of each
part, and the watts of waiting. A unit that is not known stays unknown.
"""

import math

from msgspec import Struct

from edged.messages import Part, Parts
from edged.work import Split

FLAG = "split-derived"
NO_WATTS = "the watts of waiting are not known yet: no stretch of 10 s without work"


class Divided(Struct, frozen=True):
    """A window's parts, and the uncertainty of the compute part's joules."""

    compute: Part
    communication: Part
    wait: Part
    overhead: Part
    uncertainty_joules: float | None = None


def divide(
    window: Part,
    split: Split,
    watts: float | None,
    window_uncertainty: float | None = None,
    watts_uncertainty: float | None = None,
) -> Divided:
    """e_compute = e_window - Pw x (t_wait + t_comm), clipped to [0, e_window].

    Seconds that are neither (the optimizer's steps) are overhead and share e_compute by their length.
    """
    aside = split.communication_seconds + split.wait_seconds
    rest = max(0.0, window.seconds - split.compute_seconds - aside)
    if window.joules is None or watts is None:
        return Divided(
            Part(split.compute_seconds, None),
            Part(split.communication_seconds, None),
            Part(split.wait_seconds, None),
            Part(rest, None),
        )
    waited = min(window.joules, watts * aside)
    active = window.joules - waited
    own = split.compute_seconds / (split.compute_seconds + rest) if split.compute_seconds > 0 else 0.0
    waiting = split.wait_seconds / aside if aside > 0 else 0.0
    uncertainty = None
    if window_uncertainty is not None and watts_uncertainty is not None:
        uncertainty = own * math.hypot(window_uncertainty, aside * watts_uncertainty)
    return Divided(
        Part(split.compute_seconds, active * own),
        Part(split.communication_seconds, waited * (1 - waiting)),
        Part(split.wait_seconds, waited * waiting),
        Part(rest, active * (1 - own)),
        uncertainty,
    )


def merged(parts: Parts, divided: Divided) -> Parts:
    """The order's parts with its window, so far all compute, divided."""
    return Parts(
        compute=divided.compute,
        communication=_sum(parts.communication, divided.communication),
        wait=_sum(parts.wait, divided.wait),
        lost=parts.lost,
        overhead=_sum(parts.overhead, divided.overhead),
    )


def _sum(one: Part, other: Part) -> Part:
    joules = None if one.joules is None or other.joules is None else one.joules + other.joules
    return Part(one.seconds + other.seconds, joules)
