"""The meter in virtual time: windows add up, gaps are told, past instants are placed."""

from __future__ import annotations

import math
from dataclasses import replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from probes import Context
from probes._virtual import VirtualClock
from probes.emulated import Activity
from probes.emulated import create as emulated
from probes.meter import MarkError, Meter, Options
from tests.probes.bench import PACKAGE, VDD_IN, WALL, Bench, context, counting, down, steady
from tests.probes.scripted import Scripted


def test_a_steady_load_over_a_window_is_watts_times_seconds() -> None:
    bench = Bench(Scripted("ina", (VDD_IN, steady(5.0))))
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert found.joules == pytest.approx(50.0)
    assert (found.scope, found.basis, found.channel_id) == ("module", "measured", "ina/VDD_IN")
    assert (found.coverage, found.flags) == (1.0, ())
    assert found.uncertainty_joules == pytest.approx(1.0, rel=0.01)  # 2 % of it
    assert found.above_idle_joules is None


@settings(max_examples=40, deadline=None)
@given(
    st.lists(st.floats(0.0, 30.0), min_size=1, max_size=8),
    st.sampled_from(["power", "counter", "gap", "reset"]),
)
def test_any_round_split_at_any_instants_adds_up(cuts: list[float], kind: str) -> None:
    values = {
        "power": (VDD_IN, lambda now: 5.0 + 4.0 * math.sin(now)),
        "counter": (PACKAGE, counting(40.0, 65532.6)),
        "gap": (VDD_IN, down(lambda now: 6.0 + math.sin(now), 11.0, 12.0)),
        "reset": (PACKAGE, lambda now: 40.0 * now + 500.0 if now < 11.0 else 40.0 * (now - 11.0)),
    }
    bench = Bench(Scripted("x", values[kind]))
    start = bench.meter.mark()
    end = bench.run(30.0)
    marks = [start, *(bench.meter.mark(cut) for cut in sorted(cuts)), end]
    whole = bench.window(start, end)
    parts = [bench.window(first, last) for first, last in pairwise(marks)]
    assert whole.joules is not None
    known = [one.joules if one.joules is not None else None for one in parts]
    if all(one is not None for one in known):
        assert math.fsum(one for one in known if one is not None) == pytest.approx(
            whole.joules, rel=1e-12, abs=1e-9
        )
    else:
        assert kind in ("gap", "reset")
        assert all(one.joules is not None or one.coverage < 0.95 for one in parts)
    assert sum(one.seconds for one in parts) == pytest.approx(30.0)


def test_a_past_instant_lies_between_the_readings_around_it() -> None:
    bench = Bench(Scripted("ina", (VDD_IN, lambda now: 3.0 if now < 5.0 else 9.0)))
    start = bench.meter.mark()
    bench.run(10.0)
    edge = bench.meter.mark(4.0)
    end = bench.meter.mark()
    assert bench.window(start, edge).joules == pytest.approx(12.0)
    assert bench.window(edge, end).joules == pytest.approx(3.0 + 45.0, abs=0.35)


@pytest.mark.parametrize(
    ("at", "said"), [(200.0, "200 s"), (1.0, "are gone: mark sooner, or raise history_seconds")]
)
def test_an_instant_that_cannot_be_placed_is_refused(at: float, said: str) -> None:
    bench = Bench(Scripted("ina", (VDD_IN, steady(5.0))), options=Options(history_seconds=20.0))
    bench.run(100.0)
    with pytest.raises(MarkError, match=said if at == 1.0 else "ahead of CLOCK_MONOTONIC"):
        bench.meter.mark(at)


def test_a_window_that_ends_before_it_starts_is_refused() -> None:
    bench = Bench(Scripted("ina", (VDD_IN, steady(5.0))))
    start = bench.meter.mark()
    end = bench.run(1.0)
    with pytest.raises(MarkError, match="ends 1"):
        bench.window(end, start)


@pytest.mark.parametrize(("missing", "joules"), [(1.0, 150.0), (5.0, None)])
def test_a_gap_is_filled_when_small_and_unknown_when_not(missing: float, joules: float | None) -> None:
    bench = Bench(Scripted("ina", (VDD_IN, down(steady(5.0), 10.0, 10.0 + missing))))
    start = bench.meter.mark()
    found = bench.window(start, bench.run(30.0))
    assert found.joules == (None if joules is None else pytest.approx(joules))
    assert found.coverage == pytest.approx(1 - (missing + 0.1) / 30, abs=0.01)
    assert found.partial_joules == pytest.approx(5.0 * (30 - missing - 0.1), abs=0.6)
    assert "gap" in found.flags
    assert ("gap-filled" in found.flags) == (joules is not None)
    if joules is None:
        assert "ina/VDD_IN was measured for 8" in found.reason


def test_a_suspend_makes_a_boards_own_window_unknown_and_not_a_plugs() -> None:
    for scope, known in ((VDD_IN, False), (PACKAGE, False), (WALL, True)):
        value = counting(5.0) if scope.kind == "counter" else steady(5.0)
        bench = Bench(Scripted("x", (scope, value)))
        start = bench.meter.mark()
        bench.run(1.0)
        bench.clock.sleep(3600.0)
        found = bench.window(start, bench.run(1.0))
        assert (found.joules is not None) == known
        assert "suspend" in found.flags


def test_the_idle_baseline_is_a_second_figure_and_never_taken_off() -> None:
    bench = Bench(Scripted("ina", (VDD_IN, lambda now: 2.0 if now < 40.0 else 7.0)))
    start = bench.meter.mark()
    idle = bench.run(35.0)
    assert bench.meter.set_idle(start, idle).watts == pytest.approx(2.0)
    bench.run(10.0)
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert found.joules == pytest.approx(70.0)
    assert found.above_idle_joules == pytest.approx(50.0)
    bench.clock.advance(90_000.0)
    start = bench.meter.mark()
    assert bench.window(start, bench.run(10.0)).above_idle_joules is None  # a day later it no longer holds


@pytest.mark.parametrize("seconds", [10.0, 0.0])
def test_too_short_an_idle_stretch_is_no_baseline(seconds: float) -> None:
    bench = Bench(Scripted("ina", (VDD_IN, steady(2.0))))
    start = bench.meter.mark()
    with pytest.raises(MarkError, match="too short for an idle baseline"):
        bench.meter.set_idle(start, bench.run(seconds))


def test_an_emulated_board_is_the_exact_integral_of_what_it_did() -> None:
    """Training begins and ends between readings, and the meter is told of it later."""
    clock, activity = VirtualClock(), Activity()
    options: dict[str, object] = {"board": "rpi4", "wait_watts": 1.6, "train_watts": 5.0}
    meter = Meter(replace(context(clock, emulated=options), activity=activity), [emulated()])
    meter.open()
    start = meter.mark()
    clock.advance(12.3456)
    activity.begin(2.25)
    activity.end(9.125)
    begin, end = meter.mark(2.25), meter.mark(9.125)
    stop = meter.mark()
    assert meter.window(start, begin).joules == pytest.approx(1.6 * 2.25)
    assert meter.window(begin, end).joules == pytest.approx(5.0 * 6.875)
    assert meter.window(end, stop).joules == pytest.approx(1.6 * (12.3456 - 9.125))
    assert meter.window(start, stop).basis == "emulated"


def test_live_shows_every_channel_and_reads_nothing() -> None:
    reads: list[float] = []

    def value(now: float) -> float:
        reads.append(now)
        return 5.0

    bench = Bench(Scripted("x", (VDD_IN, value), (PACKAGE, counting(3.0))))
    bench.run(2.0)
    before = len(reads)
    live = bench.meter.live()
    assert len(reads) == before
    assert live.watts == pytest.approx(5.0)
    assert live.joules == pytest.approx(10.0)
    assert [(one.channel_id, one.headline) for one in live.channels] == [
        ("ina/VDD_IN", True),
        ("cpu/package-0", False),
    ]
    assert live.channels[1].watts == pytest.approx(3.0)


def test_a_probe_that_raises_is_a_status_and_the_others_go_on(clock: VirtualClock) -> None:
    class Broken:
        name = "broken"

        def detect(self, context: Context) -> list[object]:
            raise RuntimeError("no such bus")

    def fails(now: float) -> float:
        if now > 1.0:
            raise ZeroDivisionError
        return 5.0

    unopened = Scripted("late", (replace(WALL, id="late/wall"), steady(9.0)))
    unopened.open = lambda context, channels: 1 / 0  # type: ignore[method-assign,assignment,return-value]
    words = Scripted("words", (replace(WALL, id="words/wall"), lambda now: "much" if now > 0 else 9.0))  # type: ignore[arg-type,return-value]
    others = (Scripted("x", (VDD_IN, fails)), Scripted("cpu", (PACKAGE, counting(3.0))))
    bench = Bench(Broken(), unopened, words, *others)  # type: ignore[arg-type]
    bench.run(2.0)
    shown = {one.source: one for one in bench.meter.channels()}
    assert shown["broken"].reason == "RuntimeError: no such bus"
    assert shown["late/wall"].reason == "does not open: ZeroDivisionError: division by zero"
    assert shown["words/wall"].status == "invalid"
    assert (shown["ina/VDD_IN"].status, shown["ina/VDD_IN"].reason) == ("invalid", "ZeroDivisionError: ")
    assert shown["cpu/package-0"].status == "ok"
