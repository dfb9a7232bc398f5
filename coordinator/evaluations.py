"""What is asked of the evaluation process on behalf of runs, and to what each answer belongs.

It keeps order and bounds the backlog: a fleet whose rounds are faster than the evaluation skips some of them.
"""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from coordinator.checkpoints import Checkpoints
from coordinator.evaluate import Answer, Measure, Prepare, Question
from coordinator.store import Row
from edged.controls import RunSettings

MOST_OPEN: Final = 8
"""Measurements that wait or run; one more pushes out the oldest that waits."""


class Source(Struct, frozen=True):
    """Where a run's task lies, and its options and pool."""

    task: str
    options: dict[str, Any]
    pool: str


class Beginning(Struct, frozen=True):
    """A run that was asked for and is being prepared."""

    run: str
    settings: RunSettings
    who: str


class Evaluations:
    """`ask` hands one question to the process; answers come back through `answered`."""

    def __init__(
        self,
        ask: Callable[[Question], None],
        checkpoints: Checkpoints,
        pools: Mapping[str, str],
        folders: tuple[Path, ...],
    ) -> None:
        self._ask, self._checkpoints = ask, checkpoints
        self._pools, self._folders = pools, tuple(str(folder) for folder in folders)
        self._number = 0
        self._beginnings: list[tuple[Prepare, Beginning]] = []
        self._measures: list[tuple[Measure, str, int, str]] = []
        self._present: tuple[Question, Any] | None = None

    @property
    def open(self) -> int:
        """Questions without an answer."""
        return len(self._beginnings) + len(self._measures) + (self._present is not None)

    def needed(self) -> set[str]:
        """Model versions whose files must stay."""
        waiting = {version for *_, version in self._measures}
        present = self._present[1] if self._present else None
        return waiting | ({present[2]} if isinstance(present, tuple) else set())

    def prepare(self, beginning: Beginning, chunk_bytes: int) -> None:
        """Make the first model of a run; goes before all measurements."""
        s = beginning.settings
        question = Prepare(
            self._next(),
            s.task,
            self._folders,
            s.options,
            s.pool,
            self._pools.get(s.pool),
            s.seed,
            str(self._checkpoints.model(f"{beginning.run}.0")),
            chunk_bytes,
        )
        self._beginnings.append((question, beginning))
        self._go_on()

    def measure(self, source: Source, run: str, round_number: int, version: str) -> list[Row]:
        """Measure a version; returns rows of what is skipped for it."""
        question = Measure(
            self._next(),
            source.task,
            self._folders,
            source.options,
            source.pool,
            self._pools.get(source.pool),
            str(self._checkpoints.model(version)),
        )
        self._measures.append((question, run, round_number, version))
        skipped = []
        if len(self._measures) > MOST_OPEN:
            _, old_run, old_round, old_version = self._measures.pop(0)
            why = f"skipped: evaluation takes longer than the rounds ({MOST_OPEN} were waiting)"
            skipped.append(_row(old_run, old_round, old_version, {"error": why}))
        self._go_on()
        return skipped

    def answered(self, answer: Answer) -> Beginning | Row | None:
        """What the answer is about: the beginning it was asked for, or the row of a measurement."""
        if self._present is None or self._present[0].id != answer.id:
            return None
        about = self._present[1]
        self._present = None
        self._go_on()
        if isinstance(about, Beginning):
            return about
        run, round_number, version = about
        figures = {**(answer.figures or {}), "error": answer.error, "seconds": answer.seconds}
        return _row(run, round_number, version, figures)

    def _next(self) -> int:
        self._number += 1
        return self._number

    def _go_on(self) -> None:
        if self._present is not None:
            return
        if self._beginnings:
            self._present = self._beginnings.pop(0)
        elif self._measures:
            question, run, round_number, version = self._measures.pop(0)
            self._present = (question, (run, round_number, version))
        if self._present is not None:
            self._ask(self._present[0])


def _row(run: str, round_number: int, version: str, figures: dict[str, Any]) -> Row:
    # Figures are named by a task: they must not take the place of the row's own keys.
    return Row(run, "evaluation", {**figures, "run": run, "round": round_number, "version": version})
