"""The speed of an emulated board: each step is padded to the time that the board would take for its samples.

The padding lies inside the compute window, so that seconds and joules behave as on the board. A step
whose own work takes longer cannot be padded; it counts as behind the pace.
"""

import time
from collections.abc import Callable, Sequence

NATIVE_SHARE = 0.4
"""A measured pace leaves the machine's own work this share of a step (ARCHITECTURE 10)."""


class Pace:
    """Paces steps against the clock. `seconds_per_sample` None: the machine's own speed, nothing is
    padded.
    """

    def __init__(
        self,
        seconds_per_sample: float | None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self.seconds_per_sample = seconds_per_sample
        self.behind_steps = 0
        self._clock = clock
        self._sleep = sleep
        self._began = clock()

    def begin(self) -> None:
        """The first step begins now."""
        self._began = self._clock()

    def reach(self, samples: int, part: float = 1.0) -> None:
        """Within a step of so many samples, since `begin`: wait until this part of its time has passed.

        Only a whole step can be behind: what its first part took too long, the rest may make good.
        """
        if self.seconds_per_sample is None:
            return
        due = self._began + self.seconds_per_sample * samples * part
        now = self._clock()
        if now <= due:
            self._sleep(due - now)
        elif part == 1.0:
            self.behind_steps += 1

    def step(self, samples: int) -> None:
        """A step of so many samples is computed: wait until it is due; the next begins then.

        The next step is due from this one's due time, so that a late wake-up is not added up; from now
        if behind.
        """
        if self.seconds_per_sample is None:
            return
        due = self._began + self.seconds_per_sample * samples
        now = self._clock()
        if now > due:
            self.behind_steps += 1
            self._began = now
            return
        self._sleep(due - now)
        self._began = due


def measured(step_seconds: Sequence[float], samples: int) -> float:
    """Seconds per sample of a board so slow that the slowest of these native steps takes NATIVE_SHARE of
    its step.
    """
    return max(step_seconds) / samples / NATIVE_SHARE
