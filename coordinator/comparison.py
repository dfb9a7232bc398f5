"""Recorded runs side by side: makespan, joules by part, wait share, held-out accuracy, reallocations. Pure.

Runs that were not given the same work are refused (ARCHITECTURE 5a); those of unlike regimes are matched on
samples. Joules of unlike bases are never added, and a figure that lacks a reading is None with the reason in
`notes`, never 0.
"""

from collections.abc import Iterable, Sequence
from statistics import median
from typing import Any, Final

from msgspec import Struct

from coordinator.pacing import BEHIND_PACE_LIMIT, behind_pace
from coordinator.updates import Updates, of_periods
from edged.messages import PARTS

Row = dict[str, Any]

MATCHED: Final = (
    "task",
    "pool",
    "seed",
    "budget",
    "rounds",
    "batch",
    "learning_rate",
    "optimizer",
    "momentum",
    "weight_decay",
    "optimizer_state",
    "options",
    "silos",
)
"""Settings that must be equal, or the comparison would be of other things than of policies."""
OF_A_REGIME: Final = ("budget", "rounds", "batch")
"""Of these, each regime has its own meaning (a period's samples, a rank's batch or all ranks'): runs of
unlike regimes are matched on accepted samples alone."""

NO_MAKESPAN: Final = "no makespan: in asp nothing waits for the longest board, periods end by samples"


class UnmatchedError(ValueError):
    """Runs that cannot be compared; the text names each difference."""


class Recorded(Struct, frozen=True):
    """A run as `history` gives it back: its row of `runs`, and its rows of the other tables."""

    run: Row
    rounds: tuple[Row, ...] = ()
    boards: tuple[Row, ...] = ()
    closed: tuple[Row, ...] = ()
    evaluations: tuple[Row, ...] = ()
    decisions: tuple[Row, ...] = ()

    @property
    def name(self) -> str:
        """Its id in the store."""
        return str(self.run["run"])

    @property
    def settings(self) -> Row:
        """What it was started with."""
        return dict(self.run["settings"])

    @property
    def accepted(self) -> int:
        """Samples that count."""
        return int(self.rounds[-1]["accepted_in_all"]) if self.rounds else 0


class Figures(Struct, frozen=True):
    """One run's line of the table. Joules are of each board's headline scope, summed over the boards."""

    run: str
    policy: str
    w_t: float | None
    w_e: float | None
    boards: tuple[str, ...]
    rounds: int
    samples: int
    makespan_median_seconds: float | None
    makespan_total_seconds: float | None
    wall_seconds: float
    seconds: dict[str, float]
    joules: dict[str, float | None]
    joules_total: float | None
    basis: str
    wait_share: float | None
    accuracy: float | None
    loss: float | None
    reallocations: int
    behind_pace_share: float | None
    timing_valid: bool
    notes: tuple[str, ...] = ()
    regime: str = "pma"
    updates: Updates | None = None
    """Counts and ages of asynchronous updates."""


class Comparison(Struct, frozen=True):
    """The table, and in what the runs differ though they should not (only with `unmatched`)."""

    runs: tuple[Figures, ...]
    differences: tuple[str, ...] = ()


def compare(runs: Sequence[Recorded], unmatched: bool = False) -> Comparison:
    """Figures of two or more runs, in the order given. Raises UnmatchedError naming all differences."""
    if len(runs) < 2:
        raise UnmatchedError("a comparison needs two runs at least")
    found = tuple(differences(runs))
    if found and not unmatched:
        raise UnmatchedError("the runs were not given the same work: " + "; ".join(found))
    return Comparison(tuple(figures(run) for run in runs), found)


def differences(runs: Sequence[Recorded]) -> Iterable[str]:
    """In words: each setting that differs, and unlike numbers of accepted samples."""
    alike = len({run.settings.get("regime", "pma") for run in runs}) == 1
    for key in MATCHED if alike else [key for key in MATCHED if key not in OF_A_REGIME]:
        yield from _difference(key, [(run.name, _setting(run, key)) for run in runs])
    yield from _difference("source of the task", [(run.name, run.run.get("task_hash")) for run in runs])
    yield from _difference("accepted samples", [(run.name, run.accepted) for run in runs])


def _setting(run: Recorded, key: str) -> Any:
    """As it acted: gradients that boards send have the coordinator's momentum, and none of their own."""
    asynchronous = run.settings.get("asynchronous") or {}
    if key == "momentum" and asynchronous.get("grain") == "gradient":
        return asynchronous["momentum"]
    return run.settings.get(key)


def figures(run: Recorded) -> Figures:
    """What is to be said of one run."""
    makespans = [row["makespan_seconds"] for row in run.rounds if row["makespan_seconds"] is not None]
    seconds = {part: sum(row["parts"][part]["seconds"] for row in run.closed) for part in PARTS}
    total = sum(seconds.values())
    joules, basis, notes = energy(run)
    known = [value for value in joules.values() if value is not None]
    behind = behind_pace(run.boards)
    regime = run.settings.get("regime", "pma")
    if regime == "asp":
        makespans = []
        notes = (*notes, NO_MAKESPAN)
    last = run.evaluations[-1] if run.evaluations else {}
    newest = run.rounds[-1] if run.rounds else {}
    return Figures(
        run=run.name,
        policy=str(newest.get("policy", run.settings["policy"])),
        w_t=newest.get("w_t"),
        w_e=newest.get("w_e"),
        boards=tuple(sorted({board for row in run.rounds for board in row["shares"]})),
        rounds=len(run.rounds),
        samples=run.accepted,
        makespan_median_seconds=median(makespans) if makespans else None,
        makespan_total_seconds=sum(makespans) if makespans else None,
        wall_seconds=sum(row["wall_seconds"] for row in run.rounds),
        seconds=seconds,
        joules=joules,
        joules_total=sum(known) if len(known) == len(PARTS) else None,
        basis=basis,
        wait_share=seconds["wait"] / total if total > 0 else None,
        accuracy=last.get("accuracy"),
        loss=last.get("loss"),
        reallocations=sum(
            after.get("batches", after["shares"]) != before.get("batches", before["shares"])
            for before, after in zip(run.rounds, run.rounds[1:], strict=False)
        ),
        behind_pace_share=behind,
        timing_valid=behind is None or behind <= BEHIND_PACE_LIMIT,
        notes=(*notes, *_other_notes(run)),
        regime=regime,
        updates=of_periods(run.rounds),
    )


def energy(run: Recorded) -> tuple[dict[str, float | None], str, tuple[str, ...]]:
    """Joules by part over all boards (None where a reading lacks), their basis in words, and notes."""
    bases = sorted({row["basis"] for row in run.closed if row["basis"]})
    without = sorted({row["board"] for row in run.closed if _lacks(row)})
    notes: list[str] = []
    if without:
        notes.append(f"no joules of {', '.join(without)}")
    if not run.closed:
        notes.append("no order was closed, so nothing is known of its parts")
    if len(bases) > 1:
        notes.append(f"joules are {' and '.join(bases)}: they are not added")
    if without or len(bases) > 1 or not run.closed:
        return dict.fromkeys(PARTS), " and ".join(bases), tuple(notes)
    joules = {part: sum(row["parts"][part]["joules"] or 0.0 for row in run.closed) for part in PARTS}
    return dict(joules), bases[0] if bases else "", tuple(notes)


def _lacks(row: Row) -> bool:
    parts = row["parts"]
    # A part that did not occur used nothing, whatever the meter knew.
    return any(parts[part]["joules"] is None and parts[part]["seconds"] > 0 for part in PARTS)


def _other_notes(run: Recorded) -> Iterable[str]:
    if not run.run.get("complete"):
        yield f"not complete: {run.run.get('reason') or 'it has not ended'}"
    policies = sorted({row["policy"] for row in run.rounds})
    if len(policies) > 1:
        yield f"the policy changed on the way: {', '.join(policies)}"
    if len({(row["w_t"], row["w_e"]) for row in run.rounds}) > 1:
        yield "the weights changed on the way"
    lost = sum(row["ordered"] - row["accepted"] for row in run.rounds)
    if lost:
        yield f"{lost} samples were ordered again"
    errors = sorted({str(row["error"]) for row in run.evaluations if row.get("error")})
    if errors:
        yield f"held-out figures lack: {'; '.join(errors)}"


def _difference(name: str, values: Sequence[tuple[str, Any]]) -> Iterable[str]:
    if any(value != values[0][1] for _, value in values):
        yield f"{name} is " + ", ".join(f"{_short(value)} in {run}" for run, value in values)


def _short(value: Any) -> str:
    text = str(value)
    return text if len(text) <= 24 else f"{text[:12]}…"
