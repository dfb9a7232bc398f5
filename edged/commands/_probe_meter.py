"""What `edged probe` does with a meter: opens it as the daemon would, measures, compares two channels."""

from __future__ import annotations

import socket
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from datetime import date
from itertools import pairwise
from pathlib import Path

from edged.boards import estimate_options
from edged.boards import load as load_boards
from edged.config import ConfigError, Settings, with_board_id
from edged.config import load as load_settings
from edged.plugs import PlugLink, hearing
from probes import Context, load_all
from probes._calibration import Calibration, fit
from probes._energy import Energy, Mark
from probes._outside import real_context
from probes._recorded import RecordError, lay_out, write
from probes._recorded import load as load_record
from probes.meter import Meter, Options, Preferences

STEP_SECONDS = 5.0  # of the means that are compared
REFERENCE_UNCERTAINTY = 0.02  # of a plug
NEAREST = ("dc_in", "module", "battery", "package")  # to the wall, in this order


class Refused(Exception):  # noqa: N818 -- a refusal is an answer, shown in one line
    """What is asked for cannot be done; the text says why and what would help."""


@dataclass(frozen=True)
class Outcome:
    """A command that ran: its exit status and its energy, or why it did not run."""

    code: int
    energy: Energy | None
    seconds: float = 0.0
    bounds_joules: tuple[float, float] | None = None  # of an estimate: all idle, all busy
    fault: str = ""


@contextmanager
def opened(
    root: Path, config: Path | None, idle_watts: float | None, full_watts: float | None
) -> Iterator[Meter]:
    """A meter as the daemon would open it, on this machine or on a recorded one. Raises Refused."""
    settings = _settings(root, config)
    options = {name: dict(table) for name, table in settings.energy.probes.items()}
    if idle_watts is not None or full_watts is not None:
        if idle_watts is None or full_watts is None or full_watts < idle_watts:
            raise Refused("--idle-watts and --full-watts go together, and full is not below idle")
        options["estimate"] = {
            "idle_watts": idle_watts,
            "full_watts": full_watts,
            "source": "given on the command line",
        }
    table = settings.energy
    preferences = Preferences(prefer=table.prefer, exclude=table.exclude, count_psys=table.count_psys)
    plugs = _plugs(settings, options)
    with tempfile.TemporaryDirectory(prefix="edged-probe-") as folder:
        context = _context(root, Path(folder), options)
        if plugs is not None:
            context = replace(context, mqtt_subscribe=plugs.subscribe)
        meter = Meter(context, load_all(table.exclude), Options(preferences=preferences))
        try:
            yield meter
        finally:
            meter.close()
            if plugs is not None:
                plugs.close()


def measured(meter: Meter, command: Sequence[str]) -> Outcome:
    """Run a command between two marks; Ctrl-C goes to it, and its figures are still given."""
    start = meter.mark()
    try:
        process = subprocess.Popen(list(command))
    except OSError as error:
        return Outcome(127, None, fault=f"{command[0]}: {error.strerror}")
    while True:
        try:
            code = process.wait()
            break
        except KeyboardInterrupt:
            continue  # the terminal has told the command as well; it says when it ends
    end = meter.mark()
    found = meter.measure(start, end)
    return Outcome(code if code >= 0 else 128 - code, found, found.seconds, _bounds(meter, found))


def compared(
    meter: Meter,
    channel: str | None,
    against: str | None,
    seconds: float,
    *,
    tell: Callable[[float], None],
    step_seconds: float = STEP_SECONDS,
) -> Calibration:
    """A calibration of one channel by another, from means over steps. Raises Refused."""
    reference, raw = _pair(meter, channel, against)
    marks = [meter.mark()]
    until = time.monotonic() + seconds
    while (left := until - time.monotonic()) > 0:
        time.sleep(min(step_seconds, left))
        marks.append(meter.mark())
        tell(seconds - max(until - time.monotonic(), 0.0))
    pairs = []
    for start, end in pairwise(marks):
        both = [_watts(meter, start, end, name) for name in (raw, reference)]
        if both[0] is not None and both[1] is not None:
            pairs.append((both[0], both[1]))
    try:
        factor, offset, left_over = fit([x for x, _ in pairs], [y for _, y in pairs])
    except ValueError as error:
        raise Refused(f"{raw} against {reference}: {error}") from None
    uncertainty = (left_over**2 + REFERENCE_UNCERTAINTY**2) ** 0.5
    scope = next(one.scope for one in meter.live().channels if one.channel_id == reference)
    return Calibration(raw, factor, offset, uncertainty, date.today().isoformat(), reference, scope)


def _pair(meter: Meter, channel: str | None, against: str | None) -> tuple[str, str]:
    live = {one.channel_id: one for one in meter.live().channels if one.status == "ok"}
    for name in (channel, against):
        if name is not None and name not in live:
            raise Refused(f"no channel {name!r} that reads; there are: {', '.join(live) or 'none'}")
    walls = [name for name, one in live.items() if one.scope == "wall" and one.basis == "measured"]
    reference = against or next(iter(walls), None)
    if reference is None:
        raise Refused("no wall meter to scale to: configure [energy.plug], or name one by --against")
    place = reference.rpartition("/")[0]
    own = [
        one
        for name, one in live.items()
        if name.rpartition("/")[0] != place and one.basis in ("measured", "estimated") and one.scope != "rail"
    ]
    own.sort(key=lambda one: NEAREST.index(one.scope) if one.scope in NEAREST else len(NEAREST))
    raw = channel or (own[0].channel_id if own else None)
    if raw is None:
        raise Refused(f"nothing to scale to {reference}: no other channel reads here")
    return reference, raw


def _watts(meter: Meter, start: Mark, end: Mark, channel_id: str) -> float | None:
    found = meter.window(start, end, (channel_id,))
    return None if found.joules is None or found.seconds <= 0 else found.joules / found.seconds


def _settings(root: Path, config: Path | None) -> Settings:
    """The board's settings; below another root this machine's own file says nothing."""
    try:
        return load_settings(config, {}) if root == Path("/") or config is not None else Settings()
    except ConfigError as error:
        raise Refused(str(error)) from None


def _plugs(settings: Settings, options: dict[str, dict[str, object]]) -> PlugLink | None:
    """A link to a plug that speaks MQTT, where the settings name one."""
    if not options.get("plug", {}).get("topic"):
        return None
    from edged.daemon import link_config

    try:
        return hearing(link_config(with_board_id(settings, socket.gethostname())), options)
    except (ConfigError, ValueError) as error:
        raise Refused(str(error)) from None


def _context(root: Path, folder: Path, options: dict[str, dict[str, object]]) -> Context:
    """The machine below a root, with the published watts of the board that it is where none were given."""
    if root.suffix != ".json":
        if not root.is_dir():
            raise Refused(f"--root {root}: neither a folder nor a recorded machine's JSON file")
        return real_context(root, _with_estimate(root, options))
    try:
        record = load_record(root)
    except RecordError as error:
        raise Refused(str(error)) from None
    write(record, folder)
    return lay_out(record, folder, _with_estimate(folder, options))


def _with_estimate(root: Path, options: dict[str, dict[str, object]]) -> dict[str, dict[str, object]]:
    boards = load_boards()
    board = boards.identify(root)
    if board is None or "estimate" in options:
        return options
    return {**options, "estimate": estimate_options(boards.find(board))}


def _bounds(meter: Meter, found: Energy) -> tuple[float, float] | None:
    """What the window would have used all idle and all busy, where the figure is an estimate."""
    if found.basis != "estimated" or found.joules is None:
        return None
    table = meter.options_of("estimate")
    idle, full = table.get("idle_watts"), table.get("full_watts")
    if not isinstance(idle, (int, float)) or not isinstance(full, (int, float)):
        return None
    return idle * found.seconds, full * found.seconds
