"""What a run has told of its fleet so far: readings, waiting, communication, present shares and policy.

Pure, from the rows that are stored or told over the broker. `beliefs` says what follows of each board.
"""

from collections.abc import Sequence
from statistics import fmean, median
from typing import Any, Final

import msgspec
from msgspec import Struct

from coordinator.comparison import Recorded, Row
from coordinator.controller import Carry, Memory, Reading, Settings
from coordinator.controller.memories import SHORTEST_WAIT_SECONDS, observe

RECENT: Final = 10
"""Rounds under the present policy and weights that the present point is the mean of."""


class UntoldError(ValueError):
    """The run tells too little; the text says what is missing and what can be done."""


class Evidence(Struct, frozen=True):
    """One board's readings: (samples, seconds, joules) of compute windows, (seconds, joules) of the rest."""

    board: str
    readings: tuple[tuple[int, float, float | None], ...]
    basis: str | None = None
    relative_uncertainty: float | None = None
    waits: tuple[tuple[float, float], ...] = ()
    links: tuple[tuple[float, float | None], ...] = ()
    """Communication and overhead, by round."""
    waiting_watts: float | None = None
    cores: float | None = None


class Present(Struct, frozen=True):
    """What was observed under the present policy and weights, per round; None where it is not known."""

    label: str
    rounds: int
    makespan_seconds: float | None
    joules: float | None


class Situation(Struct, frozen=True):
    """Where a run stands. `batch` and `budget` are those of a round."""

    run: str
    regime: str
    budget: int
    batch: int
    window: str
    settings: Settings
    policy: str
    options: dict[str, Any]
    w_t: float
    w_e: float
    carry: Carry
    shares: dict[str, int]
    memories: dict[str, Memory]
    idle_watts: dict[str, float]
    evidence: tuple[Evidence, ...]
    present: Present
    notes: tuple[str, ...] = ()


def situation(run: Recorded, silo: str | None = None) -> Situation:
    """Of a recorded run, or one that goes on; of hfl-ddp one silo's, whose ranks step as in ddp. Raises
    UntoldError."""
    settings = run.settings
    if settings["regime"] not in ("pma", "ddp", "hfl-ddp"):
        raise UntoldError(
            f"run {run.name} is {settings['regime']}: advice is for pma, ddp and hfl-ddp; compare it with "
            f"another run instead: edged-coordinator compare {run.name} OTHER_RUN"
        )
    if not run.decisions:
        raise UntoldError(f"run {run.name} has decided nothing yet: ask again after its first round")
    last, within = _of_silo(run, run.decisions[-1], silo)
    rules = Settings(fixed_cost=settings.get("fixed_cost", "none"))
    memories = _memories(run, last, rules)
    told = {name: memory for name, memory in memories.items() if memory.history}
    if not told:
        what = f"silo {silo} of run {run.name}" if silo else f"run {run.name}"
        raise UntoldError(f"{what} has no readings yet: ask again after its first round")
    silent = sorted(set(last["decision"]["shares"]) - set(told))
    notes = [f"without a reading, left out: {', '.join(silent)}"] if silent else []
    if within:
        notes.append(f"of silo {silo} alone; what is seen of a round is of all silos and not compared")
    return Situation(
        run.name,
        "ddp" if within else settings["regime"],
        sum(last["decision"]["shares"].values()) if within else int(settings["budget"]),
        int(settings["batch"] or 1),
        settings.get("energy_window", "compute"),
        rules,
        last["policy"],
        dict(last["options"]),
        last["w_t"],
        last["w_e"],
        dict(last["decision"].get("carry", {})),
        {name: int(n) for name, n in last["decision"]["shares"].items() if name in told},
        told,
        {board: watts for board, watts in last.get("idle_watts", {}).items() if watts is not None},
        tuple(_evidence(run, memory, last.get("idle_watts", {})) for _, memory in sorted(told.items())),
        _present(run, last, within),
        tuple(notes),
    )


def _of_silo(run: Recorded, last: Row, silo: str | None) -> tuple[Row, bool]:
    """The last decision as if there were this silo alone, and whether it is one of several."""
    found = last.get("silos")
    if not found:
        if silo is not None:
            raise UntoldError(
                f"run {run.name} is {run.settings['regime']} and has no silos: leave --silo out"
            )
        return last, False
    if silo not in found:
        asked = f"has no silo {silo}" if silo else "has silos, each with samples of its own"
        raise UntoldError(f"run {run.name} {asked}: ask for one with `advise --silo`: {', '.join(found)}")
    own = found[silo]
    memories = {name: memory for name, memory in last["memories"].items() if name in own["shares"]}
    return {**last, "decision": own, "memories": memories}, True


def label_of(policy: str, options: dict[str, Any], w_e: float) -> str:
    """A policy with what matters of it, for people."""
    if policy == "adaptive":
        return "time-only (w_e = 0)" if w_e == 0 else f"w_e = {w_e:g}"
    if policy == "min-energy" and "slack" in options:
        slack = options["slack"]
        return "min-energy, any makespan" if slack is None else f"min-energy, slack {slack:g}"
    return policy


def joules_of(closed: Sequence[Row]) -> float | None:
    """Of all parts of all these closed orders; None as soon as one is not known."""
    total = 0.0
    for row in closed:
        for part in row["parts"].values():
            if part["joules"] is None and part["seconds"] > 0:
                return None
            total += part["joules"] or 0.0
    return total


def link_of(parts: Row) -> tuple[float, float | None]:
    """Seconds and joules of communication and overhead together, of one closed order."""
    both = [parts["communication"], parts["overhead"]]
    # A part that did not occur used nothing, whatever the meter knew.
    joules = [0.0 if part["seconds"] == 0 else part["joules"] for part in both]
    return sum(part["seconds"] for part in both), None if None in joules else sum(joules)


def _memories(run: Recorded, last: Row, rules: Settings) -> dict[str, Memory]:
    """As the last decision saw them, with the readings that came after it."""
    memories = {
        name: Memory(name) if memory is None else msgspec.convert(memory, Memory)
        for name, memory in last["memories"].items()
    }
    for row in run.boards:
        memory = memories.get(row["board"])
        newer = memory is not None and (memory.round is None or row["round"] > memory.round)
        if newer and row["round"] >= last["round"] and row["status"] == "accepted" and row["seconds"]:
            reading = Reading(
                row["board"],
                row["round"],
                row["samples"],
                row["seconds"],
                row["joules"],
                row["basis"] or None,
                row["uncertainty_joules"],
                scope=row.get("scope") or None,
            )
            memories[row["board"]] = observe(memory, reading, rules)
    return memories


def _evidence(run: Recorded, memory: Memory, idle_watts: Row) -> Evidence:
    closed = [row["parts"] for row in run.closed if row["board"] == memory.board]
    waits = [(p["wait"]["seconds"], p["wait"]["joules"]) for p in closed]
    links = [link_of(parts) for parts in closed]
    return Evidence(
        memory.board,
        memory.history,
        memory.basis,
        memory.relative_uncertainty,
        tuple((s, j) for s, j in waits if s >= SHORTEST_WAIT_SECONDS and j is not None),
        tuple(links),
        memory.waiting_watts or idle_watts.get(memory.board),
    )


def _present(run: Recorded, last: Row, within: bool) -> Present:
    rule = (last["policy"], last["w_t"], last["w_e"])
    alike = [row for row in run.rounds if (row["policy"], row["w_t"], row["w_e"]) == rule]
    # The first round of a run is equal, and the first after a change has an older rule's averages.
    rounds = (alike[1:] or alike)[-RECENT:]
    label = label_of(last["policy"], last["options"], last["w_e"])
    if within:
        return Present(label, len(rounds), None, None)
    closed: dict[int, list[Row]] = {}
    for row in run.closed:
        closed.setdefault(row["round"], []).append(row)
    spans = [row["makespan_seconds"] for row in rounds if row["makespan_seconds"] is not None]
    if run.settings["regime"] != "pma":
        spans = [row["wall_seconds"] for row in rounds]
    joules = [
        joules_of(closed[row["round"]])
        for row in rounds
        if len(closed.get(row["round"], ())) == len(row["shares"])  # the newest round's are still open
    ]
    known = [value for value in joules if value is not None]
    return Present(
        label,
        len(rounds),
        median(spans) if spans else None,
        fmean(known) if known and len(known) == len(joules) else None,
    )
