"""Scenarios of the adaptive policy: what a fleet sees from round to round."""

import msgspec
import pytest

from coordinator.controller import Allocation, InfeasibleError, Member, Memory, Pool, Reading, Settings
from coordinator.controller.memories import DEFAULTS, missed, observe
from coordinator.controller.policies import adaptive
from coordinator.controller.policies.adaptive import Options
from coordinator.controller.split import LARGE
from coordinator.controller.steady import Truth, known, outcome, reading

TIME = Options(w_e=0)


def metered(board: str, samples: int, seconds: float, joules: float | None, round: int = 1) -> Reading:
    return Reading(board, round, samples, seconds, joules, "measured")


def rounds(
    fleet: tuple[Truth, ...],
    budget: int,
    count: int,
    options: Options = TIME,
    settings: Settings = DEFAULTS,
) -> list[Allocation]:
    """Closed loop without noise, from an unknown fleet."""
    memories: dict[str, Memory] = {}
    made: list[Allocation] = []
    for number in range(1, count + 1):
        last = made[-1] if made else None
        members = tuple(
            Member(t.board, memories.get(t.board), previous=last.shares[t.board] if last else None)
            for t in fleet
        )
        pool = Pool(members, budget, number, carry=last.carry if last else {}, settings=settings)
        made.append(adaptive.allocate(pool, options))
        for truth in fleet:
            seen = reading(truth, number, made[-1].shares[truth.board])
            memories[truth.board] = observe(memories.get(truth.board), seen, settings)
    return made


def test_the_first_round_is_equal_and_says_why(eleven: tuple[Truth, ...]) -> None:
    first = rounds(eleven, 60_000, 1)[0]
    assert set(first.shares.values()) == {5454, 5455}
    assert first.changed
    assert first.reason.startswith("equal shares: no board has reported yet")
    assert first.predicted_seconds is None


def test_after_one_reading_all_boards_finish_together(eleven: tuple[Truth, ...]) -> None:
    second = rounds(eleven, 60_000, 2)[1]
    after = outcome(eleven, list(second.shares.values()))
    assert after.variation <= 0.02
    assert after.seconds == pytest.approx(60_000 / sum(t.samples_per_second for t in eleven), rel=0.01)
    assert second.predicted_seconds == pytest.approx(after.seconds)


def test_a_quiet_fleet_is_left_alone(eleven: tuple[Truth, ...]) -> None:
    made = rounds(eleven, 60_000, 12)
    assert [a.changed for a in made] == [True, True] + [False] * 10
    assert made[-1].reason == "the shares are as wanted"


def test_a_straggler_gets_fewer_samples_and_the_others_more(eleven: tuple[Truth, ...]) -> None:
    members = [known(t, floor=1, previous=60_000 // 11) for t in eleven]
    before = adaptive.allocate(Pool(tuple(members), 60_000, 2), TIME)
    slow = msgspec.structs.replace(eleven[0], samples_per_second=240)
    members[0] = known(slow, floor=1)
    after = adaptive.allocate(Pool(tuple(members), 60_000, 2), TIME)
    assert after.shares["x86-desktop"] < before.shares["x86-desktop"]
    assert all(after.shares[t.board] > before.shares[t.board] for t in eleven[1:])


def test_fixed_costs_are_shared_out_once_they_are_fitted() -> None:
    fleet = (Truth("a", 100, 5, 1, fixed_seconds=2.0), Truth("b", 50, 5, 1), Truth("c", 25, 5, 1))
    plain = outcome(fleet, list(rounds(fleet, 2000, 8)[-1].shares.values()))
    fitted = rounds(fleet, 2000, 8, settings=Settings(fixed_cost="fit"))[-1]
    best = outcome(fleet, list(fitted.shares.values()))
    assert best.variation <= 0.005
    assert best.seconds <= plain.seconds
    assert fitted.predicted_seconds == pytest.approx(best.seconds, rel=0.01)


def test_a_late_joiner_gets_an_equal_share_until_it_is_measured(three: tuple[Truth, ...]) -> None:
    old = tuple(known(t, previous=n) for t, n in zip(three, (571, 286, 143), strict=True))
    found = adaptive.allocate(Pool((*old, Member("late")), 1000, 9), TIME)
    assert found.shares["late"] == 250
    assert found.shares == {"a": 429, "b": 214, "c": 107, "late": 250}
    assert found.reason.startswith(
        "late not measured yet: N/m samples, the others by cost; new shares: late had"
    )
    assert found.costs["late"] is None


@pytest.mark.parametrize("copies", [1, LARGE])
def test_a_late_joiner_gets_an_equal_share_with_fixed_costs_too(copies: int) -> None:
    fleet = [Truth(f"{i:04}", 100 + i % 7, 5, 1, fixed_seconds=1 + i % 3) for i in range(3 * copies)]
    old = tuple(known(t, floor=0) for t in fleet)
    budget = 1000 * (3 * copies + 1)
    settings = Settings(fixed_cost="fit")
    found = adaptive.allocate(Pool((*old, Member("late")), budget, 9, settings=settings), TIME)
    assert found.shares["late"] == 1000
    times = outcome(fleet, [found.shares[t.board] for t in fleet]).times
    assert max(times) - min(times) < 0.011


def test_a_silent_board_keeps_its_costs_then_its_floor_then_leaves(three: tuple[Truth, ...]) -> None:
    members = [known(t, floor=10, previous=n) for t, n in zip(three, (571, 286, 143), strict=True)]

    def silent(count: int) -> Allocation:
        memory = members[0].memory
        assert memory is not None
        for _ in range(count):
            memory = missed(memory)
        gone = msgspec.structs.replace(members[0], memory=memory)
        return adaptive.allocate(Pool((gone, *members[1:]), 1000, 9), TIME)

    assert silent(2).shares == {"a": 571, "b": 286, "c": 143}
    third = silent(3)
    assert third.shares["a"] == 10
    assert third.notes == ("a gets its floor: 3 rounds without a report",)
    sixth = silent(6)
    assert (sixth.shares, sixth.left) == ({"b": 667, "c": 333}, ("a",))
    assert "a left the pool after 6 missed rounds, until it is readmitted" in sixth.notes


def test_when_all_are_silent_nobody_can_be_held_at_the_floor(three: tuple[Truth, ...]) -> None:
    members = tuple(known(t, floor=10) for t in three)

    def silent(count: int) -> Pool:
        quiet = [msgspec.structs.replace(m.memory or Memory(m.board), misses=count) for m in members]
        return Pool(
            tuple(
                msgspec.structs.replace(m, memory=memory) for m, memory in zip(members, quiet, strict=True)
            ),
            1000,
            9,
        )

    found = adaptive.allocate(silent(3), TIME)
    assert sum(found.shares.values()) == 1000
    assert found.notes == ("too few boards report to hold the silent ones at their floors",)
    with pytest.raises(InfeasibleError, match="no board is left in the pool: a, b, c missed too often"):
        adaptive.allocate(silent(6), TIME)


def test_a_board_without_joules_is_charged_at_the_median_watts_and_it_is_said() -> None:
    seen = [observe(None, metered("a", 100, 0.1, 1.0)), observe(None, metered("b", 100, 0.2, 0.8))]
    blind = observe(None, metered("c", 100, 0.4, None))
    members = tuple(Member(m.board, m) for m in (*seen, blind))
    found = adaptive.allocate(Pool(members, 1000, 2), Options(w_e=1.0))
    assert list(found.shares.values()) == [384, 479, 137]  # of 10, 8 and 4 ms x 7 W = 28 mJ a sample
    assert found.notes == ("charged at the pool's median watts, having no joules: c",)
    assert found.predicted_joules is None


def test_without_any_joules_the_energy_weight_is_said_to_have_no_effect() -> None:
    members = tuple(Member(b, observe(None, metered(b, 100, t, None))) for b, t in (("a", 0.1), ("b", 0.3)))
    found = adaptive.allocate(Pool(members, 1000, 2), Options(w_e=1.0))
    assert found.shares == {"a": 750, "b": 250}
    assert found.notes == (
        "no board has joules or configured watts: the energy weight has no effect, shares go by time",
    )


def test_a_pool_whose_boards_are_charged_by_different_scopes_is_told_so() -> None:
    memories = [
        observe(None, msgspec.structs.replace(metered(board, 100, 0.1, 1.0), scope=scope))
        for board, scope in (("a", "wall"), ("b", "package"), ("c", "package"))
    ]
    pool = Pool(tuple(Member(memory.board, memory) for memory in memories), 1000, 2)
    assert adaptive.allocate(pool, Options(w_e=0.5)).notes == (
        "joules of different scope in one pool: package, wall",
    )
    assert adaptive.allocate(pool, Options(w_e=0)).notes == ()


def test_joules_that_stopped_coming_are_called_stale() -> None:
    memory = observe(observe(None, metered("a", 100, 0.1, 1.0)), metered("a", 100, 0.1, None, round=2))
    other = observe(None, metered("b", 100, 0.1, 1.0))
    found = adaptive.allocate(Pool((Member("a", memory), Member("b", other)), 1000, 3), Options(w_e=0.5))
    assert found.notes == ("joules from an older round: a (round 1)",)


def test_changed_weights_change_the_next_shares_by_the_arithmetic(three: tuple[Truth, ...]) -> None:
    """Waiting for no deadband: from (571, 286, 143) to (453, 377, 170) is a change of 32 %."""
    members = tuple(known(t, previous=n) for t, n in zip(three, (571, 286, 143), strict=True))
    found = adaptive.allocate(Pool(members, 1000, 5), Options(w_e=0.5))
    assert found.changed
    assert list(found.shares.values()) == [453, 377, 170]
    assert found.costs == {"a": pytest.approx(0.75), "b": pytest.approx(0.9), "c": pytest.approx(2.0)}


def test_a_large_pool_is_decided_by_the_same_rule(three: tuple[Truth, ...]) -> None:
    fleet = [msgspec.structs.replace(three[i % 3], board=f"b{i:04}") for i in range(3 * (LARGE // 3 + 1))]
    members = tuple(known(t, floor=1, previous=100) for t in fleet)
    found = adaptive.allocate(Pool(members, 100 * len(fleet), 2), Options(w_e=0.25))
    small = adaptive.allocate(Pool(members[:3], 300, 2), Options(w_e=0.25))
    assert sum(found.shares.values()) == 100 * len(fleet)
    for i, n in enumerate(found.shares.values()):
        assert abs(n - small.shares[fleet[i % 3].board]) <= 1
    assert found.changed
    assert found.costs["b0000"] == pytest.approx(0.625)


@pytest.mark.parametrize("wrong", [{"w_e": 2.0}, {"deadband": 1.0}, {"deadband": -0.1}, {"patience": 0}])
def test_options_out_of_range_are_refused(wrong: dict[str, float]) -> None:
    with pytest.raises(msgspec.ValidationError, match=r"must be|between"):
        msgspec.convert(wrong, Options)
