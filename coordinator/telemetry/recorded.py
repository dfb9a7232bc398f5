"""Points of a run out of the store, each with the stamp of its row, in the order in which they happened."""

from collections.abc import Iterator
from typing import Any, Final

from msgspec import structs

from coordinator.history import History
from coordinator.silos import ALL
from coordinator.telemetry.chronicle import Chronicle
from coordinator.telemetry.schema import Point
from edged.messages import EnergyChannel, Power

TABLES: Final = ("decision", "board_round", "round", "closed", "evaluation", "control", "power")
"""In the order in which rows of one transaction happened."""


def points(history: History, fleet: str, run: dict[str, Any]) -> Iterator[Point]:
    """All of them, stamped. Rows of a time when the clock was not set are left out (`unset` counts them)."""
    channels, silos = _channels(history, run["run"]), _silos(history, run["run"])
    chronicle = Chronicle(fleet, lambda board: (silos.get(board, ""), channels.get(board, ())))
    chronicle.begin(run["run"], run["settings"])
    for what, row in _rows(history, run["run"]):
        value = _power(row) if what == "power" else row
        if what == "power":
            chronicle.setting = structs.replace(chronicle.setting, round=row["round"])
        stamp = round(row["at"] * 1e9)
        made = chronicle.points(what, value)
        if not row.get("undated"):
            yield from (structs.replace(point, nanoseconds=stamp) for point in made)


def unset(history: History, run: str) -> int:
    """Rows that cannot be given a time."""
    return sum(bool(row.get("undated")) for _, row in _rows(history, run))


def _rows(history: History, run: str) -> list[tuple[str, dict[str, Any]]]:
    found = [(what, row) for what in TABLES for row in history.rows(what, run)]
    return sorted(found, key=lambda pair: pair[1]["at"])


def _channels(history: History, run: str) -> dict[str, tuple[EnergyChannel, ...]]:
    """The scope of the headline channel, as the boards' reports have it."""
    scopes = {row["board"]: (row["scope"], row["basis"]) for row in history.board_rounds(run) if row["scope"]}
    found: dict[str, tuple[EnergyChannel, ...]] = {}
    for row in history.rows("power", run):
        scope, basis = scopes.get(row["board"], ("", row["basis"]))
        if row["headline"]:
            found[row["board"]] = (EnergyChannel(row["headline"], scope, basis, headline=True),)
    return found


def _silos(history: History, run: str) -> dict[str, str]:
    """The silo of every board that was ever a rank in one."""
    rounds = history.rows("round", run)
    groups = [(name, group) for row in rounds for name, group in row.get("silos", {}).items() if name != ALL]
    return {board: name for name, group in groups for board in (*group["boards"], *group["left_out"])}


def _power(row: dict[str, Any]) -> Power:
    return Power(
        row["board"],
        "imported",
        headline=row["headline"],
        basis=row["basis"],
        watts=row["watts"],
        joules=row["joules"],
        temperature_celsius=row["temperature_celsius"],
        throttled=tuple(row["throttled"]),
        sampler_cpu_seconds=row.get("sampler_cpu_seconds"),
    )
