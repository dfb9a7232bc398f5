"""`edged-coordinator advise`: what other settings would cost this fleet, from its own readings."""

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator.commands import _recorded, _show, exits
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    StoreOption,
    told,
)
from coordinator.commands.exits import CommandError

if TYPE_CHECKING:
    from coordinator.advice import Advice, Prediction, Range

MANY = 24
"""Boards from which fewer fleets are drawn, so that the answer does not take minutes."""


@told
def advise(
    context: typer.Context,
    run: Annotated[
        str | None, typer.Argument(help="Else what goes on now; with --store its newest.", show_default=False)
    ] = None,
    *,
    draws: Annotated[
        int | None, typer.Option("--draws", min=10, max=2000, help="Fleets drawn.", show_default=False)
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0)] = 1,
    silo: Annotated[
        str | None, typer.Option("--silo", help="Of hfl-ddp: this one's boards.", show_default=False)
    ] = None,
    figure: Annotated[
        Path | None, typer.Option("--figure", help="Draw joules against makespan, as .png or .svg.")
    ] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Say what w_e, slack or another policy would cost in seconds and joules, with 90 % intervals.

    Fleets that could have given the run's readings are drawn; every setting runs on each of them in virtual
    time. Nothing is changed. Without energy readings seconds are told, and the exit status is 1.

    Example: edged-coordinator advise --figure front.png
    """
    from coordinator import advice as advising
    from coordinator.situation import UntoldError, situation

    found = _recorded.looked_at(context, run, store=store, config=config, broker=broker, fleet=fleet)
    try:
        where = situation(found, silo)
        boards = len(where.evidence)
        count = draws or max(10, advising.DRAWS if boards <= MANY else advising.DRAWS * MANY // boards)
        answer = advising.advise(where, draws=count, seed=seed, told=_progress(as_json))
    except (UntoldError, ValueError) as error:
        raise CommandError(str(error)) from None
    if figure is not None:
        _draw(answer, figure)
    if as_json:
        import msgspec

        _show.json({"sentence": sentence(answer), **msgspec.to_builtins(answer)})
    else:
        show(answer)
        if figure is not None:
            _show.progress(f"written: {figure}")
    if answer.lacks:
        raise CommandError(f"run {answer.run}: {answer.lacks}", exits.FAILED)


def sentence(answer: "Advice") -> str:
    """What to do, or that there is nothing to do."""
    present = answer.predictions[0]
    if answer.best is None:
        what = (
            "surely saves joules without costing a tenth more time"
            if not answer.lacks
            else "is surely faster"
        )
        return f"Keep {present.setting.label}: nothing else that was tried {what}."
    best = answer.predictions[answer.best]
    seconds = f"{_signed(best.makespan_change)} makespan"
    joules = "" if best.joules_change is None else f"{_signed(best.joules_change)} joules and "
    guess = " (extrapolated)" if best.extrapolated else ""
    return (
        f"Change to {best.setting.label}: {joules}{seconds} against {present.setting.label}{guess}; "
        f"set it with: edged-coordinator {best.setting.command}"
    )


def show(answer: "Advice") -> None:
    """The sentence, the table, and what must be known to read it."""
    _show.line(sentence(answer))
    for line in lines(answer):
        _show.line(line)


def lines(answer: "Advice") -> Iterator[str]:
    """All but the sentence."""
    seen = answer.present
    yield ""
    yield (
        f"run {answer.run}, {seen.label}: observed makespan {_show.duration(seen.makespan_seconds)}, "
        f"{_joules(seen.joules)} J a round ({answer.basis or 'no joules'}; {seen.rounds} rounds)"
    )
    rows = [_cells(p, index == 0) for index, p in enumerate(answer.predictions)]
    head = ["setting", "makespan", "90 %", "change", "joules", "90 %", "change", "extrapolated for"]
    yield from _show.plain("", head, rows, "<>>>>>><")
    if answer.time_only_is_cheapest is not None:
        yield ""
        yield optimal(answer.time_only_is_cheapest)
    yield from worth(answer)
    yield from answer.notes
    yield f"{answer.draws} fleets that fit the readings were drawn with seed {answer.seed}"


def optimal(share: float) -> str:
    """Whether equal finish times need the fewest joules already."""
    if share >= 0.95:
        return "time-only needs the fewest joules already: no split is cheaper"
    if share <= 0.05:
        return "time-only does not need the fewest joules: some boards cost more than they give"
    return f"time-only needs the fewest joules in {100 * share:.0f} % of the fleets that fit the readings"


def worth(answer: "Advice") -> Iterator[str]:
    """Which boards cost more joules than they give."""
    from coordinator.advice import SURE

    limit = answer.limit_joules_per_sample
    if limit is None:
        return
    dear = [b for b in answer.boards if b.works <= 1 - SURE]
    open_ = [b for b in answer.boards if 1 - SURE < b.works < SURE]
    for board in dear:
        yield (
            f"{board.board} costs more than it gives: {_milli(board.dynamic_joules_per_sample)} "
            f"a sample over waiting, the fleet's best is {_milli(limit)}"
        )
    if open_:
        named = ", ".join(f"{b.board} ({100 * b.works:.0f} % yes)" for b in open_)
        yield f"not sure whether they give more than they cost: {named}"


def _milli(found: "Range") -> str:
    return f"{1000 * found.middle:.3g} mJ ({1000 * found.low:.3g} to {1000 * found.high:.3g})"


def _cells(p: "Prediction", present: bool) -> list[str]:
    joules, change = p.joules, p.joules_change
    return [
        p.setting.label + (" (present)" if present else ""),
        _show.duration(p.makespan_seconds.middle),
        f"{_show.figure(p.makespan_seconds.low)} to {_show.figure(p.makespan_seconds.high)}",
        "" if present else f"{100 * p.makespan_change.middle:+.1f} %",
        _show.UNKNOWN if joules is None else _show.figure(joules.middle, 4),
        "" if joules is None else f"{_show.figure(joules.low, 4)} to {_show.figure(joules.high, 4)}",
        "" if present or change is None else f"{100 * change.middle:+.1f} %",
        _few(p.extrapolated),
    ]


def _few(boards: tuple[str, ...], most: int = 3) -> str:
    more = f" and {len(boards) - most} more" if len(boards) > most else ""
    return ", ".join(boards[:most]) + more


def _signed(found: "Range") -> str:
    return (
        f"{100 * found.middle:+.1f} % (90 %: {100 * found.low + 0.0:+.1f} to {100 * found.high + 0.0:+.1f})"
    )


def _joules(value: float | None) -> str:
    return "unknown" if value is None else _show.figure(value, 4)


def _progress(quiet: bool) -> "_Progress":
    return _Progress(quiet)


class _Progress:
    def __init__(self, quiet: bool) -> None:
        self._quiet = quiet

    def __call__(self, done: int, of: int) -> None:
        if not self._quiet and _show.is_terminal() and (done % 10 == 0 or done == of):
            _show.progress(f"{done} of {of} fleets")


def _draw(answer: "Advice", path: Path) -> None:
    from coordinator import charts
    from coordinator.plots import PlotError

    if answer.lacks:
        raise CommandError(f"no picture of joules: {answer.lacks}")
    try:
        charts.draw_advice(answer, path)
    except PlotError as error:
        raise CommandError(str(error)) from None
