"""A round of synchronous gradients, step by step: each step takes as long as its slowest rank (ALGORITHMS 4).

Batches are the schedule's of `controller.batches`, and where a rule goes with the order those that the ranks'
own `edged.stepwise` comes to. Pure arithmetic; who gets how many samples is decided elsewhere.
"""

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from msgspec import Struct

from coordinator.controller.batches import schedule
from edged.ceilings import State
from edged.dealing import step_sizes
from edged.groups import Stepwise
from edged.stepwise import Adjuster

if TYPE_CHECKING:
    from numpy import float64
    from numpy.typing import NDArray


class Together(Struct, frozen=True):
    """One round. By rank: seconds of computing and of waiting inside the steps, and samples trained; of all
    ranks: seconds of exchange and in all, each step's samples and slowest rank, the steps after which batches
    changed, and what the step-level rule has learnt for the next round."""

    compute_seconds: tuple[float, ...]
    wait_seconds: tuple[float, ...]
    samples: tuple[int, ...]
    communication_seconds: float
    seconds: float
    step_samples: tuple[int, ...]
    step_seconds: tuple[float, ...]
    changed_after: tuple[int, ...] = ()
    learnt: State = {}


def together(
    shares: Sequence[int],
    seconds_per_sample: Sequence[float],
    steps: int,
    *,
    fixed_seconds: Sequence[float] = (),
    step_communication_seconds: float = 0.0,
    stepwise: Stepwise | None = None,
    boards: Sequence[str] = (),
    learnt: Mapping[str, Mapping[str, float]] | None = None,
) -> Together:
    """One round over the ranks; what a rank spends whatever its share is spread over the steps. `learnt` is
    what the ranks' rule had learnt in earlier rounds.

    Raises InfeasibleError for a share that does not reach over the steps.
    """
    import numpy as np

    sizes = np.array(schedule(shares, steps), float)
    tau = np.array(seconds_per_sample, float)
    fixed = np.array(fixed_seconds or [0.0] * len(shares)) / steps
    changed: tuple[int, ...] = ()
    adjuster: Adjuster | None = None
    if stepwise is not None:
        adjuster = Adjuster(stepwise, shares, steps, boards, learnt)
        changed = _adjusted(sizes, tau, fixed, stepwise.every, adjuster)
    spent = sizes * tau[:, None] + fixed[:, None]
    slowest = spent.max(axis=0)
    communication = steps * step_communication_seconds
    return Together(
        tuple(spent.sum(axis=1).tolist()),
        tuple((slowest - spent).sum(axis=1).tolist()),
        tuple(sizes.sum(axis=1).astype(int).tolist()),
        communication,
        float(slowest.sum()) + communication,
        tuple(sizes.sum(axis=0).astype(int).tolist()),
        tuple(slowest.tolist()),
        changed,
        adjuster.state if adjuster is not None else {},
    )


def _adjusted(
    sizes: "NDArray[float64]",
    tau: "NDArray[float64]",
    fixed: "NDArray[float64]",
    every: int,
    adjuster: Adjuster,
) -> tuple[int, ...]:
    """Overwrite the sizes of the steps that come after a change; answers after which steps one came."""
    steps = sizes.shape[1]
    totals = step_sizes(int(sizes.sum()), steps)
    changed: list[int] = []
    for first in range(0, steps, every):
        after = first + every
        if adjuster.speeds is not None:
            found = {total: adjuster.sizes(total) for total in set(totals[first:after])}
            for step in range(first, min(after, steps)):
                sizes[:, step] = found[totals[step]]
        if after >= steps:  # after the last step nothing is left to change
            break
        heard = sizes[:, first:after]
        seconds = (heard * tau[:, None] + fixed[:, None]).sum(axis=1)
        if adjuster.hear(seconds.tolist(), heard.sum(axis=1).astype(int).tolist()):
            changed.append(after - 1)
    return tuple(changed)
