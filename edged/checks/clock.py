"""Whether this board's clocks can be believed. Nothing that is measured depends on the wall clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime, timezone

from msgspec import Struct

from edged.checks import Finding

SLEPT_SECONDS = 1.0
EARLIEST = datetime(2026, 1, 1, tzinfo=timezone.utc)  # before this program was written
LATEST = datetime(2046, 1, 1, tzinfo=timezone.utc)
TIME_ERROR = 5  # adjtimex(2): the clock is not synchronised
TIMEX_BYTES = 512  # more than struct timex has on any ISA


class Clocks(Struct, frozen=True):
    """The clocks at one instant; `synchronised` is None where the kernel does not say."""

    wall_seconds: float
    monotonic_seconds: float
    boottime_seconds: float
    synchronised: bool | None


def read() -> Clocks:
    """This machine's."""
    return Clocks(
        time.time(), time.monotonic(), time.clock_gettime(time.CLOCK_BOOTTIME), synchronised=_synchronised()
    )


def examine(clocks: Clocks, *, tls: bool) -> Iterator[Finding]:
    """With `tls` a wrong date keeps the board from its broker: certificates have dates."""
    wall = datetime.fromtimestamp(max(0.0, clocks.wall_seconds), tz=timezone.utc)
    shown = f"{wall:%Y-%m-%d %H:%M} UTC"
    if not EARLIEST <= wall < LATEST:
        why = "certificates of the broker will not be taken" if tls else "its log has wrong times"
        way_out = "sudo timedatectl set-ntp true; a board without a clock's battery takes the time from there"
        yield Finding("clock", "fail" if tls else "warn", f"{shown} cannot be: {why}", way_out)
    elif clocks.synchronised is False:
        text = (
            f"{shown}, not synchronised: its log may have wrong times; seconds and joules do not depend on it"
        )
        yield Finding("clock", "warn", text, "sudo timedatectl set-ntp true")
    else:
        said = "synchronised" if clocks.synchronised else "the kernel does not say whether it is synchronised"
        yield Finding("clock", "ok", f"{shown}, {said}")
    slept = clocks.boottime_seconds - clocks.monotonic_seconds
    if slept > SLEPT_SECONDS:
        text = f"this board slept {slept:,.0f} s since it was started: joules of such a round are unknown"
        way_out = "sudo systemctl mask sleep.target suspend.target hibernate.target hybrid-sleep.target"
        yield Finding("suspend", "warn", text, way_out)
    else:
        yield Finding("suspend", "ok", "not since this board was started")


def _synchronised() -> bool | None:
    """As the kernel was told by whichever program keeps the time (chrony, timesyncd, ntpd)."""
    import ctypes

    try:
        state = ctypes.CDLL(None).adjtimex(ctypes.create_string_buffer(TIMEX_BYTES))
    except (OSError, AttributeError):
        return None
    return None if state < 0 else state != TIME_ERROR
