"""Recorded costs under another policy, round by round."""

from collections.abc import Callable

import pytest
from msgspec import structs

from coordinator.comparison import Recorded
from coordinator.controller import Weights
from coordinator.replay import replay, saving
from coordinator.simulator.boards import Throttling, VirtualBoard

Record = Callable[..., Recorded]
TIME = Weights(1.0, 0.0)
NOISY = (
    VirtualBoard("a", 100, 5, 3, noise=0.05, throttlings=(Throttling(8.0, 0.5),)),
    VirtualBoard("b", 25, 3, 2, noise=0.05),
    VirtualBoard("c", 60, 4, 1, noise=0.05, upload_seconds=0.5),
)


@pytest.mark.parametrize("policy", ["equal", "adaptive", "min-energy"])
def test_a_run_under_its_own_policy_is_the_run_itself(record: Record, policy: str) -> None:
    run = record("a", boards=NOISY, rounds=8, budget=600, policy=policy)
    found = replay(run, policy, {}, TIME)
    assert len(found.rounds) == 8
    for row in found.rounds:
        assert row.shares == row.recorded_shares
        assert row.makespan_seconds == pytest.approx(row.recorded_makespan_seconds)
        assert row.joules == pytest.approx(
            row.recorded_joules, rel=0.02
        )  # waits below a second: believed watts
        assert row.extrapolated == ()


def test_equal_replayed_as_time_only_needs_what_time_only_needed(record: Record) -> None:
    equal, time_only = record("eq", policy="equal"), record("ad")
    found = replay(equal, "time-only", {}, TIME)
    seconds, joules = saving(found)
    assert seconds is not None
    assert seconds < -0.4
    assert joules is not None
    assert joules < 0
    spans = [row["makespan_seconds"] for row in time_only.rounds]
    assert [row.makespan_seconds for row in found.rounds] == pytest.approx(spans)
    assert found.rounds[1].extrapolated == ("slow",)


def test_a_board_that_returned_nothing_in_a_round_returns_nothing_in_its_replay(record: Record) -> None:
    run = record("a")
    rows = tuple(r for r in run.boards if not (r["round"] == 2 and r["board"] == "slow"))
    found = replay(structs.replace(run, boards=rows), "equal", {}, TIME)
    assert found.rounds[1].makespan_seconds == pytest.approx(1.0)


def test_rounds_without_joules_are_left_out_of_the_sums_and_said(record: Record) -> None:
    bare = (VirtualBoard("a", 100, 5, 3, metered=False), VirtualBoard("b", 50, 5, 3))
    found = replay(record("a", boards=bare), "equal", {}, TIME)
    assert found.joules is None
    assert saving(found)[1] is None
    assert any("joules are known of 0 of 4 rounds" in note for note in found.notes)


def test_a_policy_of_another_regime_is_refused(record: Record) -> None:
    with pytest.raises(ValueError, match="omnilearn is for ddp, asp"):
        replay(record("a"), "omnilearn", {}, TIME)
