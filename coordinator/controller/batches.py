"""Per-step batch sizes for synchronous gradients: equal steps for every rank, no padding (ALGORITHMS 1.5).

The arithmetic is the boards' own (`edged.dealing`); here stands what the controller says where it cannot be.
"""

from collections.abc import Sequence

from coordinator.controller import InfeasibleError
from edged import dealing
from edged.dealing import steps_for


def schedule(shares: Sequence[int], steps: int) -> list[list[int]]:
    """b[i][s], as `edged.dealing.schedule`. Raises InfeasibleError for a share that does not reach."""
    try:
        return dealing.schedule(shares, steps)
    except ValueError as error:
        raise InfeasibleError(str(error)) from None


__all__ = ["schedule", "steps_for"]
