"""Pictures of virtual and predicted fleets: joules against makespan, and joules by part, as PNG or SVG.

Drawn without a display, in the colours of `plots`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

from coordinator.advice import Advice
from coordinator.plots import COLOURS, MARKERS, PART_COLOURS, PART_HATCHES, PlotError
from coordinator.simulator.experiments import Line

if TYPE_CHECKING:
    from matplotlib.axes import Axes

KINDS: Final = (".png", ".svg")


def canvas(width: float, height: float) -> Any:
    """A figure without a display. Raises PlotError where matplotlib is missing."""
    try:
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ImportError as error:
        raise PlotError(
            f"no picture without matplotlib: pip install 'edged[coordinator]' ({error})"
        ) from None
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def save(figure: Any, path: Path) -> None:
    """Write it as what the path's ending says. Raises PlotError."""
    if path.suffix.lower() not in KINDS:
        raise PlotError(f"{path}: a picture is a .png or an .svg")
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        figure.savefig(path, dpi=130)
    except OSError as error:
        raise PlotError(f"{path}: {error.strerror}; give another file") from None


def draw_policies(lines: Sequence[Line], path: Path, title: str) -> None:
    """Each policy as a point of makespan and joules, and as a bar of joules by part."""
    known = [line for line in lines if line.joules is not None]
    figure = canvas(11.0, max(3.6, 1.8 + 0.34 * len(lines)))
    points, bars = figure.subplots(1, 2)
    for index, line in enumerate(known):
        points.scatter(
            line.makespan_seconds,
            line.joules,
            color=COLOURS[index % len(COLOURS)],
            marker=MARKERS[index % len(MARKERS)],
            s=70,
            label=line.label,
            zorder=3,
        )
    points.set_xlabel("makespan of a round, s")
    points.set_ylabel("joules of a round")
    points.legend(frameon=False, fontsize=8)
    places = range(len(known))
    left = [0.0] * len(known)
    for part in ("compute", "communication", "wait"):
        widths = [getattr(line, f"{part}_joules") or 0.0 for line in known]
        bars.barh(
            places,
            widths,
            left=left,
            color=PART_COLOURS[part],
            hatch=PART_HATCHES[part],
            edgecolor="white",
            label=part,
        )
        left = [a + b for a, b in zip(left, widths, strict=True)]
    bars.set_yticks(list(places), [line.label for line in known], fontsize=8)
    bars.invert_yaxis()
    bars.set_xlabel("joules of a round, by part")
    bars.legend(frameon=False, fontsize=8)
    for axes in (points, bars):
        dress(axes)
    figure.suptitle(title, fontsize=11)
    save(figure, path)


def draw_advice(advice: Advice, path: Path) -> None:
    """The Pareto front of the likely fleet, each setting with its intervals, the observed point."""
    figure = canvas(8.4, 5.4)
    axes = figure.subplots()
    if advice.front:
        seconds, joules = zip(*advice.front, strict=True)
        axes.plot(
            seconds, joules, color="#888888", linewidth=2, label="best split, computing and waiting only"
        )
    for index, p in enumerate(advice.predictions):
        assert p.joules is not None
        x, y = p.makespan_seconds, p.joules
        axes.errorbar(
            x.middle,
            y.middle,
            xerr=[[x.middle - x.low], [x.high - x.middle]],
            yerr=[[y.middle - y.low], [y.high - y.middle]],
            color=COLOURS[index % len(COLOURS)],
            # Past the last colour the markers are shifted, so that no two settings look alike.
            marker=MARKERS[(index + index // len(COLOURS)) % len(MARKERS)],
            markersize=7,
            markerfacecolor="white" if p.extrapolated else COLOURS[index % len(COLOURS)],
            elinewidth=1,
            capsize=2,
            label=p.setting.label + (" (extrapolated)" if p.extrapolated else ""),
            zorder=3,
        )
    seen = advice.present
    if seen.makespan_seconds is not None and seen.joules is not None:
        axes.plot(
            seen.makespan_seconds, seen.joules, "+", color="black", markersize=14, label="observed", zorder=4
        )
    axes.set_xlabel("makespan of a round, s")
    axes.set_ylabel(f"joules of a round ({advice.basis})")
    axes.set_title(f"run {advice.run}: predicted, with 90 % intervals", fontsize=11)
    axes.legend(frameon=False, fontsize=8)
    dress(axes)
    save(figure, path)


def dress(axes: "Axes") -> None:
    """A light grid, no box."""
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
