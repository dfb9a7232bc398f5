"""PURE. Which one scope a board is charged by, and why no other joules are added to it.

Nested scopes are never added. The only sum is package + dram + discrete GPUs, which lie beside one another.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from probes import Basis, Channel, Status

Role = Literal["headline", "component", "excluded", "unavailable"]

COARSE_STEPS = 20  # a window should hold this many steps of a counter, else watts are integrated
TYPICAL_WATTS = 5.0  # of a board whose watts are not known yet
LOOSE = 0.1  # a dc_in channel no better than this is a fit of part of the board: package counters come first

_BASES: tuple[Basis, ...] = ("measured", "calibrated", "estimated", "emulated")


class Seen(NamedTuple):
    """A channel as it stands; `watts` where known."""

    channel: Channel
    status: Status
    reason: str = ""
    watts: float | None = None


class Verdict(NamedTuple):
    """A channel's part in the headline and the reason, for people."""

    role: Role
    why: str


@dataclass(frozen=True, slots=True)
class Preferences:
    """`prefer` and `exclude` hold probe names, channel ids or scopes; `round_seconds` is a usual window."""

    prefer: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    count_psys: bool = False
    round_seconds: float = 30.0


@dataclass(frozen=True, slots=True)
class Choice:
    """`channel_ids` is empty where nothing measures; `reason` says why, or why this one."""

    channel_ids: tuple[str, ...]
    scope: str | None
    basis: Basis | None
    reason: str
    verdicts: Mapping[str, Verdict] = field(default_factory=dict)


def names(channel: Channel, words: Sequence[str]) -> int | None:
    """The place of the first word that names this channel: by id, probe or scope."""
    own = (channel.id, channel.id.partition("/")[0], channel.scope)
    return next((place for place, word in enumerate(words) if word in own), None)


def scope_of(channels: Sequence[Channel]) -> str:
    """`package+dram+gpu` where they are added."""
    return "+".join(dict.fromkeys(channel.scope for channel in channels))


def weakest(channels: Sequence[Channel]) -> Basis:
    """A sum is no better than its worst part."""
    return max((channel.basis for channel in channels), key=_BASES.index)


def choose(seen: Sequence[Seen], preferences: Preferences, stay: str | None = None) -> Choice:
    """The headline among the channels that read `ok`, and a verdict on every channel.

    Inside a run `stay` is the scope it began with, which then comes before every other.
    """
    verdicts: dict[str, Verdict] = {}
    able: list[Seen] = []
    for one in seen:
        if names(one.channel, preferences.exclude) is not None:
            verdicts[one.channel.id] = Verdict("excluded", "excluded by the configuration")
        elif one.status != "ok":
            verdicts[one.channel.id] = Verdict("unavailable", f"{one.status}: {one.reason}".rstrip(": "))
        else:
            able.append(one)
    groups = _groups(able, seen, preferences)
    groups.sort(key=lambda group: (scope_of(group.channels) != stay, *group.order))
    if not groups:
        might = [one.channel.id for one in seen if one.channel.headline and one.channel.id in verdicts]
        missing = [f"{id} is {verdicts[id].why}" for id in might]
        reason = "nothing measures here" + (f" ({'; '.join(missing)})" if missing else "")
        for one in able:
            verdicts[one.channel.id] = Verdict("component", _why_not(one.channel, (), preferences))
        return Choice((), None, None, reason, verdicts)
    best = groups[0]
    for one in able:
        role: Role = "headline" if one.channel in best.channels else "component"
        why = best.why if role == "headline" else _why_not(one.channel, best.channels, preferences)
        verdicts[one.channel.id] = Verdict(role, why)
    return Choice(
        tuple(channel.id for channel in best.channels),
        scope_of(best.channels),
        weakest(best.channels),
        best.why,
        verdicts,
    )


class _Group(NamedTuple):
    order: tuple[float, ...]
    channels: tuple[Channel, ...]
    why: str


def _groups(able: Sequence[Seen], seen: Sequence[Seen], preferences: Preferences) -> list[_Group]:
    found: list[_Group] = []
    for one in able:
        channel = one.channel
        preferred = names(channel, preferences.prefer)
        opted_in = channel.scope == "platform" and preferences.count_psys
        if not (channel.headline or opted_in or preferred is not None):
            continue
        if channel.scope in ("package", "dram") or (channel.scope == "rail" and preferred is None):
            continue
        rank, why = _rank(channel, opted_in or preferred is not None)
        if rank is None:
            continue
        coarse = _too_coarse(one, able, preferences)
        order = (_place(preferred), rank, coarse, channel.relative_uncertainty, channel.kind != "counter")
        found.append(
            _Group(order, (channel,), why if preferred is None else f"preferred in the config; {why}")
        )
    return found + _package_groups(able, seen, preferences)


def _rank(channel: Channel, opted_in: bool) -> tuple[float | None, str]:
    if channel.basis == "emulated":
        return 0, "this board is emulated: real sensors here would measure another machine"
    if channel.basis == "estimated":
        return 9, "nothing measures here: a model of the board stands in"
    if channel.basis == "calibrated" and channel.scope == "wall":
        return 1.5, "scaled to what a wall meter once said of this board"
    if channel.meter_id is not None or channel.scope == "wall":
        return 1, "the configured meter sees everything the board draws"
    if channel.scope == "dc_in" and channel.relative_uncertainty < LOOSE:
        return 2, "the board's input, after the adapter"
    if channel.scope == "battery":
        return 3, "the battery feeds the whole system while it discharges"
    if channel.scope == "module":
        return 4, "the module's input; the carrier board is outside"
    if channel.scope == "dc_in":
        return 6, "a published fit from the rails that are seen to the board's input"
    if channel.scope == "platform":
        return (7, "platform counter, opted in") if opted_in else (None, "")
    if channel.scope == "gpu":
        return 8, "only the GPU can be read: the rest of the machine is not in it"
    return 5, "named in the configuration"


def _package_groups(able: Sequence[Seen], seen: Sequence[Seen], preferences: Preferences) -> list[_Group]:
    """Every package of one probe with its dram, and the discrete GPUs; none where one cannot be read."""
    found = []
    for probe in dict.fromkeys(
        one.channel.id.partition("/")[0] for one in able if one.channel.scope == "package"
    ):
        mine = [one for one in seen if one.channel.id.startswith(f"{probe}/")]
        mine = [one for one in mine if names(one.channel, preferences.exclude) is None]
        mine = sorted(mine, key=lambda one: one.channel.id)
        packages = [one for one in mine if one.channel.scope == "package" and one.channel.headline]
        if not packages or any(one.status != "ok" for one in packages):
            continue
        drams = [one for one in mine if one.channel.scope == "dram" and one.channel.headline]
        gpus = [one for one in able if one.channel.scope == "gpu" and one.channel.headline]
        whole = packages + [one for one in drams if one.status == "ok"] + _no_twins(gpus)
        preferred = [names(one.channel, preferences.prefer) for one in packages]
        place = min((_place(one) for one in preferred), default=_place(None))
        what = "package" + ("s" if len(packages) > 1 else "")
        what += " and dram" if drams else ""
        what += " and discrete GPU" if gpus else ""
        why = f"processor {what}: the rest of the board is not in it"
        if any(one.status != "ok" for one in drams):
            why += " (dram is there but cannot be read)"
        order = (place, 5, 0, max(one.channel.relative_uncertainty for one in whole), probe != "powercap")
        found.append(_Group(order, tuple(one.channel for one in whole), why))
    return found


def _no_twins(gpus: Sequence[Seen]) -> list[Seen]:
    """One channel a GPU: its counter where it has one."""
    counters = {one.channel.id for one in gpus if one.channel.kind == "counter"}
    return [one for one in gpus if one.channel.twin not in counters or one.channel.kind == "counter"]


def _too_coarse(one: Seen, able: Sequence[Seen], preferences: Preferences) -> bool:
    """A counter whose steps are too few in a usual window loses to its twin in watts."""
    channel = one.channel
    if channel.resolution_joules is None or not any(other.channel.id == channel.twin for other in able):
        return False
    watts = one.watts if one.watts is not None else TYPICAL_WATTS
    return watts * preferences.round_seconds < COARSE_STEPS * channel.resolution_joules


def _place(preferred: int | None) -> float:
    return float("inf") if preferred is None else float(preferred)


def _why_not(channel: Channel, headline: Sequence[Channel], preferences: Preferences) -> str:
    if channel.note:
        return channel.note
    if channel.parent is not None:
        return f"part of {channel.parent}: never added"
    if any(channel.twin == chosen.id for chosen in headline):
        return f"the same joules as {channel.twin}, by another kind of reading"
    if channel.scope == "platform":
        return (
            "another measure of the same machine, calibrated by its vendor: not added, opt in with count_psys"
        )
    if channel.scope == "rail":
        return "one rail: what feeds it and what it feeds is not told, so it is not added"
    if channel.scope == "package" and not headline:
        return "another package cannot be read, so the sum would miss a socket"
    return "another scope than the headline: shown beside it, never added"
