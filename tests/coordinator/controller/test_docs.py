"""The pages that teach the arithmetic are run: every table of how-it-works, the example of add-a-policy."""

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from coordinator.controller import NAMED_WEIGHTS, Member, Memory, Pool, Reading, policies
from coordinator.controller.batches import schedule
from coordinator.controller.costs import combined
from coordinator.controller.memories import observe
from coordinator.controller.policies import adaptive
from coordinator.controller.policies.min_energy import NAME as MIN_ENERGY
from coordinator.controller.split import equal
from coordinator.controller.steady import Truth, outcome, steady
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.world import World
from edged.controls import RunSettings

DOCS = Path(__file__).parents[3] / "docs"


def tables(page: str) -> list[list[list[str]]]:
    """Rows of cells of every table, without head and rule."""
    found: list[list[list[str]]] = []
    inside = False
    for line in (DOCS / page).read_text(encoding="utf-8").splitlines():
        if not line.startswith("|"):
            inside = False
            continue
        if not inside:
            found.append([])
            inside = True
        found[-1].append([cell.strip() for cell in line.strip("|").split("|")])
    return [table[2:] for table in found]


READINGS, COSTS, SHARES, NEXT, STEPS, UPDATES = tables("how-it-works.md")


@pytest.fixture
def memories() -> dict[str, Memory]:
    return {
        board: observe(None, Reading(board, 1, int(n), float(t), float(e), "measured"))
        for board, n, t, e, *_ in READINGS
    }


def members(memories: dict[str, Memory], previous: list[int]) -> tuple[Member, ...]:
    waiting = {"a": 2.0, "b": 1.0, "c": 1.5}
    return tuple(
        Member(board, memory, 1, previous=n, waiting_watts_prior=waiting[board])
        for (board, memory), n in zip(memories.items(), previous, strict=True)
    )


def test_the_readings_give_the_costs_of_a_sample(memories: dict[str, Memory]) -> None:
    assert [int(row[1]) for row in READINGS] == equal(1000, [0] * 3, [1000] * 3)
    for board, *_, tau, eps in READINGS:
        assert memories[board].seconds_per_sample == pytest.approx(float(tau))
        assert memories[board].joules_per_sample == pytest.approx(float(eps))


def test_the_costs_follow_from_the_readings(memories: dict[str, Memory]) -> None:
    tau = [memory.seconds_per_sample for memory in memories.values()]
    eps = [memory.joules_per_sample for memory in memories.values()]
    assert [row[0] for row in COSTS] == list(NAMED_WEIGHTS)
    for name, w_t, w_e, *costs in COSTS:
        weights = NAMED_WEIGHTS[name]
        assert (weights.w_t, weights.w_e) == (float(w_t), float(w_e))
        assert combined(tau, eps, weights) == pytest.approx([float(cost) for cost in costs])


def test_the_shares_follow_from_the_costs(memories: dict[str, Memory], three: tuple[Truth, ...]) -> None:
    pool = Pool(members(memories, [334, 333, 333]), 1000, 2)
    for name, *cells in SHARES:
        given = {"slack": None} if name == MIN_ENERGY else {}
        found = policies.find(name).allocate(pool, policies.options(name, given))
        shares = list(found.shares.values())
        assert shares == [int(n) for n in cells[:3]]
        there = outcome(three, shares)
        printed = (f"{there.seconds:.3f}", f"{there.joules:.2f}", f"{there.wait_joules:.2f}")
        assert printed == tuple(cells[3:])
        assert found.predicted_joules == pytest.approx(there.joules)


def test_the_threshold_in_the_text_is_the_fleets(three: tuple[Truth, ...]) -> None:
    best = steady(policies.find(MIN_ENERGY), policies.options(MIN_ENERGY, {"slack": None}), three, 1000)
    assert round(best.joules / 1000, 4) == 0.0103
    text = (DOCS / "how-it-works.md").read_text(encoding="utf-8")
    assert "the best is 0.0103 J, so c rests" in text


def test_the_next_round_stays_inside_the_deadband(
    memories: dict[str, Memory], three: tuple[Truth, ...]
) -> None:
    had = [int(row[2]) for row in NEXT]
    hot = 0.0013
    taken = [had[0] * hot, *(n / t.samples_per_second for n, t in zip(had[1:], three[1:], strict=True))]
    assert round(taken[0], 4) == 0.7423
    decisions = []
    for round_ in (2, 3):
        for board, n, t in zip(memories, had, taken, strict=True):
            memories[board] = observe(memories[board], Reading(board, round_, n, t, None))
        decisions.append(
            adaptive.allocate(Pool(members(memories, had), 1000, round_ + 1), adaptive.Options())
        )
        if round_ == 2:
            for board, average, *_ in NEXT:
                assert memories[board].seconds_per_sample == pytest.approx(float(average))
    first, second = decisions
    assert not first.changed
    assert list(first.wanted.values()) == [int(row[3]) for row in NEXT]
    for row, old, new in zip(NEXT, had, first.wanted.values(), strict=True):
        assert row[4] == f"{100 * (new - old) / old:+.1f} %"
    assert memories["a"].seconds_per_sample == pytest.approx(0.001225)
    assert second.changed
    assert "(+11.9 %) is above" in second.reason


def test_the_steps_are_the_schedule() -> None:
    rows = schedule([int(row[1]) for row in STEPS], 10)
    for (_, _, base, where, extra), row in zip(STEPS, rows, strict=True):
        steps = [s for s, b in enumerate(row) if b > int(base)]
        first, last = where.split(" to ")[0], where.split(" to ")[-1]
        assert steps == list(range(int(first), int(last) + 1))
        assert extra == f"{len(steps)} extra"
    assert {sum(column) for column in zip(*rows, strict=True)} == {100}


def test_the_example_policy_works_as_printed(tmp_path: Path, three: tuple[Truth, ...]) -> None:
    page = (DOCS / "add-a-policy.md").read_text(encoding="utf-8")
    file = tmp_path / "fastest.py"
    file.write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    policy = policies.find(str(file))
    options = policies.options(str(file), {})
    first = policy.allocate(Pool(tuple(Member(t.board) for t in three), 1000, 1), options)
    assert sum(first.shares.values()) == 1000
    settled = steady(policy, options, three, 1000)
    assert settled.shares == (500, 500, 0)
    with pytest.raises(policies.UnknownPolicyError, match="at least one has to work"):
        policies.options(str(file), {"boards": 0})


def periods(policy: str) -> list[dict[str, Any]]:
    """The asynchronous run of how-it-works, in virtual time."""
    watts = {"a": (1000.0, 10.0, 2.0), "b": (500.0, 4.0, 1.0), "c": (250.0, 5.0, 1.5)}
    boards = [
        VirtualBoard(id=name, samples_per_second=speed, active_watts=active, waiting_watts=waiting)
        for name, (speed, active, waiting) in watts.items()
    ]
    settings = RunSettings("v", "v", 840, 4, "asp", policy, batch=70, learning_rate=0.1, evaluate=False)
    return World(boards, settings, 5000).run().rows["round"]


def test_equalised_orders_narrow_the_distribution_of_staleness() -> None:
    equal_row, equalised = periods("equal")[2], periods("omnilearn")[2]
    for board, first, ages, second, later in UPDATES:
        for row, size, told in ((equal_row, first, ages), (equalised, second, later)):
            assert row["batches"][board] == int(size)
            assert ", ".join(f"{age} x{n}" for age, n in row["staleness"][board].items()) == told


def test_the_picture_of_staleness_is_the_scripts() -> None:
    done = subprocess.run(
        [sys.executable, DOCS.parent / "scripts/staleness-picture"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == (DOCS / "staleness.svg").read_text(encoding="utf-8")
