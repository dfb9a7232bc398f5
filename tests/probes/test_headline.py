"""Which joules are the headline, what stands beside it, and that it does not change unseen."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest

from probes._files import Trouble
from probes.meter import Options, Preferences
from tests.probes.bench import DRAM, PACKAGE, VDD_IN, WALL, Bench, counting, steady
from tests.probes.scripted import Scripted, Value, channel


def test_package_and_dram_of_all_sockets_are_one_headline() -> None:
    second = channel("cpu/package-1", "counter", "package", range_joules=65532.6, max_watts=500.0)
    bench = Bench(
        Scripted("cpu", (PACKAGE, counting(40.0)), (DRAM, counting(5.0)), (second, counting(30.0, 65532.6)))
    )
    start = bench.meter.mark()
    found = bench.window(start, bench.run(20.0))
    assert found.joules == pytest.approx(20 * 75.0)
    assert found.scope == "package+dram"


def test_other_scopes_stand_beside_the_headline_and_are_not_added() -> None:
    bench = Bench(
        Scripted("x", (WALL, steady(12.0)), (VDD_IN, steady(5.0))), Scripted("cpu", (PACKAGE, counting(3.0)))
    )
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert found.channel_id == "plug/wall"
    assert found.joules == pytest.approx(120.0)
    assert found.components == {"ina/VDD_IN": pytest.approx(50.0), "cpu/package-0": pytest.approx(30.0)}


def test_nothing_measures_is_none_with_a_reason_and_never_zero() -> None:
    bench = Bench(Scripted("cpu", (PACKAGE, lambda now: Trouble("denied", "energy_uj: not permitted"))))
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert (found.joules, found.partial_joules, found.scope, found.basis) == (None, None, None, None)
    assert "cpu/package-0 is denied: energy_uj: not permitted" in found.reason
    (shown,) = bench.meter.channels()
    assert (shown.status, shown.remedy, shown.role) == ("denied", "the way out", "unavailable")


def test_an_unreadable_socket_leaves_no_sum_that_lacks_it() -> None:
    second = channel("cpu/package-1", "counter", "package", max_watts=500.0)
    bench = Bench(Scripted("cpu", (PACKAGE, counting(40.0)), (second, lambda now: Trouble("denied", "no"))))
    assert bench.meter.live().headline_channel_id is None


def test_a_lost_headline_is_told_and_its_scope_does_not_change_in_silence() -> None:
    probe = Scripted("x", (VDD_IN, steady(5.0)), (PACKAGE, counting(3.0)))
    bench = Bench(probe)
    probe.plan = [entry for entry in probe.plan if entry[0] is not VDD_IN]
    start = bench.meter.mark()
    lost = bench.window(start, bench.run(10.0))
    assert lost.joules is None
    bench.meter.look_again()
    start = bench.meter.mark()
    other = bench.window(start, bench.run(10.0))
    assert other.scope == "package"
    assert other.joules == pytest.approx(30.0)
    assert "scope-change" in other.flags
    assert "ina/VDD_IN is lost" in other.reason
    probe.plan.append((VDD_IN, steady(5.0)))
    bench.run(1.0)
    bench.meter.look_again()
    start = bench.meter.mark()
    back = bench.window(start, bench.run(10.0))
    assert (back.scope, back.flags) == ("module", ())
    assert back.joules == pytest.approx(50.0)


def test_a_sensor_that_appears_later_is_found_and_does_not_take_over_the_run() -> None:
    probe = Scripted("x", (VDD_IN, steady(5.0)))
    bench = Bench(probe)
    probe.plan.append((WALL, steady(12.0)))
    bench.meter.look_again()
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert (found.scope, found.flags) == ("module", ())
    assert found.components["plug/wall"] == pytest.approx(120.0)
    bench.meter.new_run()
    start = bench.meter.mark()
    assert bench.window(start, bench.run(10.0)).scope == "wall"


COUNTER = channel(
    "plug/wall/energy", "counter", "wall", resolution_joules=36000.0, twin="plug/wall/power", meter_id="plug"
)


POWER = channel("plug/wall/power", "power", "wall", twin="plug/wall/energy", meter_id="plug")


def test_a_plugs_counter_counts_where_it_took_enough_steps() -> None:
    """36 kJ a step: watts for a round, the counter for a window of days."""
    coarse: Value = lambda now: 60.0 * now // 36000.0 * 36000.0  # noqa: E731
    bench = Bench(
        Scripted("plug", (COUNTER, coarse), (POWER, steady(60.0))),
        period=10.0,
        options=Options(power_seconds=10.0),
    )
    start = bench.meter.mark()
    short = bench.run(600.0)
    assert bench.meter.measure(start, short).channel_id == "plug/wall/power"
    assert bench.window(start, short).channel_id == "plug/wall/power"
    fine = replace(COUNTER, resolution_joules=3.6)
    bench = Bench(Scripted("plug", (fine, counting(60.0)), (POWER, steady(60.0))))
    start = bench.meter.mark()
    found = bench.window(start, bench.run(30.0))
    assert found.channel_id == "plug/wall/energy"
    assert found.joules == pytest.approx(1800.0)
    assert found.meter_id == "plug"
    tiny = bench.run(0.5)
    assert bench.meter.measure(bench.meter.mark(30.0), tiny).channel_id == "plug/wall/power"


def test_two_dies_that_show_one_counter_are_counted_once() -> None:
    first = channel("cpu/package-0-die-0", "counter", "package", max_watts=500.0)
    second = channel("cpu/package-0-die-1", "counter", "package", max_watts=500.0, may_mirror=first.id)
    for other, joules in ((counting(40.0), 400.0), (counting(25.0), 650.0)):
        bench = Bench(Scripted("cpu", (first, counting(40.0)), (second, other)))
        start = bench.meter.mark()
        found = bench.window(start, bench.run(10.0))
        assert found.joules == pytest.approx(joules)
        assert found.flags == ()


def test_dies_are_flagged_until_both_have_moved() -> None:
    first = channel("cpu/package-0-die-0", "counter", "package", max_watts=500.0)
    second = channel("cpu/package-0-die-1", "counter", "package", max_watts=500.0, may_mirror=first.id)
    bench = Bench(Scripted("cpu", (first, counting(4.0)), (second, counting(4.0))))
    start = bench.meter.mark()
    assert "die-undecided" in bench.window(start, bench.run(1.0)).flags


def test_psys_is_counted_on_request_only() -> None:
    psys = channel("cpu/psys", "counter", "platform", headline=False)
    for wanted, scope in ((False, "package"), (True, "package")):
        options = Options(preferences=Preferences(count_psys=wanted))
        assert (
            Bench(Scripted("cpu", (psys, counting(9.0)), (PACKAGE, counting(3.0))), options=options)
            .meter.live()
            .scope
            == scope
        )
    options = Options(preferences=Preferences(prefer=("cpu/psys",)))
    assert (
        Bench(Scripted("cpu", (psys, counting(9.0)), (PACKAGE, counting(3.0))), options=options)
        .meter.live()
        .scope
        == "platform"
    )
    assert Bench(Scripted("cpu", (psys, counting(9.0)))).meter.live().scope is None
    options = Options(preferences=Preferences(count_psys=True))
    assert Bench(Scripted("cpu", (psys, counting(9.0))), options=options).meter.live().scope == "platform"


def test_an_input_sensor_that_stands_still_while_a_part_moves_is_frozen() -> None:
    rail = channel("ina/VDD_CPU", scope="rail", headline=False)
    probe = Scripted(
        "ina", (VDD_IN, lambda now: 5.0 if now < 85.0 else 7.0), (rail, lambda now: 1.0 + 2.0 * (now > 30))
    )
    bench = Bench(probe)
    bench.run(70.0)
    bench.meter.look_again()
    start = bench.meter.mark()
    found = bench.window(start, bench.run(10.0))
    assert (found.joules, found.coverage) == (None, 0.0)
    shown = {one.source: one for one in bench.meter.channels()}
    assert shown["ina/VDD_IN"].status == "frozen"
    assert "while ina/VDD_CPU moved by 2.0 W" in shown["ina/VDD_IN"].reason
    bench.run(10.0)
    bench.meter.look_again()
    start = bench.meter.mark()
    assert bench.window(start, bench.run(10.0)).joules == pytest.approx(70.0)


def test_a_steady_board_is_not_called_frozen() -> None:
    rail = channel("ina/VDD_CPU", scope="rail", headline=False)
    bench = Bench(Scripted("ina", (VDD_IN, steady(5.0)), (rail, lambda now: 1.0 + 0.2 * math.sin(now))))
    bench.run(90.0)
    bench.meter.look_again()
    assert bench.meter.live().watts == pytest.approx(5.0)
