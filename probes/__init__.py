"""The contract of an energy probe, and how probes are found.

One file in this folder is one kind of sensor; files that start with `_` help them. A probe finds channels and
opens readers; it adds nothing up: `meter.py` turns readings into joules. Everything outside the process comes
in through `Context`.
"""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal, Protocol, runtime_checkable

Kind = Literal["counter", "power", "model"]
"""`counter` reads joules since some start, `power` watts now, `model` computes joules since some start."""

Scope = Literal["wall", "dc_in", "battery", "module", "platform", "package", "dram", "gpu", "rail"]
"""What the joules cover; joules of two scopes are never added, save package + dram + gpu (`_choice.py`)."""

Basis = Literal["measured", "calibrated", "estimated", "emulated"]
Status = Literal["ok", "denied", "absent", "invalid", "stale", "frozen"]
Cost = Literal["cheap", "dear"]
"""A `cheap` read is a file or two (10 Hz); a `dear` one starts a process or crosses a network (1 Hz)."""


@dataclass(frozen=True, slots=True)
class Channel:
    """One quantity that can be read; its id is made of names and bus addresses, not of a boot-time index."""

    id: str
    kind: Kind
    scope: Scope
    basis: Basis
    relative_uncertainty: float  # standard uncertainty (k = 1) as a share of the reading
    source: str  # where the number comes from, for a reader
    resolution_joules: float | None = None  # smallest step of a counter
    window_seconds: float | None = None  # over which the sensor itself averages or refreshes
    range_joules: float | None = None  # a counter starts again at 0 above this
    max_watts: float | None = None  # more than this is not believed
    back_step_joules: float = 0.0  # a fall up to this is the counter's own rounding, not a wrap
    moves_within_seconds: float | None = None  # a live counter of this kind cannot stand still for longer
    contains: tuple[str, ...] = ()  # ids of channels whose joules are part of this one's
    parent: str | None = None  # the channel that this one is part of
    twin: str | None = None  # the same quantity by another kind: a plug's power beside its counter
    may_mirror: str | None = None  # a counter that this one may turn out to be the double of
    meter_id: str | None = None  # two boards that name one meter report the same joules
    counts_suspend: bool = False  # the meter has its own supply and clock: a sleeping board does not stop it
    headline: bool = True  # false: shown beside the headline, never chosen (a part, a mirror, an opt-in)
    note: str = ""  # why it is not the headline, or what to know about it
    flags: tuple[str, ...] = ()  # published with every figure of this channel


@dataclass(frozen=True, slots=True)
class Finding:
    """What `detect` saw: a channel that gave one valid reading, or why there is none, and the way out."""

    source: str  # channel id, or the place looked at
    status: Status
    reason: str = ""
    remedy: str = ""  # one command or line that helps; empty when nothing does
    channel: Channel | None = None  # also given where present but not readable


@dataclass(frozen=True, slots=True)
class Sample:
    """One reading. `value` is joules (counter, model) or watts (power), and None unless `status` is ok.

    A double holds 2**32 joules to half a microjoule, so counters lose nothing by being joules.
    """

    channel_id: str
    monotonic_seconds: float
    boottime_seconds: float
    value: float | None
    status: Status = "ok"
    reason: str = ""
    delay_seconds: float = 0.0  # how long the answer took: its instant is known no better than this


class Reader(Protocol):
    """Reads the channels of one device; the meter may call it from another thread, never from two at once."""

    channel_ids: tuple[str, ...]
    cost: Cost

    def read(self) -> list[Sample]:
        """One sample per channel. Trouble is a status with a reason; an exception counts as `invalid`."""
        ...

    def close(self) -> None: ...


@runtime_checkable
class Recalling(Protocol):
    """A reader that knows its cumulative value at any past instant, so the meter need not interpolate."""

    def value_at(self, channel_id: str, monotonic_seconds: float) -> float: ...


class Probe(Protocol):
    """One kind of sensor. `detect` keeps no state and may be called again at any time."""

    name: str

    def detect(self, context: Context) -> list[Finding]:
        """Every channel that answers, and every one that is there but does not, with the remedy."""
        ...

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        """Readers for these channels, one per device, so that one that hangs stops no other."""
        ...


@runtime_checkable
class Checking(Protocol):
    """A probe that tells whether its options can be used without a look at the machine."""

    def check(self, options: Mapping[str, Mapping[str, object]]) -> None:
        """Raises ValueError with the key, what it held and what it takes. `options` as in `Context`."""
        ...


class Clock(Protocol):
    """CLOCK_MONOTONIC for differences, CLOCK_BOOTTIME beside it to see a suspend; never wall time."""

    def monotonic(self) -> float: ...

    def boottime(self) -> float: ...


@dataclass(frozen=True, slots=True)
class CommandResult:
    """What a command that ended left: its exit code, stdout and stderr."""

    code: int
    output: str
    error: str


class CommandError(Exception):
    """The command is not there, may not be run or did not end in time; the text says which."""


class HttpError(Exception):
    """No usable answer: the text names host, port and what went wrong."""


@dataclass(frozen=True, slots=True)
class Context:
    """Everything outside the process that a probe may touch; `probes._outside` makes the real one."""

    root: Path
    clock: Clock
    run: Callable[[Sequence[str], float], CommandResult]  # argv, timeout in seconds
    stream: Callable[[Sequence[str], Callable[[str | None], None]], Callable[[], None]]
    """Starts a command and gives each line it prints to the callback, None at its end; gives the stop."""
    http_get: Callable[[str, float], bytes]  # url, timeout in seconds; body of a 200 answer, bounded
    read_bytes: Callable[[Path], bytes]  # the first 64 KiB of a file; raises OSError
    mqtt_subscribe: Callable[[str, Callable[[str, bytes], None]], Callable[[], None]] | None = None
    """Topic filter and a callback(topic, payload); gives back the unsubscribe. None without a broker link."""
    load_module: Callable[[str], Any] = importlib.import_module
    """An optional library by name (`pynvml`, `pyRAPL.Sensor`); raises ImportError where there is none."""
    activity: Callable[[float], float] | None = None
    """Seconds of training up to an instant of CLOCK_MONOTONIC, never decreasing: what `emulated` meters."""
    options: Mapping[str, Mapping[str, object]] = field(default_factory=dict)
    """The `[energy.X]` table of each probe, by its name."""

    def path(self, text: str) -> Path:
        """`/sys/...` below the root."""
        return self.root / text.lstrip("/")


def names() -> list[str]:
    """The probes of this folder, by file name."""
    found = (module.name for module in pkgutil.iter_modules(__path__))
    return sorted(name for name in found if not name.startswith("_") and name != "meter")


def load(name: str) -> Probe:
    """The probe of one file: what its `create()` makes. Raises LookupError with the names there are."""
    if name not in names():
        raise LookupError(f"no probe named {name!r}; there are: {', '.join(names())}")
    return _create(name)


def load_all(exclude: Sequence[str] = ()) -> list[Probe]:
    """Every probe of this folder, and those that installed packages add under `edged.probes`."""
    from importlib.metadata import entry_points

    found = [_create(name) for name in names() if name not in exclude]
    found += [entry.load()() for entry in entry_points(group="edged.probes") if entry.name not in exclude]
    return found


def _create(name: str) -> Probe:
    probe: Probe = importlib.import_module(f"{__name__}.{name}").create()
    return probe
