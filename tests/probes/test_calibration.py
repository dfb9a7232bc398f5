"""A channel scaled to a wall meter: the fit, the scaled channel beside the raw one, bad tables."""

from __future__ import annotations

import re
from dataclasses import replace
from pathlib import Path

import pytest

from probes._calibration import fit
from probes._outside import real_context
from probes._virtual import VirtualClock
from probes.meter import Meter
from tests.probes.scripted import Scripted, channel

VDD_IN = channel("ina/VDD_IN", scope="module")
TABLE: dict[str, object] = {
    "factor": 1.2,
    "offset_watts": 0.5,
    "date": "2026-11-30",
    "against": "shelly plug",
}


def test_a_varied_load_gives_slope_and_offset() -> None:
    raw = [2.0, 4.0, 6.0, 8.0]
    factor, offset, left = fit(raw, [1.15 * one + 0.6 for one in raw])
    assert (factor, offset, left) == pytest.approx((1.15, 0.6, 0.0))


def test_a_steady_load_gives_a_factor_alone() -> None:
    factor, offset, left = fit([5.0, 5.1, 4.9], [6.0, 6.12, 5.88])
    assert (factor, offset) == pytest.approx((1.2, 0.0))
    assert left < 0.001


@pytest.mark.parametrize("raw", [[], [5.0], [0.0, 0.0]])
def test_nothing_to_fit_is_refused(raw: list[float]) -> None:
    with pytest.raises(ValueError, match=r"two or more pairs|must show watts"):
        fit(raw, [5.0] * len(raw))


def test_the_scaled_channel_is_the_headline_and_the_raw_one_stays() -> None:
    clock = VirtualClock()
    context = real_context(Path("/nowhere"), {"calibration": {"ina/VDD_IN": TABLE}})
    meter = Meter(replace(context, clock=clock), [Scripted("ina", (VDD_IN, lambda now: 5.0))])
    meter.open()
    start = meter.mark()
    for _ in range(100):
        clock.advance(0.1)
        meter.sample()
    found = meter.window(start, meter.mark())
    assert (found.channel_id, found.scope, found.basis) == ("ina/VDD_IN@calibrated", "wall", "calibrated")
    assert found.joules == pytest.approx(65.0)
    assert meter.live().joules == pytest.approx(65.0)
    assert found.components == {"ina/VDD_IN": pytest.approx(50.0)}
    assert found.interval_seconds == pytest.approx(0.1)
    (shown,) = [one for one in meter.channels() if one.role == "headline"]
    assert shown.channel is not None
    assert shown.channel.source == "1.2 x ina/VDD_IN + 0.5 W, by shelly plug on 2026-11-30"


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"factor": "much"}, r"energy\.calibration\.\"ina/VDD_IN\"\.factor: 'much' is no number"),
        ({"date": None}, r"\.date is missing"),
        ({"offset_watts": True}, r"offset_watts: True is no number"),
        ({"scope": "roof"}, r"scope: 'roof' is none of wall"),
    ],
)
def test_a_bad_table_is_shown_and_stops_no_sensor(change: dict[str, object], said: str) -> None:
    context = real_context(Path("/nowhere"), {"calibration": {"ina/VDD_IN": {**TABLE, **change}}})
    meter = Meter(replace(context, clock=VirtualClock()), [Scripted("ina", (VDD_IN, lambda now: 5.0))])
    meter.open()
    assert meter.live().scope == "module"
    (fault,) = [one for one in meter.channels() if one.source == "calibration"]
    assert fault.status == "invalid"
    assert re.search(said, fault.reason)
