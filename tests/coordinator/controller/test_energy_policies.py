"""min-energy and min-time: what they decide, what they say, and what they do when too little is known."""

import msgspec
import pytest

from coordinator.controller import Allocation, Member, Memory, Pool, policies
from coordinator.controller.policies import min_energy, min_time
from coordinator.controller.steady import Truth, known, outcome

FREE = min_energy.Options(slack=None)


def pool(fleet: tuple[Truth, ...], budget: int, previous: list[int] | None = None, floor: int = 1) -> Pool:
    given: list[int | None] = [*previous] if previous else [None] * len(fleet)
    members = tuple(known(t, floor=floor, previous=n) for t, n in zip(fleet, given, strict=True))
    return Pool(members, budget, 5)


def blind(member: Member) -> Member:
    """The same board without waiting watts."""
    assert member.memory is not None
    return msgspec.structs.replace(member, memory=msgspec.structs.replace(member.memory, waiting_watts=None))


def test_the_dear_board_gets_its_floor_and_the_reason_says_what_it_buys(three: tuple[Truth, ...]) -> None:
    found = min_energy.allocate(pool(three, 1000), FREE)
    assert found.shares == {"a": 666, "b": 333, "c": 1}
    assert found.reason.startswith(
        "fewest joules at 0.666 s (1.17 x the fastest), 4.8 % below time-only; "
        "2 of 3 boards above their floor: a, b; new shares: a had no share"
    )
    truth = outcome(three, [666, 333, 1])
    assert found.predicted_joules == pytest.approx(truth.joules)
    assert found.predicted_wait_joules == pytest.approx(truth.wait_joules)


def test_slack_bounds_the_makespan(eleven: tuple[Truth, ...]) -> None:
    fastest = 60_000 / sum(t.samples_per_second for t in eleven)
    for slack in (1.0, 1.05, 1.10, 1.2):
        found = min_energy.allocate(pool(eleven, 60_000, floor=64), min_energy.Options(slack=slack))
        assert outcome(eleven, list(found.shares.values())).seconds <= slack * fastest * 1.001


def test_a_cap_on_joules_is_kept_and_an_impossible_one_is_said(eleven: tuple[Truth, ...]) -> None:
    found = min_time.allocate(pool(eleven, 60_000), min_time.Options(joules=3450))
    assert outcome(eleven, list(found.shares.values())).joules == pytest.approx(3450, rel=1e-3)
    assert found.reason.startswith("shortest round within 3450 J: 32.2 s, 1.06 x the fastest")
    found = min_time.allocate(pool(eleven, 60_000), min_time.Options(joules=3000))
    assert found.reason.startswith("no split needs at most 3000 J, the cheapest 3305 J")


def test_shares_stay_while_the_gain_is_inside_the_deadband(three: tuple[Truth, ...]) -> None:
    near = min_energy.allocate(pool(three, 1000, [640, 340, 20]), FREE)
    assert not near.changed
    assert list(near.shares.values()) == [640, 340, 20]
    assert list(near.wanted.values()) == [666, 333, 1]
    assert near.reason.endswith("is inside the deadband of 2 %: shares kept")
    far = min_energy.allocate(pool(three, 1000, [571, 286, 143]), FREE)
    assert far.changed
    assert "a gain of 4.8 % over the present shares is above the deadband of 2 %" in far.reason
    same = min_energy.allocate(pool(three, 1000, [666, 333, 1]), FREE)
    assert (same.changed, same.reason.split("; ")[-1]) == (False, "the shares are as wanted")


def test_shares_that_break_the_makespan_limit_are_replaced_at_any_price(three: tuple[Truth, ...]) -> None:
    slow = [400, 590, 10]  # cheap, but twice as long
    found = min_energy.allocate(pool(three, 1000, slow), min_energy.Options(slack=1.10))
    assert found.changed
    assert "break the limit by" in found.reason


def test_without_waiting_watts_of_one_board_the_median_ratio_stands_in(three: tuple[Truth, ...]) -> None:
    members = pool(three, 1000).members
    found = min_energy.allocate(Pool((blind(members[0]), *members[1:]), 1000, 5), FREE)
    assert "waiting watts taken as 0.28 x active, the pool's median: a" in " ".join(found.notes)
    assert found.predicted_wait_joules is None


@pytest.mark.parametrize("name", ["min-energy", "min-time"])
def test_without_any_waiting_watts_shares_go_by_time_and_it_is_said(
    name: str, three: tuple[Truth, ...]
) -> None:
    members = tuple(blind(member) for member in pool(three, 1000).members)
    found = decided(name, Pool(members, 1000, 5))
    assert found.shares == {"a": 571, "b": 286, "c": 143}
    lack = "no board has both joules and watts of waiting, measured or configured"
    assert found.notes == (f"{name} needs more than is known ({lack}); until then shares go by time",)


@pytest.mark.parametrize("name", ["min-energy", "min-time"])
def test_without_any_joules_shares_go_by_time_and_it_is_said(name: str) -> None:
    members = tuple(
        Member(b, Memory(b, t, round=1), waiting_watts_prior=1.0) for b, t in (("a", 1), ("b", 3))
    )
    found = decided(name, Pool(members, 100, 2))
    assert found.shares == {"a": 75, "b": 25}
    assert f"{name} needs more than is known (no board has joules or configured watts)" in found.notes[0]


@pytest.mark.parametrize("name", ["min-energy", "min-time"])
def test_the_first_round_is_equal(name: str) -> None:
    found = decided(name, Pool((Member("a"), Member("b")), 101, 1))
    assert found.shares == {"a": 51, "b": 50}
    assert "no board has reported yet" in found.notes[0]


@pytest.mark.parametrize("name", ["min-energy", "min-time"])
def test_a_newcomer_gets_an_equal_share_once(name: str, three: tuple[Truth, ...]) -> None:
    found = decided(name, Pool((*pool(three, 1000).members, Member("late")), 1000, 5))
    assert found.shares["late"] == 250
    assert "not measured yet, N/m samples: late" in found.notes


def test_caps_are_kept_by_the_plan(three: tuple[Truth, ...]) -> None:
    members = pool(three, 1000).members
    capped = msgspec.structs.replace(members[1], cap=100)
    found = min_energy.allocate(Pool((members[0], capped, members[2]), 1000, 5), FREE)
    assert found.shares["b"] == 100
    assert found.shares["a"] + found.shares["c"] == 900


def decided(name: str, given: Pool) -> Allocation:
    policy = policies.find(name)
    return policy.allocate(given, policies.options(name, {}))


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("min-energy", {"slack": 0.9}),
        ("min-energy", {"slack": float("nan")}),
        ("min-energy", {"deadband": -1.0}),
        ("min-time", {"joules": 0.0}),
        ("min-time", {"saving": 1.0}),
        ("min-time", {"tolerance": 2.0}),
    ],
)
def test_options_out_of_range_are_refused(name: str, wrong: dict[str, float]) -> None:
    with pytest.raises(policies.UnknownPolicyError, match=f"policy {name}: .* must be"):
        policies.options(name, wrong)
