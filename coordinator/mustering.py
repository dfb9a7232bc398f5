"""When ranks may meet: all are ready and alike; who is not is named and the others go on without it. Pure."""

from collections import Counter
from ipaddress import AddressValueError, IPv4Address
from typing import TYPE_CHECKING

from coordinator import events as ev
from coordinator.assignments import Assignment
from coordinator.fleet import Fleet
from coordinator.group import Group
from edged.groups import Peer
from edged.messages import Join, Train

if TYPE_CHECKING:
    from coordinator.rounds import Rounds

FORMATION_SECONDS = 60.0
UNLIKE_FORMATION_SECONDS = 120.0


def lack(fleet: Fleet, board: str, others: tuple[str, ...]) -> str:
    """Why the board's address is none for gradients together with these others; empty when it is."""
    birth = fleet.boards[board].birth
    elsewhere = [name for name in others if name in fleet.boards and name != board]
    if not elsewhere:
        return ""
    try:
        address = IPv4Address(birth.address)
    except AddressValueError:
        what = f"only {birth.address}" if birth.address else "no address"
        return f"has {what} towards the broker: gradients need IPv4, set broker.host to an IPv4 address"
    hosts = {fleet.boards[name].birth.host for name in elsewhere}
    if address.is_loopback and hosts - {birth.host}:
        return (
            f"reaches the broker over loopback ({address}), which boards on other hosts cannot reach: "
            "set its broker.host to the broker's address in the network"
        )
    return ""


def unlike(run: "Rounds", group: Group) -> tuple[Assignment, str] | None:
    """A rank that cannot step with the others, and why: another plan, or another model than most have."""
    ranks = [run.state.assignments[board] for board in group.boards]
    ready = [(a, a.ready) for a in ranks if a.ready is not None]
    for a, one in ready:
        plan = a.message.rendezvous.plan if isinstance(a.message, Train) and a.message.rendezvous else ""
        if one.plan != plan:
            return a, f"its plan hash is {one.plan[:12]}, that of the order {plan[:12]}"
    votes = Counter(one.model for _, one in ready)
    if len(ready) == len(ranks) and len(votes) > 1:
        most = max(sorted(votes), key=lambda model: votes[model])
        a = next(a for a, one in ready if one.model != most)
        return a, "its model has other names, shapes or types than that of the other ranks"
    return None


def meet_if_ready(run: "Rounds", group: Group, now: float) -> None:
    """Let the ranks meet once all are ready: in this run's group that they hold, or in a new one. That of an
    older run is not kept: a network that broke since then is noticed in time only while a group forms."""
    s = run.state
    ranks = [s.assignments[board] for board in group.boards]
    ready = [a.ready for a in ranks]
    if group.standing != "mustering" or any(one is None for one in ready):
        return
    held = {one.holds for one in ready if one is not None}
    keep = len(held) == 1 and all(name.startswith(f"{s.run}.") for name in held)
    group.name = held.pop() if keep else f"{s.run}.{group.silo}.{s.round}.{group.attempt}"
    peers = () if keep else tuple(Peer(one.address, one.port) for one in ready if one is not None)
    torches = sorted({one.torch for one in ready if one is not None})
    if len(torches) > 1 and not keep:
        run.note("-", "unlike_torches", f"silo {group.silo} has torch {', '.join(torches)}: it may not form")
    seconds = FORMATION_SECONDS if len(torches) == 1 else UNLIKE_FORMATION_SECONDS
    group.standing = "training"
    run.emit(ev.Save())
    for a in ranks:
        a.join = Join(a.order, s.boot, s.term, group.name, peers, seconds)
        a.repeat_at(now)
        run.repeat(a, now)
    run.emit(ev.Announce())


def unreachable(group: Group) -> list[str]:
    """Fewest boards, as far as told, without which everybody left reaches everybody."""
    pairs, found = [pair for pair in group.blamed if pair[1] in group.boards], []
    while pairs:
        votes = Counter(to for _, to in pairs)
        worst = max(group.boards, key=lambda board: (votes[board], group.boards.index(board)))
        found.append(worst)
        pairs = [pair for pair in pairs if worst not in pair]
    return found
