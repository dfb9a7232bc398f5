"""A round of synchronous gradients, step by step: each step takes as long as its slowest rank (ALGORITHMS 4).

Pure arithmetic over the schedule of `controller.batches`; who gets how many samples is decided elsewhere.
"""

from collections.abc import Sequence

from msgspec import Struct

from coordinator.controller.batches import schedule


class Together(Struct, frozen=True):
    """Seconds of one round: by rank computing and waiting inside the steps, and of all ranks together."""

    compute_seconds: tuple[float, ...]
    wait_seconds: tuple[float, ...]
    communication_seconds: float
    seconds: float


def together(
    shares: Sequence[int],
    seconds_per_sample: Sequence[float],
    steps: int,
    *,
    fixed_seconds: Sequence[float] = (),
    step_communication_seconds: float = 0.0,
) -> Together:
    """One round over the ranks; what a rank spends whatever its share is spread over the steps.

    Raises InfeasibleError for a share that does not reach over the steps.
    """
    import numpy as np

    sizes = np.array(schedule(shares, steps), float)
    fixed = np.array(fixed_seconds or [0.0] * len(shares)) / steps
    spent = sizes * np.array(seconds_per_sample)[:, None] + fixed[:, None]
    slowest = spent.max(axis=0)
    communication = steps * step_communication_seconds
    return Together(
        tuple(spent.sum(axis=1).tolist()),
        tuple((slowest - spent).sum(axis=1).tolist()),
        communication,
        float(slowest.sum()) + communication,
    )
