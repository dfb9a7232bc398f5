"""Counters: joules are never negative, never above plausible, and unknown rather than wrong."""

from __future__ import annotations

from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes import Channel, Sample
from probes._counter import CounterSeries, step
from tests.probes.traces import run

PACKAGE = Channel(
    id="powercap/package-0",
    kind="counter",
    scope="package",
    basis="measured",
    relative_uncertainty=0.05,
    source="test",
    resolution_joules=15.258e-6,
    range_joules=65532.610987,
    max_watts=500.0,
    moves_within_seconds=10.0,
)
PLUG = replace(
    PACKAGE,
    id="plug",
    scope="wall",
    resolution_joules=3.6,
    range_joules=None,
    max_watts=4000.0,
    back_step_joules=3603.6,
    moves_within_seconds=None,
    counts_suspend=True,
)


@pytest.mark.parametrize(
    ("channel", "before", "after", "seconds", "suspended", "joules", "kind"),
    [
        (PACKAGE, 100.0, 130.0, 1.0, False, 30.0, "ok"),
        (PACKAGE, 64930.873566, 10.0, 7.2, False, 611.737421, "wrap"),
        (PACKAGE, 64930.0, 10.0, 0.1, False, None, "reset"),  # 612 J in 0.1 s is no wrap
        (PACKAGE, 30000.0, 10.0, 30.0, False, None, "reset"),
        (PACKAGE, 100.0, 4000.0, 2400.0, False, None, "gap"),  # 40 minutes: it may have gone round
        (PACKAGE, 4000.0, 100.0, 2400.0, False, None, "gap"),
        (PACKAGE, 100.0, 60000.0, 30.0, False, None, "implausible"),
        (PACKAGE, 100.0, 130.0, 1.0, True, None, "suspend"),
        (replace(PACKAGE, range_joules=None), 64930.0, 10.0, 7.2, False, None, "reset"),
        (replace(PACKAGE, max_watts=None), 64930.0, 10.0, 7.2, False, None, "reset"),
        (PLUG, 1960515.0, 1960513.2, 1.0, False, 0.0, "back-step"),
        (PLUG, 1960515.0, 0.0, 1.0, False, None, "reset"),
        (PLUG, 1000.0, 1036.0, 10.0, True, 36.0, "ok"),  # a plug counts while the board sleeps
    ],
)
def test_a_step_is_known_only_where_nothing_else_explains_it(
    *,
    channel: Channel,
    before: float,
    after: float,
    seconds: float,
    suspended: bool,
    joules: float | None,
    kind: str,
) -> None:
    found = step(channel, before, after, seconds, suspended=suspended)
    assert found.kind == kind
    assert found.joules == (None if joules is None else pytest.approx(joules))


def test_random_traces_are_never_negative_never_above_plausible_and_unknown_rather_than_wrong() -> None:
    tally = run(20_000, seed=20)
    assert tally.traces == 20_000
    for met in (tally.known, tally.unknown, tally.wraps, tally.resets, tally.gaps, tally.suspends):
        assert met > 100, tally
    assert tally.back_steps > 20, tally


def at(seconds: float, value: float | None, *, slept: float = 0.0, channel: Channel = PACKAGE) -> Sample:
    status = "ok" if value is not None else "invalid"
    return Sample(channel.id, seconds, seconds + slept, value, "ok" if status == "ok" else "invalid", "why")


def series(channel: Channel, *samples: Sample) -> CounterSeries:
    made = CounterSeries(channel, 1000.0)
    for sample in samples:
        made.add(sample, 1.0)
    return made


def spent(made: CounterSeries, start: float, end: float) -> tuple[float, float, float]:
    first, last = made.level(start), made.level(end)
    assert first is not None
    assert last is not None
    return (
        last.known_joules - first.known_joules,
        last.filled_joules - first.filled_joules,
        last.covered_seconds - first.covered_seconds,
    )


def test_three_wraps_at_100_watts_polled_every_30_seconds_lose_nothing() -> None:
    made = CounterSeries(PACKAGE, 3000.0)
    for k in range(70):
        made.add(at(30.0 * k, 3000.0 * k % 65532.610987), 30.0)
    assert spent(made, 0.0, 69 * 30.0) == pytest.approx((69 * 3000.0, 0.0, 69 * 30.0))
    level = made.level(69 * 30.0)
    assert level is not None
    assert level.flags == {"wrap": 3}


def test_a_failed_read_costs_a_counter_nothing() -> None:
    made = series(PACKAGE, at(0, 0.0), at(1, 10.0), at(2, None), at(3, None), at(4, 40.0))
    assert spent(made, 0.0, 4.0) == pytest.approx((40.0, 0.0, 4.0))
    assert (made.status, made.reason) == ("ok", "")


def test_a_reset_costs_its_interval_and_no_more() -> None:
    made = series(PACKAGE, at(0, 500.0), at(1, 510.0), at(2, 1.0), at(3, 11.0))
    assert spent(made, 0.0, 3.0) == pytest.approx((20.0, 10.0, 2.0))
    level = made.level(3.0)
    assert level is not None
    assert level.flags == {"reset": 1}


def test_a_package_that_stands_still_is_frozen_and_not_0_joules() -> None:
    made = series(PACKAGE, at(0, 0.0), at(1, 10.0), *(at(2.0 + k, 10.0) for k in range(20)))
    known, _, covered = spent(made, 1.0, 21.0)
    assert (known, covered) == (0.0, 0.0)
    assert made.status == "frozen"
    assert "has not moved" in made.reason


def test_a_coarse_counter_may_stand_still_and_its_step_is_spread_over_the_time() -> None:
    samples = (at(float(k), 0.0 if k < 10 else 36.0, channel=PLUG) for k in range(11))
    made = series(PLUG, *samples)
    assert spent(made, 0.0, 10.0) == pytest.approx((36.0, 0.0, 10.0))
    assert spent(made, 0.0, 5.0) == pytest.approx((18.0, 0.0, 5.0))


@pytest.mark.parametrize("value", [-1.0, float("nan"), float("inf"), 1e9])
def test_a_value_that_no_counter_shows_is_invalid(value: float) -> None:
    made = series(PACKAGE, at(0, 0.0), at(1, value), at(2, 20.0))
    assert spent(made, 0.0, 2.0) == pytest.approx((20.0, 0.0, 2.0))
    made.add(at(3, value), 1.0)
    assert made.status == "invalid"


def test_old_readings_are_forgotten_and_memory_stays_bounded() -> None:
    made = CounterSeries(PACKAGE, 100.0)
    for second in range(10_000):
        made.add(at(second, second * 5.0 % 65532.0), 1.0)
    assert len(made.track.nodes) <= 103


@settings(max_examples=60, deadline=None)
@given(
    st.lists(st.tuples(st.floats(0.01, 50.0), st.floats(0.0, 400.0)), min_size=3, max_size=30),
    st.lists(st.floats(0.0, 1.0), min_size=1, max_size=5),
)
def test_any_cut_of_a_window_adds_up_to_it(steps: list[tuple[float, float]], cuts: list[float]) -> None:
    made = CounterSeries(PACKAGE, 1e6)
    now = joules = 0.0
    made.add(at(0.0, 0.0), 1.0)
    for seconds, watts in steps:
        now += seconds
        joules += watts * seconds
        made.add(at(now, joules % 65532.610987), 1.0)
    edges = [0.0, *sorted(cut * now for cut in cuts), now]
    parts = [sum(spent(made, start, end)[:2]) for start, end in pairwise(edges)]
    whole = sum(spent(made, 0.0, now)[:2])
    assert sum(parts) == pytest.approx(whole, rel=1e-9, abs=1e-6)
    assert all(one >= -1e-6 for one in parts)
