"""One board: channels, heat, costs, shares, loss, asynchronous updates and their staleness."""

from coordinator.telemetry.schema import PARTS
from dashboards.queries import BOARD_RUN, BOARDS, HEADLINE, Panel, each, raw

BOARD = (
    Panel(
        "Watts by channel",
        "timeseries",
        (
            (
                each("mean", "watts", "power", BOARDS, "board", "channel", "scope", "basis"),
                "$tag_board $tag_channel ($tag_scope, $tag_basis)",
            ),
        ),
        "watt",
    ),
    Panel(
        "Temperature",
        "timeseries",
        ((each("max", "temperature_celsius", "power", BOARDS, "board"), "$tag_board"),),
        "celsius",
    ),
    Panel(
        "Throttling",
        "table",
        ((raw('"throttled"', "power", f"{HEADLINE} AND \"throttled\" != ''", '"board"'), ""),),
        text="Empty while no board throttles.",
        width=6,
        rows=True,
    ),
    Panel(
        "Share",
        "timeseries",
        ((each("last", "samples", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        width=9,
    ),
    Panel(
        "Loss while training",
        "timeseries",
        ((each("last", "loss", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        width=9,
    ),
    Panel(
        "Seconds per sample",
        "timeseries",
        (
            (each("last", "seconds_per_sample", "board_round", BOARD_RUN, "board"), "$tag_board"),
            (
                each("last", "seconds_per_sample_average", "board_round", BOARD_RUN, "board"),
                "$tag_board, average",
            ),
        ),
        "s",
        "Measured in a round, and the moving average that decides.",
    ),
    Panel(
        "Joules per sample",
        "timeseries",
        (
            (
                each("last", "joules_per_sample", "board_round", BOARD_RUN, "board", "basis"),
                "$tag_board ($tag_basis)",
            ),
            (
                each("last", "joules_per_sample_average", "board_round", BOARD_RUN, "board"),
                "$tag_board, average",
            ),
        ),
        "joule",
    ),
    Panel(
        "Seconds by part",
        "timeseries",
        tuple(
            (each("sum", f"{part}_seconds", "board_round", BOARD_RUN, "board"), f"$tag_board {part}")
            for part in PARTS
        ),
        "s",
        stacked=True,
        width=24,
    ),
    Panel(
        "Updates",
        "timeseries",
        ((each("sum", "updates", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        text="Asynchronous runs: what the model took in of each board.",
    ),
    Panel(
        "Staleness of updates",
        "timeseries",
        (
            (each("min", "staleness_least", "board_round", BOARD_RUN, "board"), "$tag_board, least"),
            (each("median", "staleness_median", "board_round", BOARD_RUN, "board"), "$tag_board, median"),
            (each("max", "staleness_most", "board_round", BOARD_RUN, "board"), "$tag_board, most"),
        ),
        text="Asynchronous runs: by how many versions updates were old when they were taken in.",
    ),
)
