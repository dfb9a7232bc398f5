"""Remembers as much of a run as its points need: its settings, the round's boards, its totals. Pure.

The live coordinator and the import of a recorded run tell it the same things in the same order.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any, Final

import msgspec
from msgspec import structs

from coordinator import allocation, interludes
from coordinator.alerts import Alert
from coordinator.allocation import Control
from coordinator.controller import Allocation, Memory
from coordinator.events import Note
from coordinator.telemetry import points as made
from coordinator.telemetry.points import Row, Setting, Totals
from coordinator.telemetry.schema import Point
from edged.messages import EnergyChannel, Power

MOST_ROUNDS: Final = 64
"""Held-out figures come after their round; totals of so many rounds are kept for them."""

Board = tuple[str, Sequence[EnergyChannel]]
"""Silo and channels."""


class Chronicle:
    """`points` tells what is to be written of each thing. `board` answers for a board's silo and channels."""

    def __init__(self, fleet: str, board: Callable[[str], Board] = lambda name: ("", ())) -> None:
        self.setting = Setting(fleet)
        self._board = board
        self._settings: Mapping[str, Any] = {}
        self._boards: list[Row] = []
        self._totals = Totals()
        self._by_round: dict[int, Totals] = {0: Totals()}
        self._predicted: dict[str, float | None] = {}

    def begin(self, run: str, settings: Mapping[str, Any], rounds: Iterable[Row] = ()) -> None:
        """A run begins, or goes on after these rounds."""
        self._settings = settings
        self.setting = Setting(self.setting.fleet, run, 0, settings["regime"], settings["policy"])
        self._boards, self._totals, self._by_round = [], Totals(), {0: Totals()}
        for row in rounds:
            self._count(row)

    def points(self, what: str, value: Any) -> list[Point]:
        """Points of a power message, a recorded row, a note or a run's beginning and end."""
        return list(self._points(what, value))

    def _points(self, what: str, value: Any) -> Iterable[Point]:
        if isinstance(value, Power):
            silo, channels = self._board(value.board)
            return made.of_power(self.setting, value, silo, channels)
        if what == "fleet":
            return made.of_fleet(self.setting, *value)
        if what == "alert":
            return self._alert(*value)
        if isinstance(value, Note):
            return made.of_event(
                self.setting, value.counter, value.text, "" if value.board == "-" else value.board
            )
        match what:
            case "begun":
                self.begin(value["run"], value["settings"])
                return made.of_event(self.setting, "begun", f"run {value['run']} began")
            case "finished":
                ended = made.of_event(self.setting, "finished", value["reason"])
                self.setting = Setting(self.setting.fleet)
                return ended
            case "decision":
                self._predicted = predictions(value, self._settings)
                self.setting = structs.replace(self.setting, round=value["round"], policy=value["policy"])
            case "board_round":
                self._boards.append(value)
                return made.of_board_round(self.setting, value, self._board(value["board"])[0])
            case "closed":
                return made.of_closed(self.setting, value, self._board(value["board"])[0])
            case "round":
                boards, self._boards = self._boards, []
                self._count(value)
                return made.of_round(self.setting, value, boards, self._totals, self._predicted)
            case "evaluation":
                return made.of_evaluation(self.setting, value, self._by_round.get(value["round"]))
            case "control":
                return self._control(value)
        return ()

    def _alert(self, alert: Alert, begins: bool) -> Iterable[Point]:
        kind = f"alert {'begins' if begins else 'ends'}"
        return made.of_event(self.setting, kind, f"{alert.kind}: {alert.text}", alert.board)

    def _count(self, row: Row) -> None:
        self._totals = self._by_round[row["round"]] = self._totals.after(row)
        if len(self._by_round) > MOST_ROUNDS:
            del self._by_round[min(self._by_round)]

    def _control(self, row: Row) -> Iterable[Point]:
        text = interludes.told(row, self.setting.regime)
        board = str(row.get("board", ""))
        return made.of_event(self.setting, row["what"], text, board, w_t=row.get("w_t"), w_e=row.get("w_e"))


def predictions(decision: Row, settings: Mapping[str, Any]) -> dict[str, float | None]:
    """Makespan and joules that the decision promises, and what shares by time alone would, by the same
    readings."""
    decided = decision["decision"]
    by_time = time_only(decision, settings)
    return {
        "predicted_seconds": decided["predicted_seconds"],
        "predicted_joules": decided["predicted_joules"],
        "time_only_seconds": by_time.predicted_seconds if by_time else None,
        "time_only_joules": by_time.predicted_joules if by_time else None,
    }


def time_only(decision: Row, settings: Mapping[str, Any]) -> Allocation | None:
    """The shares that only time would give with a decision's inputs; None where no shares can be given."""
    memories = msgspec.convert(decision["memories"], dict[str, Memory | None])
    known = {board: memory for board, memory in memories.items() if memory is not None}
    budget = sum(decision["decision"]["shares"].values())
    if not memories or settings.get("regime", "pma") not in ("pma", "ddp", "hfl-ddp"):
        return None
    control = Control("adaptive", {"deadband": 0.0}, 1.0, 0.0, settings.get("regime", "pma"), memories=known)
    boards = tuple(sorted(memories))
    try:
        return allocation.allocate(control, boards, budget, decision["round"], settings.get("batch") or 1)
    except ValueError:
        return None
