"""The evaluation process makes first models and held-out figures; whatever it does, the run goes on."""

import os
import queue
import signal
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.evaluate import Answer, Measure, Prepare
from coordinator.evaluator import Evaluator
from edged.weights import schema

TASK = """
import msgspec
from edged.tasks import BUILTIN, Defaults, OtherPoolError

NAME = "user"
SUMMARY = "a task of a user"
DEFAULTS = Defaults(batch=4, learning_rate=0.1)

class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    inputs: int = 3

def model(options, seed):
    print("a task that prints")
    import torch
    torch.manual_seed(seed % 1000)
    return torch.nn.Linear(options.inputs, 2)

def inspect(folder):
    raise OtherPoolError("not mine")

def load(folder, options): ...
def batch(data, indices): ...
def loss_sum(model, batch): ...
def evaluate(model, data, max_samples=None):
    return {"loss": 1.0, "samples": 1.0}
"""


class Asker:
    def __init__(self, command: tuple[str, ...] | None = None) -> None:
        self.answers: queue.SimpleQueue[Answer] = queue.SimpleQueue()
        self.evaluator = Evaluator(self.answers.put, *(() if command is None else (command,)))

    def __call__(self, question: Prepare | Measure) -> Answer:
        self.evaluator.ask(question)
        answer = self.answers.get(timeout=120)
        assert answer.id == question.id
        return answer


@pytest.fixture(scope="module")
def ask() -> Iterator[Asker]:
    asker = Asker()
    yield asker
    asker.evaluator.close()


def prepare(target: Path, task: str = "digits", folder: Path = Path("/none"), **more: object) -> Prepare:
    values = {"options": {}, "pool": "digits", "path": None, "seed": 1, "chunk_bytes": 4096, **more}
    return Prepare(1, task, (str(folder),), target=str(target), **values)  # type: ignore[arg-type]


def measure(model: Path, task: str = "digits", folder: Path = Path("/none")) -> Measure:
    return Measure(2, task, (str(folder),), {}, task, None, str(model))


@pytest.mark.slow
def test_a_run_gets_its_first_model_by_seed_and_its_figures(ask: Asker, tmp_path: Path) -> None:
    foundation = ask(prepare(tmp_path / "a" / "0.safetensors")).foundation
    assert foundation is not None
    assert foundation.pool_samples == 1437
    assert foundation.defaults.batch == 16
    same, other = ask(prepare(tmp_path / "same")).foundation, ask(prepare(tmp_path / "o", seed=2)).foundation
    assert same is not None
    assert other is not None
    assert same.manifest == foundation.manifest != other.manifest
    answer = ask(measure(tmp_path / "same"))
    assert answer.figures is not None
    assert answer.figures["samples"] == 360
    assert 0 <= (answer.figures["accuracy"] or 0.0) < 0.5


@pytest.mark.slow
def test_what_cannot_be_prepared_is_said_in_words(ask: Asker, tmp_path: Path) -> None:
    assert "nothing" in ask(prepare(tmp_path / "m", "nothing")).error
    assert "widht" in ask(prepare(tmp_path / "m", options={"widht": 3})).error
    assert "width" in ask(prepare(tmp_path / "m", options={"width": "x"})).error
    (tmp_path / "broken.py").write_text("raise RuntimeError('oops')")
    assert "oops" in ask(prepare(tmp_path / "m", "broken", tmp_path)).error
    (tmp_path / "bad.safetensors").write_bytes(b"no model")
    assert "bad.safetensors" in ask(measure(tmp_path / "bad.safetensors")).error


@pytest.mark.slow
def test_a_users_task_without_a_copy_of_the_pool_still_begins(ask: Asker, tmp_path: Path) -> None:
    (tmp_path / "user.py").write_text(TASK)
    foundation = ask(prepare(tmp_path / "m", "user", tmp_path, pool="mine")).foundation
    assert foundation is not None
    assert foundation.fingerprint is None
    assert foundation.pool_error.startswith("no copy of pool mine here")
    assert schema(tmp_path / "m") == {"bias": ("F32", (2,)), "weight": ("F32", (2, 3))}
    assert ask(measure(tmp_path / "m", "user", tmp_path)).error.startswith("no copy of pool user here")


@pytest.mark.slow
def test_a_killed_process_answers_with_an_error_and_comes_back(ask: Asker, tmp_path: Path) -> None:
    (tmp_path / "dies.py").write_text("import os\nos.kill(os.getpid(), 9)")
    assert "SIGKILL" in ask(prepare(tmp_path / "m", "dies", tmp_path)).error
    assert ask(prepare(tmp_path / "m")).foundation is not None
    pid = ask.evaluator.pid
    assert pid is not None
    os.kill(pid, signal.SIGTERM)
    while ask.evaluator.pid == pid:
        pass
    assert ask(prepare(tmp_path / "m")).foundation is not None


def test_a_process_that_cannot_start_is_an_answer(tmp_path: Path) -> None:
    asker = Asker((str(tmp_path / "no-such-program"),))
    assert "No such file" in asker(measure(tmp_path)).error
    asker.evaluator.close()
    silent = Asker((sys.executable, "-c", "import sys; sys.exit('gone: no torch here')"))
    assert "gone: no torch here" in silent(measure(tmp_path)).error
    silent.evaluator.close()
