"""NVIDIA discrete GPUs by NVML (package nvidia-ml-py): the energy counter since Volta, else watts.

A GPU is found once it has given a reading: on Jetson the library starts, counts one and reads nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, sample

MILLI = 1e-3
REFRESH_SECONDS = 0.1  # of the counter: 20 to 100 ms
AVERAGE_SECONDS = 1.0  # of the watts on Ampere and later, save GA100
CEILING_WATTS = 1500.0


class Nvml:
    name = "nvml"

    def detect(self, context: Context) -> list[Finding]:
        try:
            library = context.load_module("pynvml")
        except ImportError:
            gpus = context.path("/proc/driver/nvidia/version")
            if not gpus.exists():
                return []
            return [
                Finding(self.name, "absent", "an NVIDIA driver, but no pynvml", "pip install 'edged[gpu]'")
            ]
        try:
            library.nvmlInit()
            count = int(library.nvmlDeviceGetCount())
        except Exception as error:  # NVML's own class, which is only known once it is imported
            if not context.path("/proc/driver/nvidia/version").exists():
                return []
            return [Finding(self.name, "invalid", f"NVML does not start: {error}")]
        return [finding for index in range(count) for finding in self._gpu(library, index)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        library = context.load_module("pynvml")
        library.nvmlInit()
        readers: list[Reader] = []
        for index in range(int(library.nvmlDeviceGetCount())):
            handle = library.nvmlDeviceGetHandleByIndex(index)
            place = f"nvml/{_uuid(library, handle)}"
            mine = [channel.id for channel in channels if channel.id.startswith(f"{place}/")]
            if mine:
                readers.append(Gpu(context, library, handle, mine))
        return readers

    @staticmethod
    def _gpu(library: Any, index: int) -> list[Finding]:
        try:
            handle = library.nvmlDeviceGetHandleByIndex(index)
            place = f"nvml/{_uuid(library, handle)}"
        except Exception as error:
            return [Finding(f"nvml/{index}", "invalid", f"no handle: {error}")]
        joules = _call(library.nvmlDeviceGetTotalEnergyConsumption, handle)
        watts = _call(library.nvmlDeviceGetPowerUsage, handle)
        found = []
        both = not isinstance(joules, Trouble) and not isinstance(watts, Trouble)
        if not isinstance(joules, Trouble):
            channel = Channel(
                id=f"{place}/energy",
                kind="counter",
                scope="gpu",
                basis="measured",
                relative_uncertainty=0.05,
                source="nvmlDeviceGetTotalEnergyConsumption: millijoules since the driver was loaded",
                resolution_joules=MILLI,
                window_seconds=REFRESH_SECONDS,
                max_watts=CEILING_WATTS,
                moves_within_seconds=10.0,
                twin=f"{place}/power" if both else None,
            )
            found.append(Finding(channel.id, "ok", channel=channel))
        if not isinstance(watts, Trouble):
            channel = Channel(
                id=f"{place}/power",
                kind="power",
                scope="gpu",
                basis="measured",
                relative_uncertainty=0.05,
                source="nvmlDeviceGetPowerUsage; on A100 and H100 the sensor sees a quarter of the time",
                window_seconds=AVERAGE_SECONDS,
                max_watts=CEILING_WATTS,
                twin=f"{place}/energy" if both else None,
                headline=not both,
                note="the same joules as the counter, integrated from watts" if both else "",
            )
            found.append(Finding(channel.id, "ok", channel=channel))
        if not found:
            assert isinstance(watts, Trouble)
            return [Finding(place, "absent", f"the GPU is there but gives no power: {watts.reason}")]
        return found


class Gpu:
    """One GPU. Calls take some tens of microseconds, but a sleeping GPU may be woken: once a second."""

    cost: Cost = "dear"

    def __init__(self, context: Context, library: Any, handle: Any, wanted: Sequence[str]) -> None:
        self._context = context
        self._library = library
        self._handle = handle
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        return [sample(self._context, name, partial(self._one, name)) for name in self.channel_ids]

    def close(self) -> None: ...

    def _one(self, name: str) -> float | Trouble:
        if name.endswith("/energy"):
            return _call(self._library.nvmlDeviceGetTotalEnergyConsumption, self._handle)
        return _call(self._library.nvmlDeviceGetPowerUsage, self._handle)


def create() -> Nvml:
    return Nvml()


def _call(function: Callable[[Any], Any], handle: Any) -> float | Trouble:
    """Joules or watts of a call that gives milli; NVML's errors are named in its own words."""
    try:
        value = function(handle)
    except Exception as error:
        return Trouble("absent" if "support" in str(error).lower() else "invalid", str(error))
    if isinstance(value, bool) or not isinstance(value, (int, float)) or value < 0:
        return Trouble("invalid", f"{value!r} is no reading")
    return value * MILLI


def _uuid(library: Any, handle: Any) -> str:
    said = library.nvmlDeviceGetUUID(handle)
    return said.decode("ascii", "replace") if isinstance(said, bytes) else str(said)
