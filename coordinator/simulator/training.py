"""Real training under virtual time: every order's local steps, merges and held-out figures are real ones.

The boards' own training child does the steps, one virtual board after another, `aggregate` merges, the
coordinator's evaluation process measures; only seconds and joules are virtual. Nothing here imports torch.
"""

from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

from msgspec import Struct

from coordinator import events as ev
from coordinator.aggregate import fold
from coordinator.application import descend, mix
from coordinator.evaluate import Answer, Measure, Prepare, Question
from coordinator.evaluator import Evaluator
from coordinator.simulator.learning import Learnt
from edged import tasks
from edged.child import Child, Died, Said
from edged.messages import Train
from edged.work import Failed, Finished, Job

CHUNK_BYTES = 1 << 20
ANSWER_SECONDS = 600.0
"""For one order or one evaluation; a process that dies says so at once."""


class TrainingError(RuntimeError):
    """The task cannot be trained; the text says which and why."""


class Lesson(Struct, frozen=True):
    """What is trained: the task's name and options, where it lies, and the pool's folder."""

    task: str
    pool: Path
    options: dict[str, Any] = {}
    folders: tuple[str, ...] = ()

    @property
    def samples(self) -> int:
        """Of the pool. Raises TrainingError."""
        try:
            found = tasks.find(self.task, [Path(folder) for folder in self.folders])
            tasks.options_of(found, self.options)
            return found.inspect(self.pool).samples
        except (tasks.TaskError, tasks.PoolError) as error:
            raise TrainingError(str(error)) from None

    @property
    def defaults(self) -> tasks.Defaults:
        """The task's own learning set-up."""
        return tasks.find(self.task, [Path(folder) for folder in self.folders]).DEFAULTS


class RealTraining:
    """A context. Models and updates lie in `folder` until they are merged."""

    def __init__(self, lesson: Lesson, seed: int, folder: Path) -> None:
        self._lesson, self._seed, self._folder = lesson, seed, folder
        self._words: SimpleQueue[object] = SimpleQueue()
        self._answers: SimpleQueue[Answer] = SimpleQueue()
        self._child = Child(self._words)
        self._evaluator = Evaluator(self._answers.put)
        self._questions = 0
        self._outdated: tuple[Path, ...] = ()

    def __enter__(self) -> "RealTraining":
        first = self._model("simulated.0")
        question = Prepare(
            self._next(), *self._about(), seed=self._seed, target=str(first), chunk_bytes=CHUNK_BYTES
        )
        try:
            self._ask(question)
        except BaseException:
            self.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End both processes."""
        self._child.close()
        self._evaluator.close()

    def train(self, order: Train) -> Learnt:
        """Local steps of one order, from its model version. Raises TrainingError."""
        job = Job(
            board=order.order.split(".")[2],
            order=order,
            model=str(self._model(order.model)),
            update=str(self._update(order.order)),
            pool=str(self._lesson.pool),
            folders=self._lesson.folders,
            threads=1,
        )
        self._child.train(job)
        while True:
            try:
                said = self._words.get(timeout=ANSWER_SECONDS)
            except Empty:
                raise TrainingError(f"{order.order}: no end after {ANSWER_SECONDS:g} s") from None
            match said:
                case Said(word=Finished(order=name) as word) if name == order.order:
                    self._child.heard(name)
                    return Learnt(word.loss_sum, dict(word.metrics))
                case Said(word=Failed(order=name, reason=reason)) if name == order.order:
                    raise TrainingError(f"{order.order}: {reason}")
                case Died(order=name, reason=reason) if name == order.order:
                    raise TrainingError(f"{order.order}: {reason}")

    def train_together(self, orders: list[Train]) -> dict[str, Learnt]:
        """Synchronous steps have no real training here."""
        raise TrainingError(f"{orders[0].regime} has no real training under virtual time, only pma and asp")

    def fold(self, fold_: ev.Fold) -> None:
        """Merge into the next version; the updates are of no use any more."""
        updates = [(self._update(order), samples) for _, order, samples in fold_.items]
        fold(updates, self._model(fold_.version), CHUNK_BYTES)
        for path, _ in updates:
            path.unlink()

    def apply(self, apply: ev.Apply) -> None:
        """Make the next version; the version before the last is asked for by nobody any more."""
        base, update = self._model(apply.base), self._update(apply.order)
        target, before = self._model(apply.version), self._velocity(apply.base)
        if apply.grain == "model":
            mix(base, update, target, CHUNK_BYTES, apply.rate)
        else:
            descend(
                base,
                update,
                target,
                CHUNK_BYTES,
                apply.rate,
                weight_decay=apply.weight_decay,
                momentum=apply.momentum,
                velocity=(before if before.exists() else None, self._velocity(apply.version)),
            )
        update.unlink()
        for path in self._outdated:
            path.unlink(missing_ok=True)
        self._outdated = (base, before)

    def measure(self, version: str) -> dict[str, Any]:
        """Held-out figures, or the reason why there are none under `error`."""
        answer = self._ask(Measure(self._next(), *self._about(), model=str(self._model(version))), False)
        return {"error": answer.error} if answer.error else dict(answer.figures or {})

    def _about(self) -> tuple[str, tuple[str, ...], dict[str, Any], str, str]:
        lesson = self._lesson
        return lesson.task, lesson.folders, lesson.options, "virtual", str(lesson.pool)

    def _ask(self, question: Question, must: bool = True) -> Answer:
        self._evaluator.ask(question)
        try:
            answer = self._answers.get(timeout=ANSWER_SECONDS)
        except Empty:
            raise TrainingError(f"no answer of the evaluation after {ANSWER_SECONDS:g} s") from None
        if must and answer.error:
            raise TrainingError(answer.error)
        return answer

    def _next(self) -> int:
        self._questions += 1
        return self._questions

    def _model(self, version: str) -> Path:
        return self._folder / f"{version}.safetensors"

    def _velocity(self, version: str) -> Path:
        return self._folder / f"velocity-{version}.safetensors"

    def _update(self, order: str) -> Path:
        return self._folder / f"update-{order}.safetensors"
