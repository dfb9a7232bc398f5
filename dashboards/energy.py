"""Where the joules go, what they rest on, and how sure they are."""

from coordinator.telemetry.schema import PARTS
from dashboards.queries import BOARD_RUN, BY_BASIS, RUN, Panel, each, raw

ENERGY = (
    Panel(
        "Joules per sample",
        "timeseries",
        (
            (
                each("mean", "joules_per_sample", "board_round", BOARD_RUN, "board", "basis"),
                "$tag_board ($tag_basis)",
            ),
        ),
        "joule",
    ),
    Panel(
        "Joules a round, by board",
        "timeseries",
        ((each("last", "joules", "board_round", BOARD_RUN, "board", "basis"), "$tag_board ($tag_basis)"),),
        "joule",
        "Computing.",
        stacked=True,
    ),
    Panel(
        "Where the joules go",
        "barchart",
        (
            (
                raw(
                    ", ".join(f'sum("{part}_joules") AS "{part}"' for part in PARTS),
                    "board_round",
                    BOARD_RUN,
                    '"board"',
                ),
                "$tag_board $col",
            ),
        ),
        "joule",
        "Whole parts of closed orders: computing, communication, waiting, lost, overhead.",
        rows=True,
    ),
    Panel(
        "Joules by basis",
        "piechart",
        ((BY_BASIS, "$col"),),
        "joule",
        "How much of it a sensor has seen.",
        width=6,
    ),
    Panel(
        "Coverage",
        "timeseries",
        ((each("mean", "coverage", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        "percentunit",
        "Share of the window that was sampled.",
        width=6,
    ),
    Panel(
        "Joules a round, with bounds",
        "timeseries",
        (
            (
                raw(
                    '"joules" AS "joules", "joules" - "uncertainty_joules" AS "low", '
                    '"joules" + "uncertainty_joules" AS "high"',
                    "round",
                    f'{RUN} AND "joules" > 0',
                ),
                "$col",
            ),
        ),
        "joule",
        "Only where all boards have one basis and bounds; they are added.",
        band=True,
    ),
    Panel(
        "Headroom over shares by time alone",
        "timeseries",
        (
            (
                raw(
                    '"time_only_joules" - "predicted_joules" AS "saved joules"',
                    "round",
                    f'{RUN} AND "predicted_joules" > 0',
                ),
                "$col",
            ),
        ),
        "joule",
        "Both as the boards' readings predict them for that round.",
    ),
    Panel(
        "Costs c_i",
        "timeseries",
        ((each("last", "cost", "board_round", BOARD_RUN, "board"), "$tag_board"),),
    ),
)
