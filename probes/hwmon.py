"""Power and energy chips under hwmon on any board: INA2xx, PAC19xx, LTC29xx, SCMI and their like.

A chip's files say watts and joules, not what they are of: a rail, unless a label, a board profile, the only
high voltage among like chips or the configuration (`[energy.hwmon] input = "hwmon/..."`) makes it the input.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

from probes import Channel, Context, Finding, Reader
from probes._chips import at_input, looks_like_a_meter, rejected, says_input
from probes._files import Trouble, number
from probes._hwmon import Chip, chips
from probes._hwmon_reader import Quantities, Quantity, quantities
from probes._settings import SettingError, word
from probes.ina3221 import find as jetson_rails
from probes.powercap import ROOT as POWERCAP

INPUT_VOLTS = 4.5  # boards are fed with 5 V and more
CORE_VOLTS = 2.0  # what hangs below a buck converter
ADAPTER_VOLTS = 11.0


class Hwmon:
    name = "hwmon"

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        _input(options)

    def detect(self, context: Context) -> list[Finding]:
        try:
            wanted = _input(context.options)
        except SettingError as error:
            return [Finding(self.name, "invalid", str(error))]
        findings: list[Finding] = []
        found: list[tuple[Chip, Quantity, float | Trouble]] = []
        for chip in _mine(context):
            no_meter = rejected(context, chip)
            mine = quantities(context, chip)
            if no_meter is not None:
                if looks_like_a_meter(chip):
                    findings.append(
                        Finding(
                            f"hwmon/{chip.place or chip.path.name} ({chip.name})", "invalid", no_meter.reason
                        )
                    )
                continue
            found += [(chip, one, one.read(context)) for one in mine]
        high = _only_high(context, found)
        for chip, quantity, value in found:
            channel = self._channel(context, chip, quantity, high, wanted)
            if isinstance(value, Trouble):
                findings.append(Finding(channel.id, value.status, value.reason, channel=channel))
            else:
                remedy = "" if channel.headline else _hint(context, chip, channel)
                findings.append(Finding(channel.id, "ok", remedy=remedy, channel=channel))
        known = {one.channel.id for one in findings if one.channel is not None}
        if wanted and wanted not in known:
            reason = f"energy.hwmon.input names {wanted!r}; there are: {', '.join(sorted(known)) or 'none'}"
            findings.append(Finding(self.name, "absent", reason))
        return findings

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        """One reader per chip: a bus that hangs stops its own chips alone."""
        readers: list[Reader] = []
        wanted = {channel.id for channel in channels}
        for chip in _mine(context):
            mine = [one for one in quantities(context, chip) if one.id in wanted]
            if mine and rejected(context, chip) is None:
                readers.append(Quantities(context, mine))
        return readers

    @staticmethod
    def _channel(context: Context, chip: Chip, quantity: Quantity, high: Path | None, wanted: str) -> Channel:
        window = number(context, chip.path / "update_interval", 1e-3)
        channel = Channel(
            id=quantity.id,
            kind=quantity.kind,
            scope="rail",
            basis="estimated" if chip.name.startswith("dtpm") else "measured",
            relative_uncertainty=0.02,
            source=f"{chip.name} at {chip.place}: {quantity.describe()}",
            window_seconds=None if isinstance(window, Trouble) or window <= 0 else window,
            twin=quantity.twin,
            headline=False,
        )
        if chip.name == "amdgpu":
            note = "on an APU this is inside the package; prefer it only for a discrete card"
            return replace(channel, scope="gpu", note=note)
        if chip.name == "amd_energy" and quantity.label.lower().startswith("esocket"):
            return replace(channel, scope="package", headline=True, relative_uncertainty=0.05)
        why = ""
        if wanted in (channel.id, channel.twin or "-"):
            why = "the configuration says that it is the board's input"
        elif says_input(quantity.label):
            why = f"its label, {quantity.label!r}, names the board's input"
        elif at_input(context, chip):
            why = "this board's profile says that it is the input"
        elif chip.path == high:
            why = "alone at an input's voltage; the others are rails below it"
        if why:
            return replace(channel, scope="dc_in", headline=True, source=f"{channel.source}; {why}")
        return channel


def _input(options: Mapping[str, Mapping[str, object]]) -> str:
    """The rail that is this board's input, "" where none is named. Raises SettingError."""
    settings = options.get("hwmon", {})
    return word(settings, "hwmon", "input") if "input" in settings else ""


def create() -> Hwmon:
    return Hwmon()


def _mine(context: Context) -> list[Chip]:
    """Not a Jetson's rails, and not what powercap counts already."""
    jetson = {rail.place for rail in jetson_rails(context)}
    powercap = context.path(POWERCAP).is_dir()
    return [
        chip
        for chip in chips(context)
        if not (chip.name in ("ina3221", "ina238") and chip.place in jetson)
        and not (chip.name == "amd_energy" and powercap)
    ]


def _only_high(context: Context, found: Sequence[tuple[Chip, Quantity, float | Trouble]]) -> Path | None:
    """The chip at the board's input, where the voltages leave no other: it alone is high among chips of its
    model that all else measure core rails, or it alone is at an adapter's 12 V and carries the most.
    """
    volts: dict[Path, list[float]] = {}
    watts: dict[Path, list[float]] = {}
    names = {chip.path: chip.name for chip, _, _ in found}
    for chip, quantity, value in found:
        seen = None if quantity.volts is None else number(context, quantity.volts, 1e-3)
        if quantity.kind == "power" and seen is not None and not isinstance(seen, Trouble):
            volts.setdefault(chip.path, []).append(seen)
            watts.setdefault(chip.path, []).append(0.0 if isinstance(value, Trouble) else value)
    for path, own in volts.items():
        others = {other: one for other, one in volts.items() if other != path}
        if len(own) != 1 or own[0] < INPUT_VOLTS or not others:
            continue
        same = [max(one) for other, one in others.items() if names[other] == names[path]]
        if same and max(same) <= CORE_VOLTS:
            return path
        low = max(max(one) for one in others.values()) <= own[0] / 2
        if own[0] >= ADAPTER_VOLTS and low and watts[path][0] >= max(max(watts[one]) for one in others):
            return path
    return None


def _hint(context: Context, chip: Chip, channel: Channel) -> str:
    """How to make the board's input of a rail that could be it."""
    volts = number(context, chip.path / "in1_input", 1e-3)
    if isinstance(volts, Trouble) or volts < INPUT_VOLTS or channel.scope != "rail":
        return ""
    return f'if this is the board\'s input: [energy.hwmon] input = "{channel.id}"'
