"""A clock that moves when it is told to, for meters in simulated time: tests, replays, the simulator."""

from __future__ import annotations


class VirtualClock:
    """Starts at zero; `sleep` is a suspend, which BOOTTIME counts and MONOTONIC does not."""

    def __init__(self) -> None:
        self._monotonic = 0.0
        self._boottime = 0.0

    def monotonic(self) -> float:
        return self._monotonic

    def boottime(self) -> float:
        return self._boottime

    def advance(self, seconds: float) -> None:
        self._monotonic += seconds
        self._boottime += seconds

    def sleep(self, seconds: float) -> None:
        self._boottime += seconds
