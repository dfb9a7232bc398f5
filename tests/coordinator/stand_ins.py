"""What stands for the coordinator's worker threads and its evaluation process, without threads or torch."""

from collections.abc import Callable
from pathlib import Path

import numpy as np

from coordinator.evaluate import Answer, Foundation, Measure, Prepare, Question
from coordinator.workers import Callback, Done, Job
from edged.tasks import Defaults
from edged.transfers import describe
from edged.weights import save

TASK_HASH = "h"
POOL_SAMPLES = 5000


class Crew:
    """Does each job at once, in place."""

    def __init__(self, put: Callable[[Done], None]) -> None:
        self._put = put

    def __call__(self, job: Job, callback: Callback) -> None:
        result: object
        try:
            result = job()
        except Exception as error:
            result = error
        self._put(Done(callback, result))

    def close(self) -> None: ...


class Examiner:
    """Prepares a model of `size` numbers without torch, and finds every version 0.5 good."""

    size = 3000

    def __init__(self, put: Callable[[Answer], None]) -> None:
        self._put = put

    def ask(self, question: Question) -> None:
        if isinstance(question, Measure):
            self._put(Answer(question.id, figures={"accuracy": 0.5, "loss": 1.0}, seconds=0.1))
            return
        if question.options.get("broken"):
            self._put(Answer(question.id, error="task digits has no option broken"))
            return
        self._put(Answer(question.id, foundation=self._prepared(question)))

    def _prepared(self, question: Prepare) -> Foundation:
        target = Path(question.target)
        target.parent.mkdir(parents=True, exist_ok=True)
        save(target, {"w": np.linspace(-1, 1, self.size, dtype="f4"), "n": np.array(0)})
        manifest = describe(target, question.chunk_bytes)
        defaults = Defaults(batch=10, learning_rate=0.1)
        return Foundation("digits", "digits.py", TASK_HASH, defaults, manifest, "f", POOL_SAMPLES)

    def close(self) -> None: ...


class Asleep(Examiner):
    """Answers nothing until it is woken."""

    def __init__(self, put: Callable[[Answer], None]) -> None:
        super().__init__(put)
        self._awake = False
        self._questions: list[Question] = []

    def ask(self, question: Question) -> None:
        if self._awake:
            super().ask(question)
        else:
            self._questions.append(question)

    def wake(self) -> None:
        self._awake = True
        for question in self._questions:
            self.ask(question)


class Unmeasuring(Asleep):
    """Prepares runs, and answers nothing else until it is woken."""

    def ask(self, question: Question) -> None:
        if isinstance(question, Prepare):
            Examiner.ask(self, question)
        else:
            super().ask(question)
