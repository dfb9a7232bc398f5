"""Pictures of virtual and predicted fleets: joules against makespan, and joules by part, as PNG or SVG.

Drawn without a display, in the colours of `plots`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final

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


def dress(axes: "Axes") -> None:
    """A light grid, no box."""
    axes.grid(color="#dddddd", linewidth=0.8)
    axes.set_axisbelow(True)
    axes.spines[["top", "right"]].set_visible(False)
