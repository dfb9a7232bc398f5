"""What a run does, in the log: a line for its beginning, its end, each wish, pause and lost order."""

import logging
from typing import Any

from coordinator import interludes
from edged.messages import FleetState
from edged.orders import round_name

LOG = logging.getLogger(__name__)


class Diary:
    """An onlooker of the coordinator (`tools.Onlooker`)."""

    def __init__(self) -> None:
        self._phase = self._regime = ""

    def __call__(self, what: str, value: Any) -> None:
        """Log what is worth a line of it."""
        if what == "begun":
            self._regime = value["settings"]["regime"]
        text = self._paused(value) if what == "state" else self._of_row(what, value)
        if text:
            LOG.info("%s", text)

    def _paused(self, state: FleetState) -> str:
        before, self._phase, self._regime = self._phase, state.phase, state.regime
        if state.phase == before or state.phase != "paused":
            return ""
        at = f"{round_name(state.regime)} {state.round}"
        return f"run {state.run} is paused at {at}" + _because(state.reason)

    def _of_row(self, what: str, row: Any) -> str:
        turn = round_name(self._regime)
        if what == "begun":
            s = row["settings"]
            return (
                f"run {row['run']} begins: task {s['task']}, pool {s['pool']}, {s['rounds']} {turn}s of "
                f"{s['budget']} samples, policy {s['policy']}, w_t {s['w_t']:g}, w_e {s['w_e']:g}"
            )
        if what == "finished":
            return f"run {row['run']} is over: {row['reason']}"
        if what == "control":
            return f"run {row['run']}: {interludes.told(row, self._regime)}"
        if what == "board_round" and row["status"] not in ("accepted", "working"):
            return (
                f"run {row['run']}, {turn} {row['round']}: {row['board']} {row['status']}, "
                f"{row.get('returned', row['samples'])} samples are dealt again" + _because(row["reason"])
            )
        if what == "round" and not row["accepted"]:
            return f"run {row['run']}, {turn} {row['round']}: nothing was accepted, the model stays as it was"
        return ""


def _because(text: str) -> str:
    return f": {text}" if text else ""
