"""Who takes part in the next round, and within which bounds: misses, floors, caps, and what each board costs.

The first step of every policy, so that all treat silent boards and missing joules alike.
"""

from dataclasses import dataclass, replace

from coordinator.controller import InfeasibleError, Member, Pool


@dataclass(frozen=True, slots=True)
class Standing:
    """The boards that get a share, column by column in board order; None is unknown."""

    budget: int
    members: list[Member]
    boards: list[str]
    previous: list[int | None]
    floors: list[int]
    caps: list[int]  # the budget where there is none
    seconds: list[float | None]  # per sample
    joules: list[float | None]  # per sample
    fixed_seconds: list[float]  # a round; 0 where none is fitted
    fixed_joules: list[float]
    waiting_watts: list[float | None]  # measured while waiting, else of an idle measurement
    left: tuple[str, ...]
    notes: list[str]


def standing(pool: Pool) -> Standing:
    """Boards that missed too often are out; those that missed often are held at their floor."""
    budget = pool.budget
    held_from, out_from = pool.settings.misses_to_floor, pool.settings.misses_to_leave
    now = Standing(budget, [], [], [], [], [], [], [], [], [], [], (), [])
    left: list[str] = []
    silent: list[int] = []
    for member in pool.members:
        memory, watts = member.memory, member.waiting_watts_prior
        tau, eps, a, b = None, None, 0.0, 0.0
        if memory is not None:
            if memory.misses >= out_from:
                left.append(member.board)
                continue
            if memory.misses >= held_from:
                silent.append(len(now.members))
            tau, eps = memory.seconds_per_sample, memory.joules_per_sample
            a, b = memory.fixed_seconds or 0.0, memory.fixed_joules or 0.0
            watts = watts if memory.waiting_watts is None else memory.waiting_watts
        now.members.append(member)
        now.boards.append(member.board)
        now.previous.append(member.previous)
        now.floors.append(member.floor)
        now.caps.append(budget if member.cap is None else member.cap)
        now.seconds.append(tau)
        now.joules.append(eps)
        now.fixed_seconds.append(a)
        now.fixed_joules.append(b)
        now.waiting_watts.append(watts)
    if not now.members:
        gone = f": {', '.join(left)} missed too often" if left else ""
        raise InfeasibleError(f"no board is left in the pool{gone}")
    notes = [
        f"{board} left the pool after {out_from} missed rounds, until it is readmitted" for board in left
    ]
    caps = _held(now, silent, held_from, notes) if silent else now.caps
    return replace(now, caps=caps, left=tuple(left), notes=notes)


def _held(now: Standing, silent: list[int], rounds: int, notes: list[str]) -> list[int]:
    """Caps that hold silent boards at their floors, where the others can take the rest."""
    caps = list(now.caps)
    for i in silent:
        caps[i] = now.floors[i]
    if sum(caps) < now.budget:
        notes.append("too few boards report to hold the silent ones at their floors")
        return now.caps
    notes += [f"{now.boards[i]} gets its floor: {rounds} rounds without a report" for i in silent]
    return caps


def energy_notes(members: list[Member]) -> list[str]:
    """What a reader must know of the joules behind a decision: missing, stale or mixed ones."""
    missing, stale, kinds, scopes = [], [], set[str](), set[str]()
    for member in members:
        memory = member.memory
        if memory is None or memory.seconds_per_sample is None:
            continue
        if memory.joules_per_sample is None:
            missing.append(member.board)
        else:
            kinds.add(memory.basis or "unknown")
            scopes |= {memory.scope} if memory.scope else set()
            if memory.joules_round != memory.round:
                stale.append(f"{member.board} (round {memory.joules_round})")
    notes = []
    if missing and not kinds:
        notes.append(
            "no board has joules or configured watts: the energy weight has no effect, shares go by time"
        )
    elif missing:
        notes.append(f"charged at the pool's median watts, having no joules: {', '.join(missing)}")
    if stale:
        notes.append(f"joules from an older round: {', '.join(stale)}")
    return notes + [
        f"joules of different {what} in one pool: {', '.join(sorted(found))}"
        for what, found in (("basis", kinds), ("scope", scopes))
        if len(found) > 1
    ]
