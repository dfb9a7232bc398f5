"""Points as line protocol by influxdb-client's `Point`, one line each, every stamp of a series its own.

Servers replace a point silently when tags and stamp are equal, so an equal stamp moves on by a nanosecond.
"""

from collections.abc import Callable
from functools import cache
from typing import Any, Final

from coordinator.telemetry.schema import Point

SET_AFTER_SECONDS: Final = 1_767_225_600.0
"""2026-01-01: a clock that says less has not been set since the machine started."""


Series = tuple[str, tuple[tuple[str, str], ...]]
"""Measurement, and each tag with its value."""


def is_set(wall_seconds: float) -> bool:
    """True for a clock that may stamp points."""
    return wall_seconds >= SET_AFTER_SECONDS


class Writer:
    """Makes lines in the order of the points."""

    def __init__(self) -> None:
        self._newest: dict[Series, int] = {}
        self._heads: dict[Series, str] = {}

    def line(self, point: Point) -> str:
        """One line without its end. Raises ValueError for a stamp of an unset clock."""
        if not is_set(point.nanoseconds / 1e9):
            raise ValueError(
                f"{point.measurement}: stamped {point.nanoseconds} ns, by a clock that was not set"
            )
        series = (point.measurement, tuple(point.tags.items()))
        if series not in self._heads:
            self._heads[series] = _head(point)
        made = _point()("-")
        for name, value in point.fields.items():
            made = made.field(name, value)
        rest: str = made.time(self._own(series, point.nanoseconds), "ns").to_line_protocol()
        return self._heads[series] + rest.removeprefix("-")

    def _own(self, series: Series, nanoseconds: int) -> int:
        newest = self._newest.get(series, 0)
        # Only a stamp that is equal or just behind is moved: a clock set back by more must not drag on.
        mine = newest + 1 if newest - 1_000_000 < nanoseconds <= newest else nanoseconds
        self._newest[series] = mine
        return mine


def _head(point: Point) -> str:
    """Measurement and tags as the client escapes them, which takes it longer than the fields."""
    made = _point()(point.measurement)
    for name, tag in point.tags.items():
        made = made.tag(name, tag)
    mark = " -=true"
    line: str = made.field("-", True).to_line_protocol()
    return line.removesuffix(mark)


@cache
def _point() -> Callable[[str], Any]:
    from influxdb_client.client.write.point import Point as Client

    return Client
