"""A probe whose readings are functions of time, for meters under virtual time."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from probes import Channel, Context, Cost, Finding, Reader, Sample
from probes._files import Trouble

Value = Callable[[float], float | Trouble]


class Scripted:
    """`plan` may be changed while it runs: a channel that is no longer in it has gone."""

    def __init__(self, name: str, *plan: tuple[Channel, Value], cost: Cost = "cheap") -> None:
        self.name = name
        self.plan = list(plan)
        self.cost: Cost = cost

    def detect(self, context: Context) -> list[Finding]:
        found = []
        for channel, value in self.plan:
            now = value(context.clock.monotonic())
            if isinstance(now, Trouble):
                found.append(Finding(channel.id, now.status, now.reason, "the way out", channel))
            else:
                found.append(Finding(channel.id, "ok", channel=channel))
        return found

    def open(self, context: Context, channels: Sequence[Channel]) -> list[Reader]:
        return [Script(context, self, [channel.id for channel in channels])]


class Script:
    """The channels of the plan, read in one pass."""

    def __init__(self, context: Context, probe: Scripted, wanted: Sequence[str]) -> None:
        self._context = context
        self._probe = probe
        self.cost: Cost = probe.cost
        self.channel_ids: tuple[str, ...] = tuple(wanted)

    def read(self) -> list[Sample]:
        clock = self._context.clock
        now, boot = clock.monotonic(), clock.boottime()
        made = []
        for name in self.channel_ids:
            value = next((one for channel, one in self._probe.plan if channel.id == name), None)
            found: float | Trouble = Trouble("absent", "unplugged") if value is None else value(now)
            if isinstance(found, Trouble):
                made.append(Sample(name, now, boot, None, found.status, found.reason))
            else:
                made.append(Sample(name, now, boot, found))
        return made

    def close(self) -> None: ...


def channel(id: str, kind: str = "power", scope: str = "dc_in", **more: object) -> Channel:
    """A measured channel with 2 %."""
    fields: dict[str, object] = {
        "basis": "measured",
        "relative_uncertainty": 0.02,
        "source": "scripted",
        **more,
    }
    return Channel(id=id, kind=kind, scope=scope, **fields)  # type: ignore[arg-type]
