"""Raspberry Pi 5: the sum of the PMIC's rails by `vcgencmd pmic_read_adc`, and a published fit to the input.

USB, HAT, NVMe and fan hang on 5 V and are not seen, so the fit is `calibrated` with a wide bound. Earlier Pis
have no current sensing. Fit: jfikar/RPi5-power, wall = 1.1451 x sum + 0.5879 W.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from probes import Channel, CommandError, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble, text

COMMAND = ("vcgencmd", "pmic_read_adc")
TIMEOUT_SECONDS = 2.0
SLOPE = 1.1451
OFFSET_WATTS = 0.5879
READING = re.compile(r"(\w+)_([AV]) (?:current|volt)\(\d+\)=(-?\d+\.\d+)[AV]")
RAILS = 8  # fewer pairs than this is another firmware's answer
FIT = "rpi_pmic/input"
SUM = "rpi_pmic/rails"


class RpiPmic:
    name = "rpi_pmic"

    def detect(self, context: Context) -> list[Finding]:
        model = text(context, context.path("/proc/device-tree/model"))
        value = rail_watts(context)
        if isinstance(value, Trouble):
            # Off a Raspberry Pi 5 there is nothing to report.
            if isinstance(model, Trouble) or "Raspberry Pi 5" not in model:
                return []
            remedy = "sudo usermod -aG video edged" if value.status == "denied" else ""
            return [Finding(FIT, value.status, value.reason, remedy, _fit())]
        rails = Channel(
            id=SUM,
            kind="power",
            scope="rail",
            basis="measured",
            relative_uncertainty=0.05,
            source="vcgencmd pmic_read_adc: volts x amperes of every rail, added",
            parent=FIT,
            headline=False,
        )
        return [Finding(FIT, "ok", channel=_fit()), Finding(SUM, "ok", channel=rails)]

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Pmic(context, [channel.id for channel in channels])]


class Pmic:
    """One process per reading, so once a second and no more."""

    cost: Cost = "dear"

    def __init__(self, context: Context, wanted: Sequence[str]) -> None:
        self._context = context
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        clock = self._context.clock
        before = clock.monotonic()
        watts = rail_watts(self._context)
        after, boot = clock.monotonic(), clock.boottime()
        at, delay = (before + after) / 2, after - before
        if isinstance(watts, Trouble):
            return [Sample(name, at, boot, None, watts.status, watts.reason) for name in self.channel_ids]
        values = {SUM: watts, FIT: SLOPE * watts + OFFSET_WATTS}
        return [Sample(name, at, boot, values[name], delay_seconds=delay) for name in self.channel_ids]

    def close(self) -> None: ...


def create() -> RpiPmic:
    return RpiPmic()


def rail_watts(context: Context) -> float | Trouble:
    """Volts x amperes over the rails that have both, paired by name: the channel numbers do not match."""
    try:
        result = context.run(COMMAND, TIMEOUT_SECONDS)
    except CommandError as error:
        return Trouble("denied" if "may not" in str(error) else "absent", str(error))
    said = (result.output + result.error).strip()
    if result.code != 0 or "error" in said.lower():
        denied = "permission" in said.lower() or "vchi" in said.lower() or "/dev/vcio" in said
        return Trouble("denied" if denied else "invalid", f"vcgencmd: {said[:100] or f'code {result.code}'}")
    found: dict[str, dict[str, float]] = {}
    for name, unit, value in READING.findall(result.output):
        found.setdefault(name, {})[unit] = float(value)
    pairs = [one for one in found.values() if len(one) == 2]
    if len(pairs) < RAILS:
        return Trouble("invalid", f"vcgencmd: {len(pairs)} rails have volts and amperes, not {RAILS}")
    watts = sum(one["A"] * one["V"] for one in pairs)
    return watts if watts >= 0 else Trouble("invalid", f"vcgencmd: the rails add up to {watts:.2f} W")


def _fit() -> Channel:
    return Channel(
        id=FIT,
        kind="power",
        scope="dc_in",
        basis="calibrated",
        relative_uncertainty=0.10,
        source=f"{SLOPE} x rails + {OFFSET_WATTS} W (fit: jfikar/RPi5-power); loads on 5 V are not seen",
        contains=(SUM,),
    )
