"""Per-step batch sizes for synchronous gradients: equal steps for every rank, no padding (ALGORITHMS 1.5)."""

from collections.abc import Sequence

from coordinator.controller import InfeasibleError


def steps_for(budget: int, batch: int) -> int:
    """S = ceil(N / B); chosen once and kept over policies, so that all make the same optimizer steps."""
    if batch < 1:
        raise ValueError(f"the global batch must be at least 1 sample, not {batch}")
    return -(-budget // batch)


def schedule(shares: Sequence[int], steps: int) -> list[list[int]]:
    """b[i][s]: rank i's samples in step s. Row i adds up to shares[i], columns differ by at most one sample.

    Each rank's remainder goes to consecutive steps, starting where the previous rank stopped, modulo S.
    A share below `steps` would leave steps without a sample of that rank and is refused.
    """
    if steps < 1:
        raise InfeasibleError(f"a round needs at least one step, not {steps}")
    rows: list[list[int]] = []
    start = 0
    for rank, samples in enumerate(shares):
        if samples < steps:
            raise InfeasibleError(f"rank {rank}: {samples} samples do not reach over {steps} steps")
        base, extra = divmod(samples, steps)
        row = [base] * steps
        for k in range(extra):
            row[(start + k) % steps] += 1
        start = (start + extra) % steps
        rows.append(row)
    return rows
