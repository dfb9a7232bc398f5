"""What goes on now: watts, round, shares, makespan, waiting."""

from dashboards.queries import BOARD_RUN, BY_BASIS, HEADLINE, RUN, Panel, each, raw

LIVE = (
    Panel(
        "Watts by board",
        "timeseries",
        ((each("mean", "watts", "power", HEADLINE, "board", "basis"), "$tag_board ($tag_basis)"),),
        "watt",
        "Headline scope of each board; the basis is in the name.",
        stacked=True,
    ),
    Panel(
        "Joules so far, by basis",
        "stat",
        ((BY_BASIS, "$col"),),
        "joule",
        "Computing, over the time shown. Unlike bases are not added.",
        width=6,
    ),
    Panel(
        "Round",
        "stat",
        ((raw('last("round") AS "round", last("rounds") AS "of"', "fleet", RUN), "$col"),),
        width=3,
    ),
    Panel(
        "Samples accepted",
        "stat",
        ((raw('last("accepted") AS "accepted", last("target") AS "of"', "fleet", RUN), "$col"),),
        width=3,
    ),
    Panel(
        "Shares n_i",
        "timeseries",
        ((each("last", "samples", "board_round", BOARD_RUN, "board"), "$tag_board"),),
    ),
    Panel(
        "Makespan",
        "timeseries",
        (
            (each("last", "makespan_seconds", "round", RUN, "run"), "$tag_run"),
            (each("last", "wall_seconds", "round", RUN, "run"), "$tag_run, in all"),
        ),
        "s",
        "Longest compute window of a round, and the round in all. Asynchronous runs have no makespan.",
    ),
    Panel(
        "Waiting share",
        "timeseries",
        ((each("mean", "waiting_share", "round", RUN, "run"), "$tag_run"),),
        "percentunit",
        "Of the boards' time until the longest is done; in asynchronous runs of all their time.",
    ),
    Panel("Weight of energy", "timeseries", ((each("last", "w_e", "round", RUN, "run"), "w_e $tag_run"),)),
    Panel(
        "Rounds",
        "table",
        (
            (
                raw(
                    '"round", "makespan_seconds", "longest", "joules", "basis", "w_e", "reason"',
                    "round",
                    f'{RUN} AND "ordered" > 0',
                ),
                "",
            ),
        ),
        text="Each with its longest board and why its shares are as they are.",
        width=24,
        rows=True,
    ),
)
