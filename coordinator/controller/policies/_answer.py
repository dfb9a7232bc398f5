"""How every policy words its answer: shares by board with predictions and what the reader must know."""

from collections.abc import Sequence

from coordinator.controller import Allocation, Carry
from coordinator.controller.predictions import predict
from coordinator.controller.standing import Standing


def answer(
    now: Standing,
    shares: Sequence[int],
    *,
    wanted: Sequence[int],
    changed: bool,
    reason: str,
    costs: Sequence[float | None] = (),
    notes: Sequence[str] = (),
    carry: Carry | None = None,
) -> Allocation:
    """The allocation for shares in the order of `now.boards`."""
    expected = predict(now, shares)
    return Allocation(
        shares=dict(zip(now.boards, shares, strict=True)),
        changed=changed,
        reason=reason,
        costs=dict(zip(now.boards, costs, strict=True)) if costs else {},
        wanted=dict(zip(now.boards, wanted, strict=True)),
        predicted_seconds=expected.seconds,
        predicted_joules=expected.joules,
        predicted_wait_joules=expected.wait_joules,
        left=now.left,
        notes=(*now.notes, *notes),
        carry=carry or {},
    )
