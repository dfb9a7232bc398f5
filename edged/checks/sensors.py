"""Which joules this board gives: each channel as the meter judges it, and pyRAPL beside powercap."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

from edged.checks import Finding
from probes import Channel, Context, Reader
from probes.meter import Found
from probes.powercap import Powercap
from probes.pyrapl import create, disagreement

A_BETTER_ONE = "a metered plug in [energy.plug] measures all of it (docs/energy.md)"
CROSS_CHECK_SECONDS = 1.0


def examine(found: Sequence[Found], reason: str, asked: Sequence[str] = ()) -> Iterator[Finding]:
    """One line a channel, the headline last with its `reason`. `asked` are probes that the settings name."""
    headline = [one for one in found if one.role == "headline"]
    for one in found:
        if one in headline:
            continue
        name = f"sensor {one.source}"
        if one.status == "ok":
            watts = "" if one.watts is None else f", {one.watts:.2f} W now"
            yield Finding(name, "ok", f"{_covers(one.channel)}{watts}; {one.why}", one.remedy)
            continue
        wanted = one.source.replace(":", "/").split("/")[0] in asked
        if one.status == "absent" and headline and not wanted:
            continue  # that a board lacks one of many sensors is no news while another gives its joules
        yield Finding(
            name, "fail" if wanted else "warn", f"{one.status}: {one.reason or one.why}", one.remedy
        )
    if not headline:
        yield Finding(
            "joules",
            "warn",
            f"none: {reason}",
            _first_remedy(found) or f"{A_BETTER_ONE}; or [energy.estimate]",
        )
        return
    scope = "+".join(dict.fromkeys(one.channel.scope for one in headline if one.channel))
    basis = next(one.channel.basis for one in headline if one.channel)
    uncertainty = max(one.channel.relative_uncertainty for one in headline if one.channel)
    sources = "+".join(one.source for one in headline)
    text = f"{sources} ({scope}, {basis}, +-{100 * uncertainty:.0f} %): {reason}"
    yield Finding("joules", "ok", text, A_BETTER_ONE if basis == "estimated" else "")


def cross_check(context: Context, sleep: Callable[[float], None] = time.sleep) -> Iterator[Finding]:
    """The processor's joules over one interval by pyRAPL and by powercap; nothing where one is not there."""
    context = replace(context, options={**context.options, "pyrapl": {"enabled": True}})
    mine = {
        one.channel.id: one.channel
        for one in Powercap().detect(context)
        if one.channel and one.status == "ok"
    }
    found = create().detect(context) if mine else []
    theirs = {one.channel.id: one.channel for one in found if one.channel and one.status == "ok"}
    pairs = [
        (mine[name], other)
        for other in theirs.values()
        if (name := f"powercap/{other.id.split('/')[1]}") in mine
    ]
    for one in found:
        if one.status not in ("ok", "absent"):
            yield Finding("pyRAPL", "warn", f"{one.source}: {one.reason}", one.remedy)
    for channel, other in pairs:
        own, second = Powercap().open(context, [channel])[0], create().open(context, [other])[0]
        try:
            first = _sandwich(own, second)
            sleep(CROSS_CHECK_SECONDS)
            last = _sandwich(own, second)
        finally:
            own.close()
            second.close()
        yield _compared(channel, first, last)


Sandwich = tuple["float | None", "float | None", "float | None"]


def _sandwich(own: Reader, second: Reader) -> Sandwich:
    """Powercap before and after pyRAPL: the one counter that both read lies between."""
    before, between, after = (one.read()[0].value for one in (own, second, own))
    return before, between, after


def _compared(channel: Channel, first: Sandwich, last: Sandwich) -> Finding:
    name = f"pyRAPL {channel.id}"
    if None in first or None in last:
        return Finding(name, "warn", "a reading failed on the way")
    (a0, b0, c0), (a1, b1, c1) = ([value or 0.0 for value in one] for one in (first, last))
    around = channel.range_joules or 0.0

    def since(start: float, end: float) -> float:
        return end - start if end >= start else end - start + around

    spread = (since(a0, c0) + since(a1, c1)) / 2
    powercap = since(a0, a1) + (since(a1, c1) - since(a0, c0)) / 2
    words = disagreement(since(b0, b1), powercap, (channel.resolution_joules or 0.0) + spread)
    if words:
        return Finding(name, "warn", words, "believe powercap: pyRAPL 0.2.3.1 knows neither wraps nor dies")
    return Finding(name, "ok", f"agrees with powercap: {powercap:.3f} J in {CROSS_CHECK_SECONDS:g} s")


def _covers(channel: Channel | None) -> str:
    return "" if channel is None else f"{channel.scope}, {channel.basis}"


def _first_remedy(found: Sequence[Found]) -> str:
    return next((one.remedy for one in found if one.remedy), "")
