"""The baselines: profiled, oort-like, ema-batch, omnilearn; each against what its paper or code does."""

import msgspec
import pytest

from coordinator.controller import Allocation, Carry, Member, Memory, Pool, policies
from coordinator.controller.memories import observe
from coordinator.controller.policies import adaptive, ema_batch, omnilearn, oort, profiled
from coordinator.controller.steady import Truth, known, reading


def run(name: str, fleets: list[tuple[Truth, ...]], budget: int, **given: object) -> list[Allocation]:
    """One round for each fleet of the list (the same boards, perhaps at other speeds), closed loop."""
    policy, options = policies.find(name), policies.options(name, given)
    memories: dict[str, Memory] = {}
    made: list[Allocation] = []
    carry: Carry = {}
    for number, fleet in enumerate(fleets, 1):
        members = tuple(
            Member(
                t.board,
                memories.get(t.board),
                previous=made[-1].shares.get(t.board) if made else None,
                resource=t.resource,
            )
            for t in fleet
        )
        made.append(policy.allocate(Pool(members, budget, number, carry=carry), options))
        carry = made[-1].carry
        for truth in fleet:
            n = made[-1].shares[truth.board]
            if n:
                memories[truth.board] = observe(memories.get(truth.board), reading(truth, number, n))
    return made


def slowed(fleet: tuple[Truth, ...], board: str, factor: float) -> tuple[Truth, ...]:
    return tuple(
        msgspec.structs.replace(t, samples_per_second=t.samples_per_second * factor)
        if t.board == board
        else t
        for t in fleet
    )


def test_a_profile_is_measured_once_and_never_again(three: tuple[Truth, ...]) -> None:
    throttled = slowed(three, "a", 0.5)
    made = run("profiled", [three, three, throttled, throttled], 1000)
    assert [list(a.shares.values()) for a in made[1:]] == [[571, 286, 143]] * 3
    assert [a.changed for a in made] == [True, True, False, False]
    assert made[0].reason == "equal shares: the profiling round"
    assert made[1].reason == "fixed split by the first reading of 3 of 3 boards"


def test_a_profile_may_weigh_energy(three: tuple[Truth, ...]) -> None:
    assert list(run("profiled", [three, three], 1000, w_e=0.5)[1].shares.values()) == [453, 377, 170]


def test_oort_covers_all_boards_before_it_chooses(eleven: tuple[Truth, ...]) -> None:
    made = run("oort", [eleven] * 6, 60_000)
    taken = [{b for b, n in a.shares.items() if n} for a in made]
    assert all(len(boards) == 8 for boards in taken)
    assert taken[0] | taken[1] == {t.board for t in eleven}
    assert all(set(a.shares.values()) == {0, 7500} for a in made)
    assert "8 of 11 boards share the budget equally" in made[3].reason
    assert made[1].notes[0] == "rounds taken part: riscv-c910x4 0 (least), x86-desktop 1 (most)"


def member(board: str, utility: float | None, tau: float, last: int) -> Member:
    memory = Memory(board, tau, participations=3, round=last, loss_utility=utility)
    return Member(board, memory, floor=0)


def taken(members: list[Member], round: int = 10, **options: float) -> list[str]:
    found = oort.allocate(Pool(tuple(members), 900, round), msgspec.convert(options, oort.Options))
    return [board for board, n in found.shares.items() if n]


def test_oort_prefers_useful_boards_and_penalises_slow_ones() -> None:
    alike = [member(b, u, 0.01, 9) for b, u in (("a", 1.0), ("b", 3.0), ("c", 2.0))]
    assert taken(alike) == ["a", "b", "c"]
    assert taken(alike, share=0.6) == ["b", "c"]
    slow = [member("a", 2.0, 0.01, 9), member("b", 3.0, 0.05, 9), member("c", 1.5, 0.01, 9)]
    assert taken(slow, share=0.3) == ["a"]
    assert taken(slow, share=0.3, alpha=0.0) == ["b"]


def test_oort_comes_back_to_boards_it_has_not_used_for_long() -> None:
    """Bonus sqrt(0.1 ln R / L): of two boards alike the one with the older participation wins."""
    assert taken([member("a", 1.0, 0.01, 90), member("b", 1.0, 0.01, 2)], round=91, share=0.5) == ["b"]


def test_oort_without_losses_says_so_and_takes_more_boards_where_caps_need_them() -> None:
    members = [msgspec.structs.replace(member(b, None, 0.01, 9), cap=350) for b in "abcd"]
    found = oort.allocate(Pool(tuple(members), 900, 10), oort.Options(share=0.5))
    assert found.shares == {"a": 300, "b": 300, "c": 300, "d": 0}
    assert "3 boards instead of 2: caps leave fewer no room for the budget" in found.notes
    assert "no board has reported losses: all are taken as equally useful" in found.notes


def test_ema_batch_follows_throughput_with_its_own_smoothing(three: tuple[Truth, ...]) -> None:
    made = run("ema-batch", [three, three, slowed(three, "a", 0.5), three], 1000)
    assert list(made[1].shares.values()) == [571, 286, 143]
    speed = 0.3 * 500 + 0.7 * 1000
    assert made[3].carry[ema_batch.SPEED]["a"] == pytest.approx(speed)
    assert made[3].shares["a"] == round(1000 * speed / (speed + 750))


def test_omnilearn_static_is_proportional_to_cores() -> None:
    """The vector of the 2020 paper's own script: cores (9, 12, 9, 18), mean batch 59."""
    members = tuple(Member(f"w{i}", resource=cores) for i, cores in enumerate((9, 12, 9, 18)))
    found = omnilearn.allocate(Pool(members, 4 * 59, 1), omnilearn.Options(mode="static"))
    assert list(found.shares.values()) == [44, 59, 44, 89]
    nothing = tuple(Member(m.board) for m in members)
    found = omnilearn.allocate(Pool(nothing, 236, 1), omnilearn.Options(mode="static"))
    assert list(found.shares.values()) == [59] * 4
    assert "no board's resources are given (cores or FLOP/s): equal instead of proportional" in found.notes


def test_omnilearn_keeps_the_global_batch_and_its_bounds() -> None:
    """Speeds 6:6:4:32 from 32 each: the additive form of the released code gives 19, 19, 7, 83."""
    fleet = tuple(Truth(f"w{i}", s, 5, 1) for i, s in enumerate((6, 6, 4, 32)))
    free = run("omnilearn", [fleet] * 3, 128)
    assert [list(a.shares.values()) for a in free] == [[32] * 4, [16, 16, 11, 85], [16, 16, 11, 85]]
    bounded = run("omnilearn", [fleet] * 3, 128, lower=16, upper=96)
    assert list(bounded[-1].shares.values()) == [16, 16, 16, 80]


def test_omnilearn_by_resources_until_there_are_times() -> None:
    fleet = tuple(Truth(f"w{i}", 10, 5, 1, resource=r) for i, r in enumerate((1.0, 3.0)))
    made = run("omnilearn", [fleet, fleet], 100, start="resources")
    assert list(made[0].shares.values()) == [25, 75]
    assert list(made[1].shares.values()) == [50, 50]


def test_omnilearn_changes_all_or_none(eleven: tuple[Truth, ...]) -> None:
    made = run("omnilearn", [eleven, eleven, slowed(eleven, "arm-a53x4", 0.97), eleven], 60_000)
    assert [a.changed for a in made] == [True, True, False, False]


def test_omnilearn_learns_a_ceiling_where_more_samples_made_a_board_slower() -> None:
    """A board that swaps above 120 samples goes up and down until its ceiling stands, then stays below it."""
    fleet = (Truth("a", 100, 5, 1), Truth("b", 50, 5, 1), Truth("c", 50, 5, 1))
    made = closed(fleet, {"a": 120}, 12)
    notes = [note for allocation in made for note in allocation.notes]
    assert "a got slower with 150 samples than with 100: seen 1 of 3 times" in made[2].notes
    assert [note for note in notes if "its ceiling is 100" in note]
    learnt = next(i for i, a in enumerate(made) if a.carry[omnilearn.CEILING])
    assert all(allocation.shares["a"] <= 100 for allocation in made[learnt:])
    free = closed(fleet, {"a": 120}, 12, learn_ceilings=False)
    assert max(allocation.shares["a"] for allocation in free[-3:]) > 120
    assert all(allocation.carry[omnilearn.CEILING] == {} for allocation in free)


def test_omnilearns_ceiling_is_tried_anew_after_twenty_rounds() -> None:
    fleet = (Truth("a", 100, 5, 1), Truth("b", 50, 5, 1), Truth("c", 50, 5, 1))
    made = closed(fleet, {"a": 120}, 12, then=24)
    assert "a's ceiling of 100 has ended: larger is tried again" in [n for a in made for n in a.notes]
    assert list(made[-1].shares.values()) == [150, 75, 75]


def closed(
    fleet: tuple[Truth, ...], memory: dict[str, int], rounds: int, then: int = 0, **given: object
) -> list[Allocation]:
    """Boards with more samples than fit are slow in that round; in the last `then` rounds all fit."""
    policy, options = policies.find("omnilearn"), policies.options("omnilearn", given)
    memories: dict[str, Memory] = {}
    made: list[Allocation] = []
    for number in range(1, rounds + then + 1):
        last = made[-1] if made else Allocation({}, False, "")
        members = tuple(
            Member(t.board, memories.get(t.board), previous=last.shares.get(t.board)) for t in fleet
        )
        made.append(policy.allocate(Pool(members, 300, number, carry=last.carry), options))
        for truth in fleet:
            n = made[-1].shares[truth.board]
            swaps = number <= rounds and n > memory.get(truth.board, 300)
            (here,) = slowed((truth,), truth.board, 0.3) if swaps else (truth,)
            memories[truth.board] = observe(memories.get(truth.board), reading(here, number, n))
    return made


def test_time_only_is_the_multiplicative_rule(eleven: tuple[Truth, ...]) -> None:
    members = tuple(known(t, floor=1) for t in eleven)
    one = adaptive.allocate(Pool(members, 60_000, 2), adaptive.Options())
    other = omnilearn.allocate(Pool(members, 60_000, 2), omnilearn.Options())
    assert one.shares == other.shares
    assert profiled.allocate(Pool(members, 60_000, 2), profiled.Options()).shares == one.shares


@pytest.mark.parametrize(
    ("name", "wrong"),
    [
        ("oort", {"share": 0.0}),
        ("oort", {"percentile": 101.0}),
        ("oort", {"clip": 0.0}),
        ("oort", {"alpha": -1.0}),
        ("ema-batch", {"beta": 0.0}),
        ("ema-batch", {"every": 0}),
        ("omnilearn", {"lower": 5, "upper": 4}),
        ("omnilearn", {"lower": -1}),
        ("omnilearn", {"upper": 0}),
        ("omnilearn", {"fall": 1.0}),
        ("omnilearn", {"every": -1}),
        ("omnilearn", {"deadband": 1.0}),
        ("profiled", {"w_e": 1.5}),
    ],
)
def test_options_out_of_range_are_refused(name: str, wrong: dict[str, float]) -> None:
    with pytest.raises(policies.UnknownPolicyError, match=f"policy {name}: "):
        policies.options(name, wrong)
