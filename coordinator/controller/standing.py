"""Who takes part in the next round, and within which bounds: misses, floors, caps, and what each board costs.

The first step of every policy, so that all treat silent boards and missing joules alike.
"""

from dataclasses import dataclass

from coordinator.controller import MODELLED, InfeasibleError, Member, Pool


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
    joules: list[float | None]  # per sample, imputed ones included
    left: tuple[str, ...]
    notes: list[str]


def standing(pool: Pool) -> Standing:
    """Boards that missed too often are out; those that missed often are held at their floor."""
    settings, budget = pool.settings, pool.budget
    members: list[Member] = []
    left: list[str] = []
    silent: list[int] = []
    for member in pool.members:
        misses = 0 if member.memory is None else member.memory.misses
        if misses >= settings.misses_to_leave:
            left.append(member.board)
            continue
        if misses >= settings.misses_to_floor:
            silent.append(len(members))
        members.append(member)
    if not members:
        raise InfeasibleError(
            "no board is left in the pool" + (f": {', '.join(left)} missed too often" if left else "")
        )
    floors = [member.floor for member in members]
    caps = [budget if member.cap is None else member.cap for member in members]
    notes = [f"{board} left the pool after {settings.misses_to_leave} missed rounds" for board in left]
    held = list(caps)
    for i in silent:
        held[i] = floors[i]
    if silent and sum(held) >= budget:
        caps = held
        for i in silent:
            notes.append(
                f"{members[i].board} gets its floor: {settings.misses_to_floor} rounds without a report"
            )
    elif silent:
        notes.append("too few boards report to hold the silent ones at their floors")
    seconds = [None if member.memory is None else member.memory.seconds_per_sample for member in members]
    return Standing(
        budget=budget,
        members=members,
        previous=[member.previous for member in members],
        boards=[member.board for member in members],
        floors=floors,
        caps=caps,
        seconds=seconds,
        joules=[_joules(member) for member in members],
        left=tuple(left),
        notes=notes,
    )


def basis(member: Member) -> str | None:
    """Where the board's joules per sample come from; None where there are none."""
    memory = member.memory
    if memory is None or memory.seconds_per_sample is None:
        return None
    if memory.joules_per_sample is not None:
        return memory.basis
    return None if member.watts_prior is None else MODELLED


def energy_notes(members: list[Member]) -> list[str]:
    """What a reader must know of the joules behind a decision: missing, modelled, stale or mixed ones."""
    modelled, missing, stale, kinds = [], [], [], set[str]()
    for member in members:
        memory = member.memory
        if memory is None or memory.seconds_per_sample is None:
            continue
        kind = basis(member)
        kinds.add(kind or "none")
        if kind is None:
            missing.append(member.board)
        elif kind == MODELLED:
            modelled.append(f"{member.board} ({member.watts_prior:g} W)")
        elif memory.joules_round != memory.round:
            stale.append(f"{member.board} (round {memory.joules_round})")
    notes = []
    if kinds == {"none"}:
        notes.append(
            "no board has joules or configured watts: the energy weight has no effect, shares go by time"
        )
    elif missing:
        notes.append(
            f"charged at the pool's median watts, having neither joules nor watts: {', '.join(missing)}"
        )
    if modelled:
        notes.append(f"joules modelled as seconds x configured watts: {', '.join(modelled)}")
    if stale:
        notes.append(f"joules from an older round: {', '.join(stale)}")
    if len(kinds) > 1:
        notes.append(f"joules of different basis in one pool: {', '.join(sorted(kinds))}")
    return notes


def _joules(member: Member) -> float | None:
    memory = member.memory
    if memory is None:
        return None
    if memory.joules_per_sample is not None:
        return memory.joules_per_sample
    if memory.seconds_per_sample is None or member.watts_prior is None:
        return None
    return memory.seconds_per_sample * member.watts_prior
