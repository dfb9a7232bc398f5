"""Lists for small pools, columns for large ones: one rule."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator.controller import Member, Memory, Pool, Weights, arrays, bulk
from coordinator.controller.costs import combined, inverse
from coordinator.controller.deadband import DRIFT, judge
from coordinator.controller.split import clamped, whole
from coordinator.controller.standing import standing

per_sample = st.one_of(st.none(), st.floats(1e-4, 10))


@st.composite
def pools(draw: st.DrawFn) -> Pool:
    m = draw(st.integers(1, 15))
    members = []
    for i in range(m):
        memory = Memory(str(i), draw(per_sample), draw(per_sample))
        floor = draw(st.integers(0, 50))
        cap = draw(st.one_of(st.none(), st.integers(floor + 20, 400)))
        members.append(Member(str(i), memory, floor, cap, draw(st.one_of(st.none(), st.integers(0, 100)))))
    low = max(1, sum(member.floor for member in members))
    high = sum(member.cap or 2000 for member in members)
    budget = draw(st.integers(low, max(low, high)))
    previous = draw(st.booleans())
    if previous:  # half of the pools have old shares that fit
        shares = whole(
            clamped([1.0] * m, budget, [b.floor for b in members], [b.cap or budget for b in members]),
            budget,
            [b.cap or budget for b in members],
        )
        members = [Member(b.board, b.memory, b.floor, b.cap, n) for b, n in zip(members, shares, strict=True)]
    drift = {str(i): float(draw(st.integers(-4, 4))) for i in range(m)}
    return Pool(tuple(members), budget, 2, carry={DRIFT: drift})


@given(pools(), st.floats(0, 1), st.sampled_from([0.05, 0.10, 0.99]))
@settings(deadline=None, max_examples=50)
def test_columns_decide_as_lists_do(pool: Pool, w_e: float, deadband: float) -> None:
    now, weights = standing(pool), Weights.of(w_e)
    columns = arrays.Columns.of(now, pool.carry[DRIFT])
    costs = combined(now.seconds, now.joules, weights)
    decision = arrays.decide(columns, weights, deadband, 5)
    assert [None if np.isnan(c) else c for c in decision.costs] == pytest.approx(costs)
    x = clamped(inverse(costs), now.budget, now.floors, now.caps)
    lowered = [1 / c if c else 1.0 for c in costs]
    assert bulk.clamped(np.array(lowered), columns.budget, columns.floors, columns.caps) == pytest.approx(
        clamped(lowered, now.budget, now.floors, now.caps), rel=1e-7, abs=1e-7
    )
    wanted = decision.wanted.tolist()
    assert sum(wanted) == now.budget
    assert all(lo <= n <= hi for lo, n, hi in zip(now.floors, wanted, now.caps, strict=True))
    assert np.abs(np.array(wanted) - whole(x, now.budget, now.caps)).max() <= 1
    verdict = judge(now, wanted, pool.carry, deadband, 5)
    assert decision.kind == verdict.kind
    assert decision.where == verdict.where or decision.kind in ("misfit", "same")
    assert (decision.shares == decision.wanted).all() == (
        verdict.applies or wanted == [n or 0 for n in now.previous]
    )
    drift = {board: float(n) for board, n in zip(now.boards, decision.drift.tolist(), strict=True) if n}
    assert drift == (verdict.drift or {})


@given(pools(), st.lists(st.floats(0, 300), min_size=15, max_size=15))
@settings(deadline=None, max_examples=40)
def test_offsets_are_clamped_alike(pool: Pool, offsets: list[float]) -> None:
    now = standing(pool)
    weights = [1 + i / 7 for i in range(len(now.boards))]
    small = offsets[: len(weights)]
    columns = arrays.Columns.of(now, {})
    assert bulk.clamped(
        np.array(weights), columns.budget, columns.floors, columns.caps, np.array(small)
    ) == pytest.approx(clamped(weights, now.budget, now.floors, now.caps, small), rel=1e-7, abs=1e-6)
