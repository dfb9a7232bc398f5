"""A run's rounds as columns, for charts: bounded, filled from the store and then row by row. Pure."""

from collections.abc import Iterable, Mapping
from typing import Any, Final

import msgspec

from coordinator.pushes import REGIME, add
from coordinator.telemetry.chronicle import time_only
from coordinator.telemetry.points import waiting_share
from coordinator.telemetry.schema import PARTS
from edged.messages import Parts
from edged.orders import round_name

Row = Mapping[str, Any]
MOST_ROUNDS: Final = 1000
MOST_CELLS: Final = 200_000
"""Rounds times boards; more boards, fewer rounds."""
MOST_CHANGES: Final = 200
BOARD = ("samples", "seconds", "joules", "uncertainty_joules", "coverage", "cost", "loss", "basis", "status")
ROUND = ("makespan_seconds", "wall_seconds", "longest", "w_t", "w_e", "policy", "accepted", "reason")
PERIOD = ("updates", "staleness", "dropped", "batches", "versions")
"""Of asynchronous runs: by board."""
PROMISES = ("predicted_seconds", "predicted_joules", "time_only_seconds", "time_only_joules")


class Series:
    """Rows go in by `add`; `data` is what a page draws. Unknown figures are None."""

    def __init__(self, run: str = "", settings: Row | None = None) -> None:
        self.run, self.settings = run, dict(settings or {})
        self._rounds: dict[int, dict[str, Any]] = {}
        self._boards: dict[str, dict[int, dict[str, Any]]] = {}
        self._changes: list[dict[str, Any]] = []
        self._promises: dict[int, dict[str, float | None]] = {}

    def load(self, tables: Mapping[str, Iterable[Row]]) -> None:
        """Rows out of the store, by table."""
        for what, rows in tables.items():
            for row in rows:
                self.add(what, row)

    def add(self, what: str, row: Row) -> dict[str, Any] | None:
        """Take in one row; answers what a page must add, None where nothing changed for it."""
        match what:
            case "decision":
                self._decision(row)
                return None
            case "board_round":
                cell = {name: row.get(name) for name in BOARD}
                cell["joules_reason"] = row.get("joules_reason") if row.get("joules") is None else None
                self._cell(row["board"], row["round"]).update(cell)
                return None
            case "closed":
                cell = self._cell(row["board"], row["round"])
                if self.settings.get("regime") == REGIME:
                    self._add(cell, row)
                    return None  # one of many in its period, which tells of them together
                parts = cell["parts"] = {part: dict(row["parts"][part]) for part in PARTS}
                return {"closed": {"round": row["round"], "board": row["board"], "parts": parts}}
            case "round":
                return {"round": self._round(row)}
            case "evaluation":
                values = {name: row.get(name) for name in ("loss", "accuracy", "error")}
                if row["round"] in self._rounds:
                    self._rounds[row["round"]]["held_out"] = values
                return {"evaluation": {"round": row["round"], **values}}
            case "control":
                change = {name: value for name, value in row.items() if name != "run"}
                self._changes = [*self._changes, change][-MOST_CHANGES:]
                return {"change": change}
        return None

    def data(self, last: int = MOST_ROUNDS) -> dict[str, Any]:
        """The newest rounds, one document."""
        numbers = sorted(self._rounds)[-last:]
        rounds = [self._rounds[number] for number in numbers]
        return {
            "run": self.run,
            "settings": self.settings,
            "called": round_name(self.settings.get("regime", "")),
            "rounds": rounds,
            "boards": {
                board: [cells.get(number) for number in numbers]
                for board, cells in sorted(self._boards.items())
            },
            "changes": self._changes,
        }

    @property
    def newest(self) -> int:
        """Number of the newest round; 0 before there is one."""
        return max(self._rounds, default=0)

    def _decision(self, row: Row) -> None:
        promised, by_time = row["decision"], time_only(row, self.settings)
        self._promises[row["round"]] = {
            "predicted_seconds": promised["predicted_seconds"],
            "predicted_joules": promised["predicted_joules"],
            "time_only_seconds": by_time.predicted_seconds if by_time else None,
            "time_only_joules": by_time.predicted_joules if by_time else None,
        }
        for number in sorted(self._promises)[:-MOST_ROUNDS]:
            del self._promises[number]

    def _round(self, row: Row) -> dict[str, Any]:
        number = row["round"]
        cells = {board: cells[number] for board, cells in self._boards.items() if number in cells}
        seconds = [cell["seconds"] for cell in cells.values() if cell.get("seconds") is not None]
        made = {
            "round": number,
            "at": row.get("at"),
            **{name: row.get(name) for name in ROUND},
            **({name: row[name] for name in PERIOD} if "updates" in row else {}),
            "joules_by_basis": dict(row["compute_joules_by_basis"]),
            "joules_unknown_of": list(row["joules_unknown_of"]),
            "waiting_share": row["waiting_share"] if "waiting_share" in row else waiting_share(seconds),
            **self._promises.get(number, dict.fromkeys(PROMISES)),
        }
        self._rounds[number] = made
        self._trim()
        return {**made, "boards": cells}

    def _add(self, cell: dict[str, Any], row: Row) -> None:
        before = msgspec.convert(cell.get("parts", {}), Parts)
        cell["parts"] = msgspec.to_builtins(add(before, msgspec.convert(row["parts"], Parts)))

    def _cell(self, board: str, number: int) -> dict[str, Any]:
        return self._boards.setdefault(board, {}).setdefault(number, {})

    def _trim(self) -> None:
        most = max(10, min(MOST_ROUNDS, MOST_CELLS // max(1, len(self._boards))))
        for number in sorted(self._rounds)[:-most]:
            del self._rounds[number]
            for cells in self._boards.values():
                cells.pop(number, None)
