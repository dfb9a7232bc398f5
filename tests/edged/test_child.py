"""The supervisor of the training child, with real processes that need no torch."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue

import pytest
from msgspec.structs import replace

from edged import child as child_module
from edged.child import Child, Died, Said, ended
from edged.messages import Manifest, Piece, Train
from edged.work import Failed, Finished, Job, Prepared, Ready, Stepped

SCRIPT = Path(__file__).with_name("scripted_trainer.py")
ORDER = Train(
    order="r.1.pi4.1",
    run="r",
    round=1,
    attempt=1,
    boot="coord",
    term=1,
    regime="pma",
    task="digits",
    task_hash="h",
    pool="digits",
    fingerprint="f",
    pieces=(Piece(0, 0, 10),),
    samples=10,
    batch=2,
    learning_rate=0.1,
    model="r.0",
    manifest=Manifest(length_bytes=1, chunk_bytes=1, sha256="ab" * 32),
    seed=1,
    pool_samples=100,
)


class Supervised:
    """A child and what came onto its queue."""

    def __init__(self, folder: Path) -> None:
        self.queue: SimpleQueue[object] = SimpleQueue()
        self.child = Child(self.queue, (sys.executable, str(SCRIPT)))
        self._folder = folder

    def train(self, do: str = "", number: int = 1) -> str:
        order = replace(ORDER, order=f"r.{number}.pi4.1", round=number, options={"do": do})
        self.child.train(Job("pi4", order, "model", str(self._folder / "update"), "builtin"))
        return order.order

    def until(self, kind: type, seconds: float = 20.0) -> object:
        """The next event of that kind; words are taken out of their Said."""
        end = time.monotonic() + seconds
        while time.monotonic() < end:
            event = self.queue.get(timeout=seconds)
            word = event.word if isinstance(event, Said) else event
            if isinstance(word, kind):
                return word
        raise AssertionError(f"no {kind.__name__} within {seconds} s")


@pytest.fixture
def supervised(tmp_path: Path) -> Iterator[Supervised]:
    made = Supervised(tmp_path)
    yield made
    made.child.close()


def test_one_child_trains_job_after_job(supervised: Supervised, tmp_path: Path) -> None:
    first = supervised.train()
    assert isinstance(supervised.until(Ready), Ready)
    finished = supervised.until(Finished)
    assert isinstance(finished, Finished)
    assert (finished.order, finished.samples) == (first, 10)
    assert (tmp_path / "update").exists()
    supervised.child.heard(first)
    pid = supervised.child.pid
    supervised.train(number=2)
    supervised.until(Finished)
    assert supervised.child.pid == pid
    assert supervised.child.starts == 1


@pytest.mark.parametrize(
    ("do", "words"),
    [
        ("exit", "exit code 3"),
        ("signal", "SIGILL: this torch wheel does not fit this CPU"),
    ],
)
def test_how_a_child_died_is_said_in_words(supervised: Supervised, do: str, words: str) -> None:
    order = supervised.train(do)
    died = supervised.until(Died)
    assert isinstance(died, Died)
    assert died.order == order
    assert words in died.reason


def test_a_killed_child_may_have_run_out_of_memory_and_is_replaced(supervised: Supervised) -> None:
    order = supervised.train("wait")
    supervised.until(Stepped)
    pid = supervised.child.pid
    assert pid is not None
    os.kill(pid, signal.SIGKILL)
    died = supervised.until(Died)
    assert isinstance(died, Died)
    assert died.reason == "the training process was ended by SIGKILL: killed, out of memory?"
    supervised.child.heard(order)
    supervised.train(number=2)
    assert isinstance(supervised.until(Finished), Finished)
    assert supervised.child.starts == 2


def test_a_cancelled_job_ends_with_its_last_word_and_the_child_stays(supervised: Supervised) -> None:
    order = supervised.train("wait")
    supervised.until(Stepped)
    supervised.child.cancel(order)
    failed = supervised.until(Failed)
    assert isinstance(failed, Failed)
    assert failed.reason == "cancelled"
    supervised.child.heard(order)
    supervised.train(number=2)
    supervised.until(Finished)
    assert supervised.child.starts == 1


def test_a_child_that_does_not_stop_is_ended_and_the_waiting_job_goes_to_a_new_one(
    supervised: Supervised,
) -> None:
    order = supervised.train("hang")
    supervised.until(Stepped)
    supervised.child.heard_ready()
    supervised.child.cancel(order)
    second = supervised.train(number=2)
    supervised.child.tend(time.monotonic() + child_module.CANCEL_SECONDS)
    finished = supervised.until(Finished)
    assert isinstance(finished, Finished)
    assert finished.order == second
    assert supervised.child.starts == 2


def test_a_child_that_imports_torch_is_given_time_before_it_must_stop(supervised: Supervised) -> None:
    order = supervised.train("hang")
    supervised.until(Stepped)
    supervised.child.cancel(order)
    now = time.monotonic()
    supervised.child.tend(now + child_module.CANCEL_SECONDS + 1)
    assert supervised.child.pid is not None
    supervised.child.heard_ready()
    supervised.child.tend(now + child_module.CANCEL_SECONDS + 1)
    assert supervised.child.pid is None


def test_no_word_follows_a_kill(supervised: Supervised) -> None:
    supervised.train("hang")
    supervised.until(Stepped)
    supervised.child.kill()
    time.sleep(0.2)
    assert supervised.queue.empty()
    assert supervised.child.pid is None


def test_a_line_that_is_no_word_is_passed_over(supervised: Supervised) -> None:
    supervised.train("garbage")
    assert isinstance(supervised.until(Prepared), Prepared)
    assert isinstance(supervised.until(Finished), Finished)


def test_closing_ends_the_process(supervised: Supervised) -> None:
    supervised.train()
    supervised.until(Finished)
    pid = supervised.child.pid
    supervised.child.close()
    assert pid is not None
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize(("code", "words"), [(0, "exit code 0"), (-15, "SIGTERM"), (-200, "signal 200")])
def test_every_end_has_words(code: int, words: str) -> None:
    assert words in ended(code)
