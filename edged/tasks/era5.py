"""ERA5: a weather value some hours ahead, from the hours before (regression), on a prepared pool.

Made by `edged data prepare era5 FILE -o DIR`. The model adds a correction to the last value seen, so that it
begins as the persistence forecast.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from edged.formats import prepared
from edged.tasks import _classification
from edged.tasks._contract import (
    BUILTIN,
    Data,
    Defaults,
    OtherPoolError,
    PoolError,
    PoolInfo,
    Prepared,
    Progress,
)

if TYPE_CHECKING:
    import numpy as np
    import torch
    from numpy.typing import NDArray

    from edged.tasks._contract import Batch

NAME = "era5"
SUMMARY = "2 m temperature six hours ahead from 24 hours of ERA5 (regression); GRU or TCN"
DEFAULTS = Defaults(batch=64, learning_rate=0.003, optimizer="adam")
HELPERS = ("_classification.py", "_contract.py", "../formats/prepared.py")


class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`variables` and `target_index` are those of the pool, which `edged data info` tells."""

    model: Literal["gru", "tcn"] = "gru"
    width: int = 32
    variables: int = 4
    target_index: int = 0

    def __post_init__(self) -> None:
        if not 4 <= self.width <= 1024 or self.width % 4:
            raise ValueError(f"width is {self.width}, expected a multiple of 4 from 4 to 1024")
        if not 0 <= self.target_index < self.variables:
            raise ValueError(f"target_index is {self.target_index}, expected 0 to {self.variables - 1}")


class Prepare(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Which series and windows. Accumulated variables (ssrd, tp) tell of the hour before their stamp."""

    variables: str = "t2m,u10,v10,sp"
    """Short names, separated by commas."""
    target: str = "t2m"
    window_hours: int = 24
    horizon_hours: int = 6
    held_out_percent: int = 20
    latitude: float | None = None
    longitude: float | None = None

    def __post_init__(self) -> None:
        if self.target not in self.names:
            raise ValueError(f"target is {self.target}, expected one of variables ({self.variables})")
        if not (1 <= self.window_hours <= 24 * 60 and 1 <= self.horizon_hours <= 24 * 60):
            raise ValueError("window_hours and horizon_hours must be from 1 to 1440")
        if not 1 <= self.held_out_percent <= 90:
            raise ValueError(f"held_out_percent is {self.held_out_percent}, expected 1 to 90")
        if (self.latitude is None) != (self.longitude is None):
            raise ValueError("latitude and longitude are given both or not at all")

    @property
    def names(self) -> tuple[str, ...]:
        """The variables one by one."""
        return tuple(name.strip() for name in self.variables.split(",") if name.strip())


def model(options: Options, seed: int) -> torch.nn.Module:
    """Hours (n, window, variables + 2) to one normalised value (n,)."""
    from torch import nn

    channels = options.variables + 2

    class Forecast(nn.Module):
        """The last value of the target plus what the body makes of the whole window."""

        def __init__(self) -> None:
            super().__init__()
            self.body = (
                _gru(channels, options.width) if options.model == "gru" else _tcn(channels, options.width)
            )
            self.head = nn.Linear(options.width, 1)
            nn.init.zeros_(self.head.weight)
            nn.init.zeros_(self.head.bias)

        def forward(self, hours: torch.Tensor) -> torch.Tensor:
            at = options.target_index
            last = hours[:, -1, at]
            # Relative to the last hour: held-out months are colder or warmer than those trained on.
            relative = hours.clone()
            relative[:, :, at] -= last.unsqueeze(1)
            change: torch.Tensor = self.head(self.body(relative))
            return last + change.squeeze(1)

    with _classification.seeded(seed):
        return Forecast()


def inspect(folder: Path | None) -> PoolInfo:
    """A prepared pool of this task."""
    return prepared.inspect(_folder(folder), NAME)


def load(folder: Path | None, options: Options) -> Data:
    """Window starts int64 (n,), targets float32 (n,); `facts` has the series (hours, variables + 2)."""
    data = prepared.load(_folder(folder), NAME)
    has = len(data.facts["variables"]), data.facts["target_index"]
    if has != (options.variables, options.target_index):
        raise PoolError(
            f"{folder}: has {has[0]} variables, target_index {has[1]}; the task's options say "
            f"variables {options.variables}, target_index {options.target_index}"
        )
    return data


def batch(data: Data, indices: NDArray[np.int64]) -> Batch:
    """Windows float32 (n, window, variables + 2), and targets."""
    return _tensors(data, data.inputs[indices], data.targets[indices])


def loss_sum(model: torch.nn.Module, batch: Batch) -> tuple[torch.Tensor, dict[str, float]]:
    """Squared error (normalised) summed over the batch, and the sum of absolute errors."""
    hours, targets = batch
    apart = model(hours) - targets
    return apart.square().sum(), {"absolute_error": float(apart.detach().abs().sum())}


def evaluate(model: torch.nn.Module, data: Data, max_samples: int | None = None) -> dict[str, float]:
    """Held-out mean squared error, normalised (`loss`) and in the target's own unit, and absolute error."""
    sums = _classification.held_out_sums(
        model,
        lambda chosen: _tensors(data, data.test_inputs[chosen], data.test_targets[chosen]),
        len(data.test_inputs),
        max_samples,
        loss_sum,
    )
    count, width = sums["samples"], data.facts["deviation"][data.facts["target_index"]]
    unit = "kelvin" if data.facts["target"] in {"t2m", "d2m", "skt", "sst"} else "target_unit"
    return {
        "loss": sums["loss"] / count,
        "samples": count,
        f"squared_error_{unit}2": sums["loss"] / count * width**2,
        f"absolute_error_{unit}": sums["absolute_error"] / count * width,
    }


def prepare(source: Path, options: Prepare, progress: Progress) -> Prepared:
    """A pool from any file of the Climate Data Store but GRIB."""
    from edged.tasks import _era5_pool

    return _era5_pool.prepare(source, options, progress)


def _tensors(data: Data, starts: NDArray[Any], targets: NDArray[Any]) -> Batch:
    import numpy as np
    import torch

    rows = starts[:, None] + np.arange(data.facts["window"])
    return torch.from_numpy(data.facts["series"][rows]), torch.from_numpy(targets)


def _folder(folder: Path | None) -> Path:
    if folder is None or folder.parts[:1] == BUILTIN.parts:
        raise OtherPoolError(f"{NAME} needs a prepared pool; nothing of it ships with edged")
    return folder


def _gru(channels: int, width: int) -> torch.nn.Module:
    from torch import nn

    class Last(nn.Module):
        """A GRU's state after the last hour."""

        def __init__(self) -> None:
            super().__init__()
            self.gru = nn.GRU(channels, width, batch_first=True)

        def forward(self, hours: torch.Tensor) -> torch.Tensor:
            states, _ = self.gru(hours)
            last: torch.Tensor = states[:, -1]
            return last

    return Last()


def _tcn(channels: int, width: int) -> torch.nn.Module:
    from torch import nn

    class Dilated(nn.Module):
        """Causal convolutions over 1, 2, 4, 8 hours: the last output sees 31 hours."""

        def __init__(self) -> None:
            super().__init__()
            widths = [channels, width, width, width, width]
            self.layers = nn.ModuleList(
                nn.Sequential(
                    nn.ConstantPad1d((2 * 2**depth, 0), 0.0),
                    nn.Conv1d(widths[depth], width, 3, dilation=2**depth),
                    nn.GroupNorm(1, width),
                    nn.ReLU(),
                )
                for depth in range(4)
            )

        def forward(self, hours: torch.Tensor) -> torch.Tensor:
            values = hours.transpose(1, 2)
            for layer in self.layers:
                values = layer(values)
            return values[:, :, -1]

    return Dilated()
