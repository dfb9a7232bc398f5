"""How `edged probe` shows what it found: tables, bars, figures in words, and the same as JSON."""

from __future__ import annotations

import json
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict
from typing import TYPE_CHECKING, Any

from probes._calibration import Calibration
from probes._energy import Energy, Live
from probes.meter import Found, Meter

if TYPE_CHECKING:
    from rich.table import Table

    from edged.commands._probe_meter import Outcome

BAR = 30
MARKS = {"headline": "*", "component": "+", "excluded": "-", "unavailable": " "}


def as_json(found: Sequence[Found], live: Live) -> str:
    rows = [
        {
            "id": one.source,
            "role": one.role,
            "status": one.status,
            "reason": one.reason,
            "remedy": one.remedy,
            "why": one.why,
            "watts": one.watts,
            **({} if one.channel is None else _facts(one)),
        }
        for one in found
    ]
    headline = {
        "channel": live.headline_channel_id,
        "scope": live.scope,
        "basis": live.basis,
        "watts": live.watts,
        "reason": live.reason,
    }
    return json.dumps({"headline": headline, "channels": rows}, indent=1)


def table(found: Sequence[Found], live: Live) -> str:
    """The channels, the headline in words, and what would help; wide enough for what it holds."""
    from rich.table import Table

    rows = Table(box=None, pad_edge=False)
    for name in ("", "channel", "covers", "basis", "step", "+-", "watts", "status", "why"):
        rows.add_column(name, justify="right" if name in ("step", "+-", "watts") else "left", overflow="fold")
    for one in found:
        channel = one.channel
        rows.add_row(
            MARKS[one.role],
            one.source,
            "" if channel is None else channel.scope,
            "" if channel is None else channel.basis,
            ""
            if channel is None or channel.resolution_joules is None
            else f"{channel.resolution_joules:.2g} J",
            "" if channel is None else f"{100 * channel.relative_uncertainty:.0f} %",
            "" if one.watts is None else f"{one.watts:.2f}",
            one.status,
            one.why,
        )
    lines = [_plain(rows), ""]
    if live.headline_channel_id is None:
        lines.append(f"No figure: {live.reason}")
    else:
        lines.append(f"* headline: {live.headline_channel_id} ({live.scope}, {live.basis}): {live.reason}")
    lines += _remedies(found, "  ")
    return "\n".join(lines)


def bars(meter: Meter, seconds: float) -> None:
    """A bar a channel, drawn again twice a second."""
    from rich.console import Console
    from rich.live import Live as Screen

    until = time.monotonic() + seconds if seconds else None
    most: dict[str, float] = {}
    with Screen(console=Console(), refresh_per_second=4) as screen:
        while until is None or time.monotonic() < until:
            screen.update(_bars(meter.live(), most))
            time.sleep(0.5)


def stream(meter: Meter, seconds: float) -> None:
    """A line of JSON a second."""
    until = time.monotonic() + seconds if seconds else None
    while until is None or time.monotonic() < until:
        sys.stdout.write(json.dumps(asdict(meter.live())) + "\n")
        sys.stdout.flush()
        time.sleep(1.0)


def measured_json(outcome: Outcome, found: Sequence[Found]) -> str:
    assert outcome.energy is not None
    whole: dict[str, Any] = asdict(outcome.energy)
    whole["average_watts"] = _average(outcome.energy)
    whole["exit_status"] = outcome.code
    whole["bounds_joules"] = outcome.bounds_joules
    whole["remedies"] = [one.remedy for one in found if one.remedy]
    return json.dumps(whole)


def measured_text(outcome: Outcome, found: Sequence[Found]) -> str:
    energy = outcome.energy
    assert energy is not None
    lines = [f"seconds  {energy.seconds:.3f}"]
    if energy.joules is None:
        lines.append(f"joules   unknown: {energy.reason}")
        if energy.partial_joules is not None:
            lines.append(f"         {energy.partial_joules:.3f} J in the part that was measured")
        lines += _remedies(found, "         ")
        return "\n".join(lines)
    spread = energy.uncertainty_joules or 0.0
    lines.append(f"joules   {energy.joules:.3f} +- {spread:.3f} (k = 1), {energy.basis}, {energy.scope}")
    if outcome.bounds_joules is not None:
        idle, full = outcome.bounds_joules
        lines.append(
            f"         nothing measures here; between {idle:.3f} J (all idle) and {full:.3f} J (all busy)"
        )
    average = _average(energy)
    lines.append(f"watts    {average:.3f} on average" if average is not None else "watts    unknown")
    lines.append(f"by       {energy.channel_id}: {energy.reason}")
    for name, joules in energy.components.items():
        lines.append(f"beside   {name}: {'unknown' if joules is None else f'{joules:.3f} J'} (not added)")
    if energy.flags:
        lines.append(f"flags    {', '.join(energy.flags)}")
    return "\n".join(lines)


def progress(seconds: float) -> Callable[[float], None]:
    """A line on a terminal's standard error that is written over; silent elsewhere."""

    def tell(done: float) -> None:
        if sys.stderr.isatty():
            end = "\n" if done >= seconds else ""
            sys.stderr.write(f"\r{done:.0f} of {seconds:.0f} s compared{end}")
            sys.stderr.flush()

    return tell


def calibration_json(found: Calibration) -> str:
    return json.dumps(asdict(found))


def calibration_text(found: Calibration) -> str:
    """The lines for edged.toml, ready to paste."""
    return "\n".join(
        (
            "# add to edged.toml; the raw channel stays, the scaled one becomes the headline",
            f'[energy.calibration."{found.channel_id}"]',
            f"factor = {found.factor:.5g}",
            f"offset_watts = {found.offset_watts:.4g}",
            f"relative_uncertainty = {found.relative_uncertainty:.3g}",
            f'date = "{found.date}"',
            f'against = "{found.against}"',
            f'scope = "{found.scope}"',
        )
    )


def _remedies(found: Sequence[Found], indent: str) -> list[str]:
    """A command that helps several channels stands once, behind their names."""
    helped: dict[str, list[str]] = {}
    for one in found:
        if one.remedy:
            helped.setdefault(one.remedy, []).append(one.source)
    return [f"{indent}{', '.join(sources)}: {remedy}" for remedy, sources in helped.items()]


def _facts(one: Found) -> dict[str, Any]:
    assert one.channel is not None
    facts = asdict(one.channel)
    del facts["id"]
    return facts


def _average(energy: Energy) -> float | None:
    return None if energy.joules is None or energy.seconds <= 0 else energy.joules / energy.seconds


def _bars(live: Live, most: dict[str, float]) -> Table:
    from rich.table import Table

    rows = Table(box=None, pad_edge=False)
    for name in ("", "channel", "covers", "basis", "watts", "", "joules"):
        rows.add_column(name, justify="right" if name in ("watts", "joules") else "left", no_wrap=True)
    for one in live.channels:
        top = most[one.channel_id] = max(most.get(one.channel_id, 1e-9), one.watts or 0.0)
        filled = round(BAR * (one.watts or 0.0) / top)
        rows.add_row(
            "*" if one.headline else "",
            one.channel_id,
            one.scope,
            one.basis,
            one.status if one.watts is None else f"{one.watts:.2f}",
            "" if one.watts is None else "#" * filled + "." * (BAR - filled),
            "" if one.joules is None else f"{one.joules:.1f}",
        )
    if not live.channels:
        rows.add_row("", live.reason, "", "", "", "", "")
    return rows


def _plain(rows: Table) -> str:
    """A table as text, as wide as the terminal."""
    import shutil

    from rich.console import Console

    width = max(shutil.get_terminal_size((160, 40)).columns, 100)
    console = Console(width=width, no_color=True, highlight=False)
    with console.capture() as capture:
        console.print(rows)
    return "\n".join(line.rstrip() for line in capture.get().splitlines())
