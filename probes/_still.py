"""PURE. A power sensor that shows one value for ever: dead, when a part of what it measures has moved."""

from __future__ import annotations

from collections.abc import Iterable

from probes._power import PowerSeries

STILL_SECONDS = 60.0
LEAST_WATTS = 1.0  # the part must have moved by this and by a tenth of what stood still
LEAST_SHARE = 0.1
WIDE = ("wall", "dc_in", "battery", "module")  # what holds the rest of the board


def dead(series: Iterable[PowerSeries], now: float) -> dict[str, str]:
    """Why a channel is frozen, by its id. Rails are not judged: one that is off shows 0 for good reason."""
    found = {}
    every = [one for one in series if one.status == "ok"]
    for one in every:
        value = one.value
        if one.channel.scope not in WIDE or value is None or now - one.changed_at < STILL_SECONDS:
            continue
        for other in every:
            if other.channel.scope in WIDE:
                continue
            watts = [
                node.watts
                for node in other.track.nodes
                if node.at >= now - STILL_SECONDS and node.watts is not None
            ]
            moved = max(watts, default=0.0) - min(watts, default=0.0)
            if moved >= max(LEAST_WATTS, LEAST_SHARE * value):
                seconds = now - one.changed_at
                found[one.channel.id] = (
                    f"shows {value:g} W for {seconds:.0f} s while {other.channel.id} moved by {moved:.1f} W"
                )
    return found
