"""What was lost, refused or repeated, and what the daemons take."""

from dashboards.queries import BOARD_RUN, FLEET, HEADLINE, Panel, each, rate, raw

COUNTS = ("duplicates", "refusals", "drops", "reconnects")
HEALTH = (
    Panel(
        "Boards connected",
        "timeseries",
        (
            (each("last", "boards_up", "fleet", f"{FLEET} AND $timeFilter"), "connected"),
            (each("last", "boards_known", "fleet", f"{FLEET} AND $timeFilter"), "known"),
        ),
    ),
    Panel("Alerts", "timeseries", ((each("max", "alerts", "fleet", f"{FLEET} AND $timeFilter"), "alerts"),)),
    Panel(
        "Refused, repeated, dropped, reconnected",
        "timeseries",
        tuple((each("last", name, "fleet", f"{FLEET} AND $timeFilter"), name) for name in COUNTS),
        text="Since the coordinator's store began.",
    ),
    Panel(
        "Time series that wait",
        "timeseries",
        ((each("last", "spool_bytes", "fleet", f"{FLEET} AND $timeFilter"), "waiting"),),
        "bytes",
    ),
    Panel(
        "Longest wait",
        "timeseries",
        ((each("max", "longest_wait_seconds", "fleet", f"{FLEET} AND $timeFilter"), "an order is open"),),
        "s",
    ),
    Panel(
        "Updates too old",
        "timeseries",
        ((each("sum", "updates_too_old", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        text="Asynchronous runs: updates refused for their age; their samples are dealt again.",
    ),
    Panel(
        "Overhead of boards",
        "timeseries",
        ((each("sum", "overhead_seconds", "board_round", BOARD_RUN, "board"), "$tag_board"),),
        "s",
        "What the daemon, its sensors among it, takes beside training.",
    ),
    Panel(
        "Processor that sensors take",
        "timeseries",
        ((rate("sampler_cpu_seconds", "power", HEADLINE, "board"), "$tag_board"),),
        "percentunit",
        "Of one core: what each board's daemon spends on reading its sensors.",
    ),
    Panel(
        "What happened",
        "table",
        ((raw('"kind", "text", "count"', "event", f"{FLEET} AND $timeFilter", '"board"'), ""),),
        width=24,
        rows=True,
    ),
)
