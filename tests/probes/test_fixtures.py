"""Every recorded machine is judged as its own `expect` says; a word in it that nothing judges fails."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from tests.probes import judges
from tests.probes.machines import FIXTURES, recorded
from tests.probes.recorded_machine import Machine

JUDGES: Mapping[str, judges.Judge] = {
    "board_watts": judges.watts_are,
    "calibrated": judges.basis_is,
    "channels": judges.packages_are,
    "channels_if_readable": judges.if_readable,
    "check": judges.inside_package,
    "default_excludes": judges.left_out,
    "disabled": judges.disabled,
    "dram_flag": judges.dram_flagged,
    "fallback": judges.falls_back,
    "fit_watts": judges.watts_are,
    "joules_total": judges.joules_are,
    "kind": judges.kind_is,
    "measured": judges.nothing_measured,
    "not_added": judges.not_added,
    "package_index_is_not_zone_index": judges.by_name,
    "probe": judges.probe_is,
    "psys_resolution_j": judges.known_elsewhere,
    "rail_sum_watts": judges.rail_sum_is,
    "rails_are_parallel_unknown": judges.parallel_unknown,
    "reason": judges.reason_is,
    "reject": judges.rejects,
    "resets": judges.resets,
    "resolution_j": judges.step_is,
    "scope": judges.scope_is,
    "seconds_to_wrap_at_85W": judges.wraps_after,
    "total": judges.total_is,
    "total_channels": judges.packages_are,
    "usable": judges.unusable,
    "usable_only_if": judges.usable_only,
    "watts": judges.watts_are,
    "watts_idle_A": judges.watts_of("idle A"),
    "watts_load": judges.watts_of("load"),
    "watts_tx1": judges.watts_of("TX1"),
    "watts_tx2": judges.watts_of("TX2"),
    "wrap_seconds_at_130W": judges.wrap_time,
}

NAMES = sorted(path.stem for path in FIXTURES.glob("*.json"))


@pytest.mark.skipif(not NAMES, reason=f"no recorded machines at {FIXTURES}")
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_machine_is_judged_as_it_expects(name: str, tmp_path: Path) -> None:
    record = recorded(name)
    expect = record.get("expect", {})
    assert set(expect) <= set(JUDGES), "an expectation that nothing judges"
    machine = Machine(record, tmp_path)
    for word, told in expect.items():
        JUDGES[word](machine, told)
    machine.meter.close()


@pytest.mark.skipif(not NAMES, reason=f"no recorded machines at {FIXTURES}")
@pytest.mark.parametrize("name", NAMES)
def test_a_recorded_machine_never_shows_an_unknown_as_zero(name: str, tmp_path: Path) -> None:
    machine = Machine(recorded(name), tmp_path)
    for one in machine.meter.channels():
        if one.status != "ok":
            assert one.watts is None
            assert one.reason
        assert one.why
    machine.meter.close()
