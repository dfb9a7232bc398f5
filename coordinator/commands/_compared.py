"""Recorded runs side by side, as the rows of a table and as CSV; `compare` says which runs."""

import csv
from collections.abc import Callable, Sequence
from pathlib import Path

from coordinator.commands import _show
from coordinator.commands.exits import CommandError
from coordinator.comparison import Comparison, Figures
from coordinator.updates import Updates
from edged.messages import PARTS

AGES = ("least", "quarter", "median", "three quarters", "most")
"""What the quantiles of a distribution of staleness are called."""
MOST_BOARDS = 8
"""Of larger fleets the rest is one row."""
MAKESPANS = ("makespan, median round", "makespan, total")
STALENESS = (
    "staleness: versions of the model that came between an update's start and arrival",
    "quarter, median, three quarters: so many of the updates were at most so old",
)


def lines(result: Comparison) -> tuple[list[str], list[list[str]], str]:
    """Columns, rows and sides of the table; with two runs a last column says what became of the first's."""
    runs = result.runs
    rows = [
        [MAKESPANS[0], *(_makespan(run, run.makespan_median_seconds) for run in runs)],
        [MAKESPANS[1], *(_makespan(run, run.makespan_total_seconds) for run in runs)],
        ["time, total", *(_show.duration(run.wall_seconds) for run in runs)],
        *([f"joules, {part}", *(_joules(run, run.joules[part]) for run in runs)] for part in PARTS),
        ["joules, total", *(_joules(run, run.joules_total) for run in runs)],
        ["wait share of the time", *(_show.percent(run.wait_share) for run in runs)],
        ["held-out accuracy", *(_show.percent(run.accuracy) for run in runs)],
        ["held-out loss", *(_show.figure(run.loss) for run in runs)],
        ["reallocations", *(str(run.reallocations) for run in runs)],
        ["rounds", *(str(run.rounds) for run in runs)],
        ["samples accepted", *(f"{run.samples:,}" for run in runs)],
    ]
    if all(run.regime == "asp" for run in runs):
        rows = [row for row in rows if row[0] not in MAKESPANS]
    rows += [[name, *(_pushed(run, of) for run in runs)] for name, of in _updates(runs).items()]
    columns = ["", *(_title(run) for run in runs)]
    if len(runs) == 2:
        columns.append("change")
        changes = _changes(*runs)
        rows = [[*row, changes.get(row[0], "")] for row in rows]
    return columns, rows, "<" + ">" * (len(columns) - 1)


def remarks(result: Comparison) -> list[str]:
    """What the table alone would hide: unequal work, invalid timing, missing readings."""
    found = [f"not the same work: {difference}" for difference in result.differences]
    if any(run.updates is not None for run in result.runs):
        found += STALENESS
    for run in result.runs:
        share = run.behind_pace_share
        if share is not None and share > 0:
            verdict = "little enough" if run.timing_valid else "above 1 %: its timing and joules are invalid"
            found.append(f"{run.run}: {_show.percent(share)} of its steps were behind their pace, {verdict}")
        found += [f"{run.run}: {note}" for note in run.notes]
    return found


def write_csv(result: Comparison, path: Path) -> None:
    """One line a run, plain numbers in SI units, empty where a figure is not known."""
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            rows = [_flat(run) for run in result.runs]
            writer.writerow(rows[0])
            writer.writerows(row.values() for row in rows)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give another --csv") from None


def _flat(run: Figures) -> dict[str, object]:
    return {
        "run": run.run,
        "policy": run.policy,
        "w_t": run.w_t,
        "w_e": run.w_e,
        "rounds": run.rounds,
        "samples": run.samples,
        "makespan_median_seconds": run.makespan_median_seconds,
        "makespan_total_seconds": run.makespan_total_seconds,
        "wall_seconds": run.wall_seconds,
        **{f"{part}_seconds": run.seconds[part] for part in PARTS},
        **{f"{part}_joules": run.joules[part] for part in PARTS},
        "total_joules": run.joules_total,
        "joules_basis": run.basis,
        "wait_share": run.wait_share,
        "accuracy": run.accuracy,
        "loss": run.loss,
        "reallocations": run.reallocations,
        "behind_pace_share": run.behind_pace_share,
        "timing_valid": run.timing_valid,
        "regime": run.regime,
        "updates": sum(run.updates.counts.values()) if run.updates else None,
        "update_spread": run.updates.count_spread if run.updates else None,
        "staleness_mean": run.updates.staleness_mean if run.updates else None,
        "staleness_spread": run.updates.staleness_spread if run.updates else None,
        "notes": "; ".join(run.notes),
    }


def _updates(runs: Sequence[Figures]) -> dict[str, Callable[[Updates], str]]:
    """Rows of runs with asynchronous updates: what each is called, and what it shows."""
    boards = sorted({board for run in runs if run.updates is not None for board in run.updates.counts})
    if not boards:
        return {}
    shown, rest = boards[:MOST_BOARDS], boards[MOST_BOARDS:]
    found = {f"updates by {board}": _count([board]) for board in shown}
    if rest:
        found[f"updates by {len(rest)} more"] = _count(rest)
    found |= {f"staleness, {name}": _age(place) for place, name in enumerate(AGES)}
    found["staleness, deviation"] = lambda updates: f"{updates.staleness_spread:.2f}"
    return found


def _count(boards: Sequence[str]) -> Callable[[Updates], str]:
    def shown(updates: Updates) -> str:
        return f"{sum(updates.counts.get(board, 0) for board in boards):,}"

    return shown


def _age(place: int) -> Callable[[Updates], str]:
    return lambda updates: f"{updates.quantiles()[place]:,}"


def _makespan(run: Figures, seconds: float | None) -> str:
    return "-" if run.regime == "asp" else _show.duration(seconds)


def _pushed(run: Figures, of: Callable[[Updates], str]) -> str:
    return "-" if run.updates is None else of(run.updates)


def _title(run: Figures) -> str:
    return f"{run.run} ({run.policy})" if run.policy not in run.run else run.run


def _joules(run: Figures, joules: float | None) -> str:
    return _show.UNKNOWN if joules is None else f"{_show.figure(joules, 4)} J {run.basis}"


def _changes(first: Figures, second: Figures) -> dict[str, str]:
    """In per cent of the first run's figure, where both are known and of one basis."""
    pairs = {
        MAKESPANS[0]: (first.makespan_median_seconds, second.makespan_median_seconds),
        MAKESPANS[1]: (first.makespan_total_seconds, second.makespan_total_seconds),
        "time, total": (first.wall_seconds, second.wall_seconds),
    }
    if first.basis == second.basis:
        pairs |= {f"joules, {part}": (first.joules[part], second.joules[part]) for part in PARTS}
        pairs["joules, total"] = (first.joules_total, second.joules_total)
    return {
        name: f"{100 * (after / before - 1):+.1f} %"
        for name, (before, after) in pairs.items()
        if before and after is not None
    }
