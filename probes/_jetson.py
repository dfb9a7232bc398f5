"""PURE. Which Jetson rails make up the module, and which hang below others.

After energymon's JetsonPowerRails.md and NVIDIA's developer guides; rails are found by label, never by bus.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from probes import Scope


class Total(NamedTuple):
    """Rails whose sum is the total, and what it covers."""

    rails: tuple[str, ...]
    scope: Scope


# A rail that feeds all others comes first; where there is none, the documented parallel rails are added.
TOTALS = (
    Total(("VIN",), "dc_in"),
    Total(("POM_5V_IN",), "dc_in"),
    Total(("VDD_IN",), "module"),
    Total(("GPU", "CPU", "SOC", "CV", "VDDRQ", "SYS5V"), "module"),
    Total(("VDD_GPU_SOC", "VDD_CPU_CV", "VIN_SYS_5V0"), "module"),
)

# Rails of these names are a Jetson's: other boards' INA chips are the hwmon probe's.
RAILS = frozenset(
    {rail for total in TOTALS for rail in total.rails if rail != "VIN"}
    | {"POM_5V_GPU", "POM_5V_CPU", "VDD_CPU_GPU_CV", "VDD_SOC", "VDD_CPU", "VDD_GPU", "VDD_MUX", "VDD_WIFI"}
    | {"VDD_DDR", "VDDQ_VDD2_1V8AO", "VDD_GPU_SOC", "VDD_SYS_GPU", "VDD_SYS_SOC", "VDD_SYS_CPU"}
)


def word(said: str) -> str:
    """A rail's name as the rules know it: upper case, with underscores."""
    return said.strip().upper().replace(" ", "_")


def total(rails: Collection[str]) -> Total | None:
    """The first rule whose rails are all there; None where none is: then there is no total (Nano 2GB)."""
    return next((one for one in TOTALS if all(rail in rails for rail in one.rails)), None)


def is_jetson(rails: Collection[str]) -> bool:
    """Whether one of these labels is on a Jetson's schematics."""
    return any(rail in RAILS for rail in rails)
