"""A panel as a row, and the InfluxQL that panels are made of. No Grafana here."""

from dataclasses import dataclass
from typing import Literal

from coordinator.telemetry.schema import BASES

Kind = Literal["timeseries", "stat", "table", "barchart", "piechart", "xychart"]
FLEET = '"fleet" =~ /^$fleet$/'
RUN = f'{FLEET} AND "run" =~ /^$run$/ AND $timeFilter'
BOARDS = f'{FLEET} AND "board" =~ /^$board$/ AND "silo" =~ /^$silo$/ AND $timeFilter'
BOARD_RUN = f'{BOARDS} AND "run" =~ /^$run$/'
EVERY = "time($__interval)"


@dataclass(frozen=True)
class Panel:
    """One panel: its kind, queries as (InfluxQL, alias), unit, what it tells; 24 columns make a row."""

    title: str
    kind: Kind
    queries: tuple[tuple[str, str], ...]
    unit: str = "short"
    text: str = ""
    width: int = 12
    height: int = 8
    stacked: bool = False
    rows: bool = False
    band: bool = False
    """`low` and `high` bound the third column."""
    by_run: bool = False
    """A line a run out of one table."""


def each(function: str, column: str, measurement: str, where: str, *groups: str) -> str:
    """One value a step of time, by groups."""
    names = "".join(f', "{group}"' for group in groups)
    return (
        f'SELECT {function}("{column}") FROM "{measurement}" WHERE {where} GROUP BY {EVERY}{names} fill(none)'
    )


def rate(column: str, measurement: str, where: str, *groups: str) -> str:
    """How fast a count grows, a second; a process that began anew gives no point."""
    names = "".join(f', "{group}"' for group in groups)
    return (
        f'SELECT non_negative_derivative(last("{column}"), 1s) FROM "{measurement}" '
        f"WHERE {where} GROUP BY {EVERY}{names} fill(none)"
    )


def sums(*columns: str, where: str, measurement: str) -> str:
    """The sums over the time shown, each under its own name."""
    words = ", ".join(
        f'sum("{column}") AS "{column.removeprefix("joules_").removesuffix("_joules")}"' for column in columns
    )
    return f'SELECT {words} FROM "{measurement}" WHERE {where}'


def raw(columns: str, measurement: str, where: str, groups: str = "") -> str:
    """Points as they were written."""
    return f'SELECT {columns} FROM "{measurement}" WHERE {where}{f" GROUP BY {groups}" if groups else ""}'


HEADLINE = f'{BOARDS} AND "headline" = true'
BY_BASIS = sums(*(f"joules_{basis}" for basis in BASES), where=RUN, measurement="round")
