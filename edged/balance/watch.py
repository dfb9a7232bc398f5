"""How long a rank computes for a batch: from fetching it until its last gradient, never what follows.

Waiting for other ranks begins after the last gradient, so it is in none of these times.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

if TYPE_CHECKING:
    import torch


class Watch(Protocol):
    """Told of a batch's instants in this order; `gradient` many times, of which the last counts."""

    def fetch(self) -> None: ...

    def forward(self) -> None: ...

    def gradient(self) -> None: ...

    def seconds(self) -> float:
        """Of the batch whose gradients came last."""
        ...


class HostWatch:
    """For models on the CPU."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self._clock = clock
        self._fetched = self._began = self._last = 0.0

    def fetch(self) -> None:
        self._fetched = self._clock()

    def forward(self) -> None:
        # Kept apart: a loop may fetch its next batch before this one's gradients.
        self._began = self._fetched

    def gradient(self) -> None:
        self._last = self._clock()

    def seconds(self) -> float:
        return self._last - self._began


class CudaWatch:
    """For models on a GPU, where the host runs ahead: host time until the forward pass, then CUDA events.

    Not tested on a GPU.
    """

    def __init__(self, device: torch.device, clock: Callable[[], float] = time.monotonic) -> None:
        import torch

        event: Any = torch.cuda.Event
        self._clock, self._stream = clock, torch.cuda.current_stream(device)
        self._start, self._end = event(enable_timing=True), event(enable_timing=True)
        self._fetched = self._host_seconds = 0.0

    def fetch(self) -> None:
        self._fetched = self._clock()

    def forward(self) -> None:
        self._host_seconds = self._clock() - self._fetched
        self._start.record(self._stream)

    def gradient(self) -> None:
        self._end.record(self._stream)

    def seconds(self) -> float:
        self._end.synchronize()
        return self._host_seconds + float(self._start.elapsed_time(self._end)) / 1e3  # from milliseconds


def watch_for(model: torch.nn.Module) -> Watch:
    """By where the model's parameters are."""
    device = next(model.parameters()).device
    return CudaWatch(device) if device.type == "cuda" else HostWatch()
