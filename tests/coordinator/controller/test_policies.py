"""The contract over all policies, and how they are found."""

from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import NAMED_WEIGHTS, Allocation, Member, Memory, Pool, policies
from coordinator.controller.policies import UnknownPolicyError
from coordinator.controller.steady import Truth, known

ALL = policies.names()
OWN_FILES = tuple(name for name in ALL if name not in NAMED_WEIGHTS)


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    """Boards with and without memory, joules, bounds, waiting watts and old shares; a feasible budget."""
    members = []
    m = draw(st.integers(1, 11))
    for i in range(m):
        board, floor = f"b{i}", draw(st.integers(0, 30))
        memory = None
        if draw(st.integers(0, 4)):
            eps = draw(st.one_of(st.none(), st.floats(1e-3, 1)))
            memory = Memory(
                board,
                draw(st.floats(1e-4, 1)),
                eps,
                None if eps is None else "emulated",
                misses=draw(st.sampled_from([0, 0, 0, 2, 3])),
                round=1,
                joules_round=1,
                waiting_watts=draw(st.one_of(st.none(), st.floats(0, 5))),
                loss_utility=draw(st.one_of(st.none(), st.floats(0, 100))),
            )
        members.append(
            Member(
                board,
                memory,
                floor,
                draw(st.one_of(st.none(), st.integers(floor + 50, 1000))),
                draw(st.one_of(st.none(), st.integers(0, 100))),
                waiting_watts_prior=draw(st.one_of(st.none(), st.floats(0, 5))),
                resource=draw(st.one_of(st.none(), st.floats(1, 32))),
            )
        )
    low = max(m, sum(member.floor for member in members))
    high = sum(member.cap or 2000 for member in members)
    return Pool(tuple(members), draw(st.integers(low, max(low, high))), draw(st.integers(1, 9)))


def check(pool: Pool, found: Allocation) -> None:
    given_to = [member for member in pool.members if member.board not in found.left]
    assert list(found.shares) == [member.board for member in given_to]
    assert sum(found.shares.values()) == pool.budget
    for member in given_to:
        assert found.shares[member.board] <= (member.cap or pool.budget)
    assert found.reason
    assert sum(found.wanted.values()) == pool.budget
    if found.changed:
        assert found.shares == found.wanted
    else:
        assert found.shares == {member.board: member.previous for member in given_to}


@pytest.mark.parametrize("name", OWN_FILES)
@given(pools(), st.integers(1, 3))
@settings(deadline=None, max_examples=20)
def test_every_policy_spends_the_budget_within_bounds_and_says_why(
    name: str, pool: Pool, rounds: int
) -> None:
    policy, options = policies.find(name), policies.options(name, {})
    for _ in range(rounds):
        found = policy.allocate(pool, options)
        check(pool, found)
        if name != "oort":  # leaves boards out on purpose
            assert all(found.shares[m.board] >= m.floor for m in pool.members if m.board in found.shares)
        assert msgspec.json.decode(msgspec.json.encode(found), type=Allocation) == found
        pool = msgspec.structs.replace(
            pool,
            members=tuple(
                msgspec.structs.replace(m, previous=found.shares.get(m.board)) for m in pool.members
            ),
            round=pool.round + 1,
            carry=found.carry,
        )


@pytest.mark.parametrize("name", ALL)
def test_every_policy_declares_what_it_is(name: str) -> None:
    policy = policies.find(name)
    assert set(policy.REGIMES) <= {"pma", "ddp", "hfl-ddp", "asp"}
    assert policy.REGIMES
    assert set(policy.NEEDS) <= {"seconds", "joules", "waiting watts", "resources", "losses"}
    assert policy.__doc__
    assert policies.options(name, {}) == policies.options(name, {})


@pytest.mark.parametrize("name", ALL)
def test_deciding_twice_gives_the_same_answer(name: str, eleven: tuple[Truth, ...]) -> None:
    policy, options = policies.find(name), policies.options(name, {})
    pool = Pool(tuple(known(t, floor=1, previous=5000) for t in eleven), 60_000, 4)
    assert policy.allocate(pool, options) == policy.allocate(pool, options)


def test_named_weights_are_the_adaptive_policy() -> None:
    assert policies.find("low-energy").NAME == "adaptive"
    assert policies.options("low-energy", {}).w_e == 0.25
    assert policies.options("energy-only", {}).w_t == 0.0
    assert policies.options("low-energy", {"w_e": 0.5}).w_e == 0.5
    assert policies.options("adaptive", {"w_e": 0.5}).w_t is None


def test_what_there_is_not_is_named_with_what_there_is() -> None:
    with pytest.raises(UnknownPolicyError, match="no policy 'fastest'; there are adaptive, "):
        policies.find("fastest")
    with pytest.raises(UnknownPolicyError, match="no policy '_answer'"):
        policies.find("_answer")
    with pytest.raises(
        UnknownPolicyError, match="adaptive has no option speed; it has deadband, patience, w_e"
    ):
        policies.options("adaptive", {"speed": 1})
    with pytest.raises(UnknownPolicyError, match="policy equal has no option w_e; it has none"):
        policies.options("equal", {"w_e": 1})
    with pytest.raises(UnknownPolicyError, match=r"policy adaptive: w_e: Expected `float`, got `str`$"):
        policies.options("adaptive", {"w_e": "much"})
    with pytest.raises(UnknownPolicyError, match="each weight must be between 0 and 1"):
        policies.options("adaptive", {"w_e": -1.0})


OWN = '''"""The last board does everything."""

from __future__ import annotations

from msgspec import Struct

from coordinator.controller import Allocation, Pool

NAME = "last-only"
REGIMES = ("pma",)
NEEDS = ()
Times = int


class Options(Struct, frozen=True):
    """How often."""

    times: Times = 1


def allocate(pool: Pool, options: Options) -> Allocation:
    shares = {member.board: 0 for member in pool.members}
    shares[pool.members[-1].board] = pool.budget
    return Allocation(shares, True, "the last one does it", wanted=shares)
'''


def test_a_policy_from_a_file_of_the_user(tmp_path: Path, three: tuple[Truth, ...]) -> None:
    file = tmp_path / "mine.py"
    file.write_text(OWN)
    pool = Pool(tuple(Member(t.board) for t in three), 10, 1)
    for name, files in ((str(file), ()), ("last-only", (str(file),))):
        policy = policies.find(name, files)
        assert policies.options(name, {"times": 2}, files).times == 2
        found = policy.allocate(pool, policies.options(name, {}, files))
        check(pool, found)
        assert found.shares == {"a": 0, "b": 0, "c": 10}


def test_a_file_that_is_no_policy_is_refused_by_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownPolicyError, match=r"none.py: no such file"):
        policies.find(str(tmp_path / "none.py"))
    broken = tmp_path / "broken.py"
    broken.write_text("1 / 0")
    with pytest.raises(UnknownPolicyError, match=r"broken.py: ZeroDivisionError: division by zero"):
        policies.find(str(broken))
    half = tmp_path / "half.py"
    half.write_text("NAME = 'half'")
    with pytest.raises(UnknownPolicyError, match=r"half.py: .*missing: REGIMES, NEEDS, Options, allocate"):
        policies.find(str(half))
