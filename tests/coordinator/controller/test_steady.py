"""What every policy settles at on the invented fleet of eleven boards, to the printed digits."""

import pytest

from coordinator.controller import Policy, policies
from coordinator.controller.steady import Outcome, Truth, outcome, steady


def settled(name: str, fleet: tuple[Truth, ...], floor: int = 0, **given: object) -> Outcome:
    policy: Policy = policies.find(name)
    return steady(policy, policies.options(name, given), fleet, 60_000, floor=floor)


@pytest.mark.parametrize(
    ("name", "given", "floor", "row"),
    [
        ("equal", {}, 0, (129.87, 0.0, 6370, 0.0, 79.1, 0.755)),
        ("time-only", {}, 0, (30.27, -76.7, 3557, -44.2, 0.0, 0.000)),
        ("low-energy", {}, 0, (38.76, -70.2, 3688, -42.1, 3.7, 0.156)),
        ("balanced", {}, 0, (46.67, -64.1, 3854, -39.5, 8.4, 0.250)),
        ("adaptive", {"w_e": 0.75}, 0, (55.31, -57.4, 4057, -36.3, 14.1, 0.329)),
        ("energy-only", {}, 0, (65.60, -49.5, 4312, -32.3, 21.2, 0.409)),
        ("min-energy", {"slack": None}, 0, (48.39, -62.7, 3305, -48.1, -7.1, 0.913)),
        ("min-energy", {"slack": None}, 64, (48.13, -62.9, 3311, -48.0, -6.9, 0.882)),
    ],
)
def test_the_table_of_the_specification(
    eleven: tuple[Truth, ...],
    name: str,
    given: dict[str, object],
    floor: int,
    row: tuple[float, ...],
) -> None:
    """Makespan, against equal; joules, against equal, against time-only; variation of the times."""
    found = settled(name, eleven, floor, **given)
    equal, time_only = settled("equal", eleven), settled("time-only", eleven)
    assert row == (
        round(found.seconds, 2),
        round(100 * (found.seconds / equal.seconds - 1), 1),
        round(found.joules),
        round(100 * (found.joules / equal.joules - 1), 1),
        round(100 * (found.joules / time_only.joules - 1), 1),
        round(found.variation, 3),
    )


@pytest.mark.parametrize(
    ("scale", "time_only", "low_energy", "energy_only"),
    [(0.33, -27.9, 0.3, 6.6), (0.5, -32.8, 1.1, 10.3), (0.8, -40.1, 2.7, 16.9), (1.5, -52.2, 6.2, 32.1)],
)
def test_waiting_power_decides_how_much_time_only_saves(
    eleven: tuple[Truth, ...], scale: float, time_only: float, low_energy: float, energy_only: float
) -> None:
    fleet = tuple(
        Truth(t.board, t.samples_per_second, t.active_watts, scale * t.waiting_watts) for t in eleven
    )
    # At 1.5 the note prints 6.3 for low-energy; the exact value is 6.247.
    equal, fast = settled("equal", fleet).joules, settled("time-only", fleet).joules
    assert round(100 * (fast / equal - 1), 1) == time_only
    assert round(100 * (settled("low-energy", fleet).joules / fast - 1), 1) == low_energy
    assert round(100 * (settled("energy-only", fleet).joules / fast - 1), 1) == energy_only


def test_the_profile_and_the_proportional_rules_settle_where_time_only_does(
    eleven: tuple[Truth, ...],
) -> None:
    fast = settled("time-only", eleven)
    for name in ("profiled", "ema-batch", "omnilearn"):
        assert settled(name, eleven).shares == pytest.approx(fast.shares, rel=1e-5)


def test_slack_and_a_cap_on_joules_meet_on_the_front(eleven: tuple[Truth, ...]) -> None:
    slack = settled("min-energy", eleven, 64, slack=1.10)
    capped = settled("min-time", eleven, 64, joules=slack.joules)
    assert slack.seconds == pytest.approx(1.10 * settled("time-only", eleven).seconds, rel=1e-6)
    assert capped.seconds == pytest.approx(slack.seconds, rel=1e-6)


def test_boards_left_out_still_wait_for_joules(eleven: tuple[Truth, ...]) -> None:
    found = settled("oort", eleven)
    idle = [t for t, n in zip(eleven, found.shares, strict=True) if n == 0]
    assert len(idle) == 3
    assert found.wait_joules >= sum(t.waiting_watts for t in idle) * found.seconds


def test_fixed_costs_are_in_the_makespan_and_in_the_joules() -> None:
    fleet = (Truth("a", 100, 5, 1, fixed_seconds=2), Truth("b", 50, 4, 1))
    found = outcome(fleet, (400, 200))
    assert found.times == (6, 4)
    assert (found.seconds, found.joules, found.wait_joules) == (6, 6 * 5 + 4 * 4 + 2 * 1, 2)
    settled_there = steady(policies.find("time-only"), policies.options("time-only", {}), fleet, 600)
    assert settled_there.times == pytest.approx((8 / 1.5, 8 / 1.5))


@pytest.mark.parametrize(
    "wrong", [(0, 5, 1), (-1, 5, 1), (float("nan"), 5, 1), (10, -5, 1), (10, 5, float("inf"))]
)
def test_a_board_that_cannot_be_is_refused_by_name(wrong: tuple[float, float, float]) -> None:
    with pytest.raises(ValueError, match="slowpoke: "):
        Truth("slowpoke", *wrong)
