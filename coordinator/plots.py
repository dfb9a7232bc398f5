"""A picture of recorded runs: shares by round above joules by round, one column a run, as a PNG file.

Drawn without a display. Colours are Okabe and Ito's, which colour-blind people tell apart; boards also differ
by marker and parts by hatching.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from coordinator.comparison import Recorded, energy
from edged.messages import PARTS

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLOURS: Final = ("#0072B2", "#E69F00", "#009E73", "#CC79A7", "#56B4E9", "#D55E00", "#F0E442", "#000000")
MARKERS: Final = "osD^vPX*"
PART_COLOURS: Final = {
    "compute": "#0072B2",
    "communication": "#56B4E9",
    "wait": "#E69F00",
    "lost": "#D55E00",
    "overhead": "#999999",
}
PART_HATCHES: Final = {"compute": "", "communication": "..", "wait": "//", "lost": "xx", "overhead": "--"}


class PlotError(RuntimeError):
    """The picture cannot be drawn; the text says why and what to do."""


def draw(runs: Sequence[Recorded], path: Path, title: str = "") -> None:
    """Write the PNG. Raises PlotError where matplotlib is missing or the file cannot be written."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(
            f"no picture without matplotlib: pip install 'edged[coordinator]' ({error})"
        ) from None
    figure = Figure(figsize=(max(7.0, 4.6 * len(runs)), 7.2), layout="constrained")
    FigureCanvasAgg(figure)
    grid = figure.subplots(2, len(runs), squeeze=False, sharex="col", sharey="row")
    boards = sorted({board for run in runs for row in run.rounds for board in row["shares"]})
    for column, run in enumerate(runs):
        _shares(grid[0][column], run, boards)
        _joules(grid[1][column], run)
    for axes in grid.flat:
        _dress(axes)
    grid[0][0].set_ylabel("samples a round")
    grid[1][0].set_ylabel(f"joules a round{_basis(runs)}")
    for row, words in zip(grid, ("board", "part of the round"), strict=True):
        handles, labels = row[-1].get_legend_handles_labels()
        if handles:
            row[-1].legend(
                handles, labels, title=words, loc="upper left", bbox_to_anchor=(1.01, 1.0), frameon=False
            )
    if title:
        figure.suptitle(title)
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise PlotError(f"{path}: {error.strerror}; give another --png") from None


def joules_by_round(run: Recorded) -> dict[int, dict[str, float | None]]:
    """Joules of all boards by round and part, from the closed orders; None where a board's are not known."""
    rounds = sorted({int(row["round"]) for row in run.closed})
    found: dict[int, dict[str, float | None]] = {}
    for number in rounds:
        closed = tuple(row for row in run.closed if row["round"] == number)
        found[number] = energy(Recorded(run.run, closed=closed))[0]
    return found


def _shares(axes: "Axes", run: Recorded, boards: Sequence[str]) -> None:
    for index, board in enumerate(boards):
        points = [(row["round"], row["shares"][board]) for row in run.rounds if board in row["shares"]]
        axes.plot(
            [number for number, _ in points],
            [share for _, share in points],
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            # Equal shares lie on each other: those drawn later are smaller, so that all can be seen.
            markersize=max(4.0, 9.0 - 1.2 * index),
            linewidth=max(1.2, 3.2 - 0.5 * index),
            label=board,
        )
    policy = run.rounds[-1]["policy"] if run.rounds else run.settings["policy"]
    w_e = run.rounds[-1]["w_e"] if run.rounds else None
    weights = "" if policy == "equal" or w_e is None else f", w_e = {w_e:g}"
    name = "" if run.name == policy else f" ({run.name})"
    axes.set_title(f"{policy}{weights}{name}", fontsize=11)


def _joules(axes: "Axes", run: Recorded) -> None:
    by_round = {
        number: {part: value for part, value in parts.items() if value is not None}
        for number, parts in joules_by_round(run).items()
    }
    complete = {number: parts for number, parts in by_round.items() if len(parts) == len(PARTS)}
    below = dict.fromkeys(complete, 0.0)
    for part in PARTS:
        heights = [complete[number][part] for number in complete]
        axes.bar(
            list(complete),
            heights,
            bottom=list(below.values()),
            color=PART_COLOURS[part],
            hatch=PART_HATCHES[part],
            edgecolor="white",
            linewidth=0.6,
            width=0.8,
            label=part,
        )
        below = {number: below[number] + complete[number][part] for number in complete}
    if len(complete) < len(by_round) or not by_round:
        axes.text(
            0.5, 0.5, "not all joules are known", transform=axes.transAxes, ha="center", color="#555555"
        )
    axes.set_xlabel("round")


def _dress(axes: "Axes") -> None:
    from matplotlib.ticker import MaxNLocator

    axes.set_ylim(bottom=0)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)


def _basis(runs: Sequence[Recorded]) -> str:
    bases = sorted({row["basis"] for run in runs for row in run.closed if row["basis"]})
    return f" ({' and '.join(bases)})" if bases else ""
