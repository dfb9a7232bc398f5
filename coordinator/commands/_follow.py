"""Following a run: a line for each round that ends, what it waits for in between, and how it ended.

Where the state comes from (a coordinator over the broker, or one in this process) is the caller's.
"""

from collections.abc import Callable, Mapping
from typing import Any

from coordinator.commands import _show, _updates
from coordinator.commands.rounds import joules_by_basis, shares
from coordinator.pacing import warning
from edged.messages import FleetState
from edged.orders import round_name

Data = Mapping[str, Any]
Fetch = Callable[[int], Data]
"""fetch(last): the run's last rounds as `views.rounds` gives them."""
MOST_AT_ONCE = 200
TOLD_PHASES = ("preparing", "gathering", "paused")
PATIENCE_SECONDS = 10.0
"""From then on it is said what a round waits for."""
ELSEWHERE = 3
"""So many states in a row without the run, and it is the coordinator's no more: one may be older than it."""


class Follower:
    """`see` each state of the fleet; `done` once the run is over or could not begin."""

    def __init__(self, run: str, target: int, fetch: Fetch, as_json: bool, evaluated: bool = True) -> None:
        self.run, self.done, self.reason, self.accepted = run, False, "", 0
        self._target, self._fetch, self._json, self._evaluated = target, fetch, as_json, evaluated
        self._round = self._elsewhere = 0
        self._told, self._turn = "", round_name("")
        self._gone: set[str] = set()

    @property
    def complete(self) -> bool:
        """True when all samples were accepted."""
        return self.accepted >= self._target

    def see(self, state: FleetState) -> None:
        """Tell what is new in it."""
        # A coordinator's will is as old as its connection, and may know nothing of the run.
        self.presence("the coordinator", state.link == "up")
        if state.link != "up":
            return
        if state.run != self.run:
            self._miss(state)
            return
        self._elsewhere, self._turn = 0, round_name(state.regime)
        newest = int(state.last.get("round", 0)) if state.last.get("run") == self.run else 0
        if newest > self._round:
            for row in self._fetch(min(MOST_AT_ONCE, newest - self._round))["rounds"]:
                if row["round"] > self._round:
                    self._tell_round(row, state.rounds)
        if state.phase == "done":
            self.done, self.reason = True, state.reason
        elif state.phase in TOLD_PHASES:
            self._say(f"{state.phase}: {state.reason}" if state.reason else state.phase)
        else:
            self._wait(state)

    def _wait(self, state: FleetState) -> None:
        late = [one for one in state.waiting if one.since_seconds >= PATIENCE_SECONDS]
        if late:
            boards = ", ".join(sorted(one.board for one in late))
            what = " and ".join(sorted({one.what for one in late}))
            self._say(f"{self._turn} {state.round} waits for {boards} {what}")

    def presence(self, who: str, there: bool) -> None:
        """Say that the coordinator or the broker is gone, and that it is back."""
        if there and who in self._gone:
            self._gone.discard(who)
            self._say(f"{who} is back")
        elif not there and who not in self._gone:
            self._gone.add(who)
            self._say(f"{who} is gone; the run goes on when it is back")

    def measured(self) -> bool:
        """True when no held-out figures are to come for the last round."""
        if not (self._evaluated and self._round):
            return True
        return any(row["round"] == self._round for row in self._fetch(1)["evaluations"])

    def farewell(self) -> str:
        """What becomes of the run when nobody follows it."""
        when = " when the coordinator is back" if self._gone else ""
        return f"run {self.run} goes on{when}; `edged-coordinator stop` ends it"

    def end(self) -> None:
        """The last word: held-out figures and how it ended."""
        data = self._fetch(1) if self._round else {"evaluations": []}
        held_out = next(
            (row for row in reversed(data["evaluations"]) if "accuracy" in row or "loss" in row), None
        )
        if self._json:
            _show.json_line(
                {
                    "event": "finished",
                    "run": self.run,
                    "complete": self.complete,
                    "accepted": self.accepted,
                    "reason": self.reason,
                    "evaluation": held_out,
                }
            )
            return
        if held_out is not None:
            _show.line(
                f"held out after {self._turn} {held_out['round']}: accuracy "
                f"{_show.percent(held_out.get('accuracy'))}, loss {_show.figure(held_out.get('loss'))}"
            )
        _show.line(f"run {self.run}: {self.reason}")

    def _miss(self, state: FleetState) -> None:
        if state.reason.startswith(f"run {self.run} could not begin"):
            self.done, self.reason = True, state.reason
            return
        self._elsewhere += 1
        if self._elsewhere >= ELSEWHERE:
            present = f"has run {state.run}" if state.run else "has no run"
            self.done = True
            self.reason = (
                f"run {self.run} is not the coordinator's any more, it {present}; "
                "`edged-coordinator runs` says whether it began and how it ended"
            )

    def _tell_round(self, row: Data, of: int) -> None:
        self._round, self.accepted = row["round"], row["accepted_in_all"]
        if self._json:
            _show.json_line({"event": "round", **row})
            return
        if told := warning(row):
            _show.progress(f"{self._turn} {row['round']}: {told}")
        if "updates" in row:
            cells = _updates.period_cells(row, "", joules_by_basis(row))
            _show.line(
                f"{self._turn} {row['round']}/{of}: {cells[1]}, compute {cells[2]}, updates {cells[4]}, "
                f"staleness {cells[5]}"
                + (f", {row['returned']:,} samples lost and dealt again" if row["returned"] else "")
            )
            return
        longest = f" ({row['longest']})" if row["longest"] else ""
        lost = row["ordered"] - row["accepted"]
        attempts = max((silo["attempts"] for silo in (row.get("silos") or {}).values()), default=1)
        _show.line(
            f"{self._turn} {row['round']}/{of}{_show.beyond(row['round'], of)}: "
            f"makespan {_show.duration(row['makespan_seconds'])}{longest}, "
            f"compute {joules_by_basis(row)}, {shares(row)}"
            + (f", attempt {attempts}" if attempts > 1 else "")
            + (f", {lost:,} samples lost and dealt again" if lost else "")
        )

    def _say(self, text: str) -> None:
        if text != self._told:
            self._told = text
            _show.progress(text)
