"""Runs side by side: held-out figures against seconds and joules."""

from dashboards.queries import RUN, Panel, each, raw

HELD = f'{RUN} AND "heldout_loss" > 0'
LEARNING = (
    Panel(
        "Held-out loss against seconds",
        "xychart",
        ((raw('"heldout_seconds", "heldout_loss"', "round", HELD, '"run"'), ""),),
        text="Seconds from the first order; runs side by side.",
        rows=True,
        by_run=True,
    ),
    Panel(
        "Held-out loss against joules",
        "xychart",
        (
            (
                raw('"heldout_joules", "heldout_loss"', "round", f'{HELD} AND "heldout_joules" > 0', '"run"'),
                "",
            ),
        ),
        text="Only where all joules of a run have one basis.",
        rows=True,
        by_run=True,
    ),
    Panel(
        "Held-out loss",
        "timeseries",
        ((each("last", "heldout_loss", "round", RUN, "run", "policy"), "$tag_run ($tag_policy)"),),
    ),
    Panel(
        "Held-out accuracy",
        "timeseries",
        ((each("last", "heldout_accuracy", "round", RUN, "run", "policy"), "$tag_run ($tag_policy)"),),
        "percentunit",
    ),
    Panel(
        "Runs",
        "table",
        (
            (
                raw(
                    'last("round") AS "rounds", last("accepted_in_all") AS "samples", '
                    'last("elapsed_seconds") AS "seconds", last("joules_in_all") AS "joules", '
                    'median("makespan_seconds") AS "makespan"',
                    "round",
                    RUN,
                    '"run", "policy"',
                ),
                "",
            ),
        ),
        width=24,
        rows=True,
    ),
)
