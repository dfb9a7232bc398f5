"""The wait before the next attempt to connect: full jitter, so that a fleet does not come back at once.

PURE: the random draw and the time the connection held come in as arguments.
"""

from dataclasses import dataclass, replace


@dataclass(frozen=True)
class Backoff:
    """The ceiling doubles with each failure up to the cap; the wait is anything from nothing to the ceiling.

    A connection that did not hold for `stable_seconds` counts as one more failure: two clients with one id
    would otherwise throw each other out once a second for ever.
    """

    first_seconds: float = 2.0
    cap_seconds: float = 60.0
    stable_seconds: float = 60.0
    failures: int = 0

    @property
    def ceiling_seconds(self) -> float:
        doublings = min(self.failures, 32)
        return min(self.cap_seconds, self.first_seconds * 2.0**doublings)

    def wait_seconds(self, draw: float) -> float:
        """`draw` in [0, 1) gives a wait in [0, ceiling)."""
        return draw * self.ceiling_seconds

    def after_failure(self) -> "Backoff":
        return replace(self, failures=self.failures + 1)

    def after_loss(self, held_seconds: float) -> "Backoff":
        """The state after a connection that was up for `held_seconds`."""
        if held_seconds >= self.stable_seconds:
            return replace(self, failures=0)
        return self.after_failure()
