"""What a run does, in the log: a line for its beginning, its end, each wish, pause and lost order."""

import logging
from typing import Any

from edged.messages import FleetState

LOG = logging.getLogger(__name__)

KNOWN = frozenset({"run", "what", "who", "from_round"})


class Diary:
    """An onlooker of the coordinator (`tools.Onlooker`)."""

    def __init__(self) -> None:
        self._phase = ""

    def __call__(self, what: str, value: Any) -> None:
        """Log what is worth a line of it."""
        text = self._paused(value) if what == "state" else _of_row(what, value)
        if text:
            LOG.info("%s", text)

    def _paused(self, state: FleetState) -> str:
        before, self._phase = self._phase, state.phase
        if state.phase == before or state.phase != "paused":
            return ""
        return f"run {state.run} is paused after round {state.round}" + _because(state.reason)


def _of_row(what: str, row: Any) -> str:
    if what == "begun":
        s = row["settings"]
        return (
            f"run {row['run']} begins: task {s['task']}, pool {s['pool']}, {s['rounds']} rounds of "
            f"{s['budget']} samples, policy {s['policy']}, w_t {s['w_t']:g}, w_e {s['w_e']:g}"
        )
    if what == "finished":
        return f"run {row['run']} is over: {row['reason']}"
    if what == "control":
        words = ", ".join(f"{key} {row[key]}" for key in sorted(row.keys() - KNOWN))
        return f"run {row['run']}: {row['what']}, asked by {row['who'] or 'nobody named'}" + _because(words)
    if what == "board_round" and row["status"] not in ("accepted", "working"):
        return (
            f"run {row['run']}, round {row['round']}: {row['board']} {row['status']}, "
            f"{row.get('returned', row['samples'])} samples are dealt again" + _because(row["reason"])
        )
    if what == "round" and not row["accepted"]:
        return f"run {row['run']}, round {row['round']}: nothing was accepted, the model stays as it was"
    return ""


def _because(text: str) -> str:
    return f": {text}" if text else ""
