"""`edged-coordinator compare`: recorded runs side by side, or one fleet under several policies.

As a table, JSON, CSV and a picture. Which of the two it is follows from what the argument is.
"""

import csv
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.commands import _fleets, _levels, _recorded, _show, exits
from coordinator.commands._surroundings import ConfigOption, JsonOption, StoreOption, told
from coordinator.commands.exits import CommandError
from coordinator.comparison import Comparison, Figures, Recorded, UnmatchedError
from edged.messages import PARTS

if TYPE_CHECKING:
    from coordinator.simulator.fleetfile import FleetFile

POLICIES = {
    "pma": "equal,profiled,adaptive,oort,min-energy,min-time",
    "ddp": "equal,profiled,adaptive,ema-batch,omnilearn,min-energy,min-time",
    "hfl-ddp": "equal,profiled,adaptive,min-energy,min-time",
}
OPTIMUM = "min-energy:slack=null"


@told
def compare(
    what: Annotated[
        list[str],
        typer.Argument(
            metavar="RUN RUN...|FLEET|LEVEL LEVEL...",
            help="Recorded runs; one fleet (name or file), or one run; levels among hl1 hl2 hl4 hl8.",
        ),
    ],
    *,
    policies: Annotated[
        str | None,
        typer.Option("--policies", help="Of a fleet, by commas; NAME:option=value.", show_default=False),
    ] = None,
    w_e: Annotated[str, typer.Option("--w-e", help="Weights of energy for adaptive.")] = "0,0.25,0.5,0.75,1",
    steady_state: Annotated[
        bool, typer.Option("--steady-state", help="Of a fleet: where shares settle with exact costs.")
    ] = False,
    regime: Annotated[
        str | None,
        typer.Option(
            "--regime", help="Of a fleet: pma, ddp or hfl-ddp; of levels: ddp or asp.", show_default=False
        ),
    ] = None,
    model: Annotated[
        str | None,
        typer.Option(
            "--model",
            help="Of levels: resnet18, alexnet, vgg11 or resnet50 as a profile.",
            show_default=False,
        ),
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=3, show_default=False)] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, show_default=False)] = None,
    noise: Annotated[float | None, typer.Option("--noise", min=0, max=0.5, show_default=False)] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the figures there, too.")] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", "--png", help="Draw them, as .png or .svg.")
    ] = None,
    unmatched: Annotated[
        bool, typer.Option("--unmatched", help="Compare although the runs were not given the same work.")
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Compare recorded runs, or what policies would make of one fleet: makespan, joules by part, waiting.

    Two or more runs: as recorded, with held-out accuracy; runs that differ in seed, samples, batch or
    learning set-up are refused, for the difference would not be the policy's. One fleet, or one run with
    --policies (its boards as fitted from its readings): in virtual time, against equal, time-only and the
    fewest joules that any split needs. OmniLearn's levels: uniform, static and dynamic batches on four
    workers, in virtual time.

    Examples: edged-coordinator compare paper-eleven --policies equal,adaptive,min-energy --steady-state;
    edged-coordinator compare hl1 hl2 hl4 hl8 --regime asp
    """
    if _levels.are_meant(what, regime, model):
        others = {"--policies": policies, "--figure": figure, "--steady-state": steady_state or None}
        asked = _levels.asked(what, regime, model, others, rounds=rounds, seed=seed, noise=noise)
        _levels.answer(asked, csv_file, as_json)
        return
    fleets = [argument for argument in what if _fleets.is_fleet(argument)]
    if fleets and len(what) > 1:
        raise CommandError(
            f"{fleets[0]} is a fleet: compare one fleet at a time, or recorded runs", exits.USAGE
        )
    if fleets or policies is not None or (steady_state and len(what) == 1):
        if len(what) > 1:
            raise CommandError("--policies compares on one fleet or one run", exits.USAGE)
        found, notes = (_fleets.read(what[0]), ()) if fleets else _fitted(what[0], store, config)
        found = _fleets.with_noise(found, noise)
        if regime is not None:
            found = _fleets.with_regime(found, regime)
        if found.regime not in POLICIES:
            raise CommandError(
                f"{found.regime} is compared on OmniLearn's levels: compare hl1 hl2 hl4 hl8 --regime "
                f"{found.regime}; simulate runs it on a fleet",
                exits.USAGE,
            )
        names = (policies or POLICIES[found.regime]).split(",")
        plans = _fleets.plans_of(
            [name.strip() for name in names if name.strip()], _fleets.weights(w_e), found.regime
        )
        if policies is None:
            plans += _fleets.plans_of([OPTIMUM], (), found.regime)
        result = _fleets.compared(
            found,
            plans,
            steady_state=steady_state,
            rounds=found.rounds if rounds is None else rounds,
            seed=found.seed if seed is None else seed,
            notes=notes,
        )
        _fleets.answer(result, csv_file, figure, as_json)
        return
    with _recorded.opened(_recorded.store_folder(store, config)) as history:
        runs = [_recorded.recorded(history, run) for run in what]
    comparison = compared(runs, unmatched)
    if csv_file is not None:
        write_csv(comparison, csv_file)
    if figure is not None:
        picture(runs, figure)
    if as_json:
        _show.json(comparison)
        return
    show(comparison)
    for path in (csv_file, figure):
        if path is not None:
            _show.progress(f"written: {path}")


def _fitted(run: str, store: Path | None, config: Path | None) -> "tuple[FleetFile, tuple[str, ...]]":
    from coordinator import fitting
    from coordinator.situation import UntoldError, situation

    with _recorded.opened(_recorded.store_folder(store, config)) as history:
        found = _recorded.recorded(history, run)
    try:
        where = situation(found)
    except UntoldError as error:
        raise CommandError(str(error)) from None
    seen = where.present
    observed = (
        f"boards as fitted from the readings of {run}; {seen.label} was observed at "
        f"{_show.duration(seen.makespan_seconds)} and {_show.figure(seen.joules, 4)} J a round"
    )
    return fitting.fitted(where), (observed, *where.notes)


def compared(runs: Sequence[Recorded], unmatched: bool = False) -> Comparison:
    """The comparison, or CommandError with the way out."""
    from coordinator import comparison

    try:
        return comparison.compare(runs, unmatched)
    except UnmatchedError as error:
        way_out = "" if len(runs) < 2 else " (--unmatched compares them all the same)"
        raise CommandError(f"{error}{way_out}", exits.USAGE if len(runs) < 2 else exits.FAILED) from None


def picture(runs: Sequence[Recorded], path: Path, title: str = "") -> None:
    """Draw the runs; a failure is a CommandError."""
    from coordinator import plots

    try:
        plots.draw(runs, path, title)
    except plots.PlotError as error:
        raise CommandError(str(error)) from None


def show(result: Comparison) -> None:
    """The table with a column for each run, and below it what must be known to read it."""
    columns, rows, sides = lines(result)
    _show.table("", columns, rows, sides)
    for remark in remarks(result):
        _show.line(remark)


def lines(result: Comparison) -> tuple[list[str], list[list[str]], str]:
    """Columns, rows and sides of the table; with two runs a last column says what became of the first's."""
    runs = result.runs
    rows = [
        ["makespan, median round", *(_show.duration(run.makespan_median_seconds) for run in runs)],
        ["makespan, total", *(_show.duration(run.makespan_total_seconds) for run in runs)],
        *([f"joules, {part}", *(_joules(run, run.joules[part]) for run in runs)] for part in PARTS),
        ["joules, total", *(_joules(run, run.joules_total) for run in runs)],
        ["wait share of the time", *(_show.percent(run.wait_share) for run in runs)],
        ["held-out accuracy", *(_show.percent(run.accuracy) for run in runs)],
        ["held-out loss", *(_show.figure(run.loss) for run in runs)],
        ["reallocations", *(str(run.reallocations) for run in runs)],
        ["rounds", *(str(run.rounds) for run in runs)],
        ["samples accepted", *(f"{run.samples:,}" for run in runs)],
    ]
    columns = ["", *(_title(run) for run in runs)]
    if len(runs) == 2:
        columns.append("change")
        changes = _changes(*runs)
        rows = [[*row, changes.get(row[0], "")] for row in rows]
    return columns, rows, "<" + ">" * (len(columns) - 1)


def remarks(result: Comparison) -> list[str]:
    """What the table alone would hide: unequal work, invalid timing, missing readings."""
    found = [f"not the same work: {difference}" for difference in result.differences]
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
        "notes": "; ".join(run.notes),
    }


def _title(run: Figures) -> str:
    return f"{run.run} ({run.policy})" if run.policy not in run.run else run.run


def _joules(run: Figures, joules: float | None) -> str:
    return _show.UNKNOWN if joules is None else f"{_show.figure(joules, 4)} J {run.basis}"


def _changes(first: Figures, second: Figures) -> dict[str, str]:
    """In per cent of the first run's figure, where both are known and of one basis."""
    pairs = {
        "makespan, median round": (first.makespan_median_seconds, second.makespan_median_seconds),
        "makespan, total": (first.makespan_total_seconds, second.makespan_total_seconds),
    }
    if first.basis == second.basis:
        pairs |= {f"joules, {part}": (first.joules[part], second.joules[part]) for part in PARTS}
        pairs["joules, total"] = (first.joules_total, second.joules_total)
    return {
        name: f"{100 * (after / before - 1):+.1f} %"
        for name, (before, after) in pairs.items()
        if before and after is not None
    }
