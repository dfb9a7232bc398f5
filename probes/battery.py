"""What the system draws from its batteries while nothing else feeds it; on mains they show no load.

Kernel: Documentation/ABI/testing/sysfs-class-power (microvolts, microamperes, microwatts). Its energy
counters step by some 10 mWh, too coarse for a round: power is integrated.
"""

from __future__ import annotations

from collections.abc import Sequence

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, entries, number, sample, text

TOP = "/sys/class/power_supply"
ID = "battery/system"
MICRO = 1e-6


class Battery:
    name = "battery"

    def detect(self, context: Context) -> list[Finding]:
        batteries = _batteries(context)
        if not batteries:
            return []
        channel = Channel(
            id=ID,
            kind="power",
            scope="battery",
            basis="measured",
            relative_uncertainty=0.05,
            source=f"{TOP}/{{{','.join(batteries)}}}/power_now, or voltage_now x current_now",
            window_seconds=1.0,  # gauges refresh about that often
        )
        value = _watts(context)
        if isinstance(value, Trouble):
            return [Finding(ID, value.status, value.reason, channel=channel)]
        return [Finding(ID, "ok", channel=channel)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Discharge(context)] if channels else []


class Discharge:
    """All system batteries together; invalid from the moment a supply is plugged in."""

    cost: Cost = "cheap"

    def __init__(self, context: Context) -> None:
        self._context = context
        self.channel_ids: tuple[str, ...] = (ID,)

    def read(self) -> list[Sample]:
        return [sample(self._context, ID, lambda: _watts(self._context))]

    def close(self) -> None: ...


def create() -> Battery:
    return Battery()


def _said(context: Context, name: str, file: str) -> str:
    found = text(context, context.path(TOP) / name / file)
    return "" if isinstance(found, Trouble) else found


def _batteries(context: Context) -> list[str]:
    """Those that feed the system: not a mouse's (scope Device), not an empty bay."""
    return [
        name
        for name in entries(context.path(TOP))
        if _said(context, name, "type") == "Battery"
        and _said(context, name, "scope") != "Device"
        and _said(context, name, "present") != "0"
    ]


def _watts(context: Context) -> float | Trouble:
    top = context.path(TOP)
    for name in entries(top):
        if (
            _said(context, name, "type") in ("Mains", "USB", "Wireless", "UPS")
            and _said(context, name, "online") == "1"
        ):
            return Trouble(
                "invalid", f"supply-change: {name} is plugged in, so the battery does not show the load"
            )
    batteries = _batteries(context)
    status = {name: _said(context, name, "status") for name in batteries}
    draining = [name for name in batteries if status[name] == "Discharging"]
    if not draining or "Charging" in status.values():
        said = ", ".join(f"{name} is {status[name] or 'silent'}" for name in batteries)
        return Trouble("invalid", f"not discharging ({said or 'no battery'})")
    total = 0.0
    for name in draining:
        watts = _one(context, name)
        if isinstance(watts, Trouble):
            return watts
        total += watts
    if total <= 0:
        return Trouble("invalid", "a discharging battery that shows 0 W gives no information")
    return total


def _one(context: Context, name: str) -> float | Trouble:
    """The sign of current and power differs by driver; the status has said which way it flows."""
    folder = context.path(TOP) / name
    power = number(context, folder / "power_now", MICRO)
    if not isinstance(power, Trouble):
        return abs(power)
    volts = number(context, folder / "voltage_now", MICRO)
    amperes = number(context, folder / "current_now", MICRO)
    if isinstance(volts, Trouble) or isinstance(amperes, Trouble):
        worst = volts if isinstance(volts, Trouble) else amperes
        assert isinstance(worst, Trouble)
        return worst if worst.status != "absent" else power
    return abs(volts * amperes)
