"""`edged-coordinator compare`: recorded runs side by side, or one fleet under several policies.

As a table, JSON, CSV and a picture. Which of the two it is follows from what the argument is.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.commands import _compared, _fleets, _levels, _recorded, _show, exits
from coordinator.commands._surroundings import ConfigOption, JsonOption, StoreOption, told
from coordinator.commands.exits import CommandError
from coordinator.comparison import Comparison, Recorded, UnmatchedError
from coordinator.simulator.fleetfile import shipped
from coordinator.simulator.levels import LEVELS

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
            metavar="RUN...|FLEET|LEVEL...",
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
    """Compare recorded runs, policies on one fleet, or OmniLearn's levels: makespan, joules, waiting.

    Two or more runs: as recorded, with held-out accuracy; runs that differ in seed, samples, batch or
    learning set-up are refused, for the difference would not be the policy's. One fleet, or one run with
    --policies (its boards as fitted from its readings): in virtual time, against equal, time-only and the
    fewest joules that any split needs. Levels with --regime ddp or asp: uniform, static and dynamic batches
    on four workers, in virtual time. A level without --regime, or with --policies, is one fleet.

    Example: edged-coordinator compare paper-eleven --policies equal,adaptive,min-energy --steady-state

    Example: edged-coordinator compare hl1 hl2 hl4 hl8 --regime asp
    """
    what = [_fleets.named(argument) for argument in what]
    if _levels.are_meant(what, regime, model, policies is not None or steady_state):
        others = {"--policies": policies, "--figure": figure, "--steady-state": steady_state or None}
        asked = _levels.asked(what, regime, model, others, rounds=rounds, seed=seed, noise=noise)
        _levels.answer(asked, csv_file, as_json)
        return
    if model is not None:
        raise CommandError(f"--model is for levels ({', '.join(LEVELS)}): leave it out", exits.USAGE)
    fleets = [argument for argument in what if _fleets.is_fleet(argument)]
    if fleets and len(what) > 1:
        raise CommandError(_mixed(what, fleets), exits.USAGE)
    if fleets or policies is not None or (steady_state and len(what) == 1):
        if len(what) > 1:
            raise CommandError("--policies compares on one fleet or one run", exits.USAGE)
        found, notes = (_fleets.read(what[0]), ()) if fleets else _fitted(what[0], store, config)
        found = _of_regime(_fleets.with_noise(found, noise), regime)
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
    comparison = compared(runs := _runs(what, store, config), unmatched)
    if csv_file is not None:
        _compared.write_csv(comparison, csv_file)
    if figure is not None:
        picture(runs, figure)
    if as_json:
        _show.json(comparison)
        return
    show(comparison)
    for path in (csv_file, figure):
        if path is not None:
            _show.progress(f"written: {path}")


def _of_regime(fleet: "FleetFile", regime: str | None) -> "FleetFile":
    found = fleet if regime is None else _fleets.with_regime(fleet, regime)
    if found.regime not in POLICIES:
        raise CommandError(
            f"{found.regime} is compared on OmniLearn's levels: compare hl1 hl2 hl4 hl8 --regime "
            f"{found.regime}; simulate runs it on a fleet",
            exits.USAGE,
        )
    return found


def _mixed(what: Sequence[str], fleets: Sequence[str]) -> str:
    """Why arguments of several kinds are not compared."""
    first = next((name for name in fleets if name in LEVELS), fleets[0])
    other = next((argument for argument in what if argument not in LEVELS), None)
    if first not in LEVELS or other is None:
        return f"{first} is a fleet: compare one fleet at a time, or recorded runs"
    return (
        f"{first} is a level and {other} is none: compare levels with each other (compare {' '.join(LEVELS)} "
        f"--regime ddp), one fleet at a time (compare {first}), or recorded runs"
    )


def _runs(what: Sequence[str], store: Path | None, config: Path | None) -> list[Recorded]:
    try:
        with _recorded.opened(_recorded.store_folder(store, config)) as history:
            return [_recorded.recorded(history, run) for run in what]
    except _recorded.NoRunError as error:
        others = ", ".join(name for name in shipped() if name not in LEVELS)
        raise CommandError(f"{error}; levels are {', '.join(LEVELS)}; other fleets are {others}") from None


def _fitted(run: str, store: Path | None, config: Path | None) -> "tuple[FleetFile, tuple[str, ...]]":
    from coordinator import fitting
    from coordinator.situation import UntoldError, situation

    (found,) = _runs([run], store, config)
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
    columns, rows, sides = _compared.lines(result)
    _show.table("", columns, rows, sides)
    for remark in _compared.remarks(result):
        _show.line(remark)
