"""What happened to a run beside its rounds, in words: operators' wishes, pauses, restarts of the coordinator.

Pure. Rows are the store's (`control`, and `History.restarts`). Where one stands among the rounds follows from
their stamps, which are one store's.
"""

from bisect import bisect_right
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, Final

from edged.orders import round_name

Row = Mapping[str, Any]
HOLDING: Final = ("weights", "policy", "drain", "readmit")
"""What holds from some round on."""


def told(row: Row, regime: str) -> str:
    """`weights w_t 0.75, w_e 0.25 from round 4 on, by ann@desk`; `pause, by ann@desk`."""
    what, who = row["what"], row.get("who") or "the coordinator itself"
    if what == "restart":
        return f"coordinator restarted on {row['host']}, term {row['term']}"
    if what == "weights":
        what += f" w_t {row['w_t']:g}, w_e {row['w_e']:g}"
    elif what == "policy":
        what += f" {row['policy']}" + "".join(f", {k} {v}" for k, v in (row.get("options") or {}).items())
    elif row.get("board"):
        what += f" {row['board']}"
    since = f" from {round_name(regime)} {row['from_round']} on" if row["what"] in HOLDING else ""
    why = row.get("reason") or ""
    # Who stops a run is its reason, where no other is given.
    return f"{what}{since}, by {who}" + (f": {why}" if why and why != f"stopped by {who}" else "")


def placed(rounds: Sequence[Row], rows: Iterable[Row]) -> dict[int, list[Row]]:
    """The rows by how many of the rounds were over before; a run's start is none, for all follow it."""
    ends = [row["at"] for row in rounds]
    found: dict[int, list[Row]] = {}
    for row in sorted(rows, key=lambda row: float(row["at"])):
        if row["what"] != "start":
            found.setdefault(bisect_right(ends, row["at"]), []).append(row)
    return found
