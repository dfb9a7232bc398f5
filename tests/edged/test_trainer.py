"""The training child on the shipped digits: real torch in a real process, started once for this file."""

import os
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from edged import tasks, weights
from edged.child import Child, Died, Said
from edged.messages import Piece, Train
from edged.schedule import subseed
from edged.work import Begun, Failed, Finished, Job, Prepared, Ready, Stepped, Word
from tests.edged.stand_in import train_order

pytestmark = pytest.mark.slow

USER_TASK = '''
"""The digits, with what a user's file may do to a board."""
from edged.tasks import digits
from edged.tasks.digits import Options, DEFAULTS, inspect, load, batch, evaluate, model  # noqa
NAME = "mine"
SUMMARY = "digits that misbehave"
CALLS = 0

def loss_sum(net, cut):
    global CALLS
    CALLS += 1
    print("a stray print")
    if CALLS == {at}:
        {what}
    return digits.loss_sum(net, cut)
'''


class Trainee:
    """The child, its queue, and orders with the digits' real hash and fingerprint."""

    def __init__(self, folder: Path) -> None:
        import torch  # noqa: F401 - the initial model is made here

        self.folder = folder
        self.queue: SimpleQueue[object] = SimpleQueue()
        self.child = Child(self.queue)
        self.model = folder / "model.safetensors"
        task = tasks.find("digits")
        weights.save(self.model, task.model(tasks.options_of(task, {}), subseed(1, "init")).state_dict())
        self.info = task.inspect(tasks.BUILTIN)
        self.task_hash = tasks.task_hash("digits")

    def order(self, number: int = 1, **changes: Any) -> Train:
        known = {"task_hash": self.task_hash, "fingerprint": self.info.fingerprint, "model": "r.0"}
        return train_order(self.model, number, **{**known, **changes})

    def update(self, name: str = "update") -> Path:
        return self.folder / f"{name}.safetensors"

    def train(self, order: Train, update: str = "update", **job: Any) -> Finished | Failed | Died:
        """To the end of the order; words before are in `words`."""
        path = str(self.update(update))
        settings: dict[str, Any] = {"threads": 1, "folders": (str(self.folder),), **job}
        self.child.train(Job("pi4", order, str(self.model), path, "builtin", **settings))
        self.words: list[Word] = []
        while True:
            event = self.queue.get(timeout=120)
            word = event.word if isinstance(event, Said) else event
            if isinstance(word, Finished | Failed | Died):
                self.child.heard(order.order)
                return word
            assert isinstance(word, Ready | Prepared | Begun | Stepped)
            self.words.append(word)

    def finished(self, order: Train, update: str = "update", **job: Any) -> Finished:
        found = self.train(order, update, **job)
        assert isinstance(found, Finished), found
        return found


@pytest.fixture(scope="module")
def trainee(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Trainee]:
    made = Trainee(tmp_path_factory.mktemp("trainee"))
    yield made
    made.child.close()


def test_an_order_gives_new_weights_of_the_models_names_shapes_and_dtypes(trainee: Trainee) -> None:
    began = time.monotonic()
    finished = trainee.finished(trainee.order(1))
    # A new child: torch is imported within the order, and its first two steps are not steady.
    assert [type(word) for word in trainee.words[:3]] == [Ready, Prepared, Begun]
    assert (finished.samples, finished.steps) == (40, 5)
    assert finished.steady_samples == 24
    begun = trainee.words[2]
    assert isinstance(begun, Begun)
    assert began < begun.at_seconds < finished.steady_at_seconds < finished.at_seconds < time.monotonic()
    assert finished.peak_memory_bytes > 1 << 20
    assert finished.loss_sum > 0
    assert 0 <= finished.metrics["correct"] <= 40
    weights.check(trainee.update(), weights.schema(trainee.model))
    assert trainee.update().read_bytes() != trainee.model.read_bytes()


def test_the_same_order_gives_the_same_bytes(trainee: Trainee) -> None:
    first = trainee.finished(trainee.order(2), "first")
    second = trainee.finished(trainee.order(2), "second")
    assert trainee.update("first").read_bytes() == trainee.update("second").read_bytes()
    assert first.loss_sum == second.loss_sum
    # The child is not new any more: all of the window is steady.
    assert first.steady_samples == 40
    trainee.finished(trainee.order(3), "other")
    assert trainee.update("other").read_bytes() != trainee.update("first").read_bytes()


def test_the_child_does_what_local_sgd_says(trainee: Trainee) -> None:
    """Two steps of plain SGD, worked out here from the same indices and batches."""
    import torch

    from edged.schedule import even_batches, indices

    order = trainee.order(1, pieces=(Piece(0, 100, 111),), samples=11, batch=6)
    finished = trainee.finished(order)
    assert finished.steps == 2
    task = tasks.find("digits")
    data = task.load(tasks.BUILTIN, tasks.options_of(task, {}))
    model = task.model(tasks.options_of(task, {}), 1)
    model.load_state_dict(weights.load_torch(trainee.model))
    chosen, done, total = indices(order.pieces, order.seed, order.pool_samples), 0, 0.0
    assert even_batches(11, 6) == [6, 5]
    for size in (6, 5):
        loss, _ = task.loss_sum(model, task.batch(data, chosen[done : done + size]))
        model.zero_grad()
        (loss / size).backward()  # type: ignore[no-untyped-call]
        with torch.no_grad():
            for parameter in model.parameters():
                if parameter.grad is not None:
                    parameter.add_(parameter.grad, alpha=-order.learning_rate)
        done, total = done + size, total + float(loss.detach())
    assert finished.loss_sum == pytest.approx(total, rel=1e-5)
    update = weights.load_torch(trainee.update())
    for name, tensor in model.state_dict().items():
        torch.testing.assert_close(update[name], tensor, rtol=1e-4, atol=1e-6)


def test_momentum_is_kept_between_orders_only_when_asked(trainee: Trainee) -> None:
    def twice(state: str, name: str) -> bytes:
        changes = {"momentum": 0.9, "optimizer_state": state, "run": state, "order": f"{state}.1.pi4.1"}
        trainee.finished(trainee.order(1, **changes), name)
        trainee.finished(trainee.order(1, **changes), name)
        return trainee.update(name).read_bytes()

    once = trainee.finished(trainee.order(1, momentum=0.9), "once")
    assert once.steps == 5
    assert twice("reset", "reset") == trainee.update("once").read_bytes()
    assert twice("keep", "keep") != trainee.update("once").read_bytes()


@pytest.mark.parametrize("optimizer", ["adam", "adamw"])
def test_every_optimizer_trains(trainee: Trainee, optimizer: str) -> None:
    order = trainee.order(1, optimizer=optimizer, learning_rate=0.001, weight_decay=0.01)
    assert trainee.finished(order).steps == 5


def test_an_emulated_board_takes_its_time_inside_the_compute_window(trainee: Trainee) -> None:
    finished = trainee.finished(trainee.order(1), emulate=True, seconds_per_sample=0.02)
    begun = next(word for word in trainee.words if isinstance(word, Begun))
    assert finished.at_seconds - begun.at_seconds >= 40 * 0.02 - 1e-6
    assert any(isinstance(word, Stepped) for word in trainee.words)


def test_a_pace_is_measured_once_and_told(trainee: Trainee) -> None:
    paces = []
    for _ in range(2):
        trainee.finished(trainee.order(1), emulate=True)
        paces += [word.seconds_per_sample for word in trainee.words if isinstance(word, Prepared)]
    assert paces[0] is not None
    assert paces[0] == paces[1]


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"learning_rate": -1.0}, "learning rate"),
        ({"learning_rate": 1e30}, "the loss is"),
        ({"pool_samples": 1436}, "pool 'digits' has 1437 samples here, not 1436"),
        ({"pieces": (Piece(0, 1430, 1470),), "pool_samples": 1437}, "is outside a pool of 1437"),
        ({"batches": (8, 8)}, "batches hold 16 samples, its pieces 40"),
        ({"options": {"colour": 3}}, "colour"),
    ],
)
def test_what_cannot_be_trained_fails_by_name_and_the_child_goes_on(
    trainee: Trainee, changes: dict[str, Any], words: str
) -> None:
    failed = trainee.train(trainee.order(1, **changes))
    assert isinstance(failed, Failed)
    assert words in failed.reason
    assert "\n" not in failed.reason
    trainee.finished(trainee.order(1))
    assert trainee.child.starts == 1


def test_a_model_of_another_shape_fails_by_name(trainee: Trainee) -> None:
    import torch

    good = trainee.model
    trainee.model = trainee.folder / "odd.safetensors"
    weights.save(trainee.model, {"odd": torch.zeros(3)})
    failed = trainee.train(trainee.order(1))
    trainee.model = good
    assert isinstance(failed, Failed)
    assert "odd" in failed.reason


@pytest.mark.parametrize(
    ("at", "what", "words"),
    [
        (1, "raise ValueError('no such\\ndigit')", "ValueError: no such digit"),
        (3, "return digits.loss_sum(net, cut)[0] * float('nan'), {}", "the loss is nan at step 3 of 5"),
        (4, "return digits.loss_sum(net, cut)[0], {'area': float('inf')}", "the task's figure 'area' is inf"),
        (2, "return digits.loss_sum(net, cut)[0], {'area': 'large'}", "TypeError"),
        (2, "raise MemoryError", "out of memory"),
        (2, "import sys; sys.exit(3)", "SystemExit"),
    ],
)
def test_a_users_task_may_print_and_fail(trainee: Trainee, at: int, what: str, words: str) -> None:
    (trainee.folder / "mine.py").write_text(USER_TASK.format(at=at, what=what) + f"# {at} {what!r}\n")
    task_hash = tasks.task_hash("mine", [trainee.folder])
    failed = trainee.train(trainee.order(1, task="mine", task_hash=task_hash))
    assert isinstance(failed, Failed), failed
    assert words in failed.reason


def test_a_cancelled_order_stops_at_the_next_step(trainee: Trainee) -> None:
    order = trainee.order(5)
    job = Job("pi4", order, str(trainee.model), str(trainee.update("gone")), "builtin", (), 1, True, 0.05)
    trainee.child.train(job)
    while not isinstance(getattr(trainee.queue.get(timeout=60), "word", None), Begun):
        pass
    began = time.monotonic()
    trainee.child.cancel(order.order)
    while not isinstance(word := getattr(trainee.queue.get(timeout=60), "word", None), Failed):
        pass
    assert (word.order, word.reason) == (order.order, "cancelled")
    assert time.monotonic() - began < 40 * 0.05
    trainee.child.heard(order.order)
    assert not trainee.update("gone").exists()
    trainee.finished(trainee.order(1))
    assert trainee.child.starts == 1


def test_the_child_dies_with_the_agent_and_goes_first_when_memory_is_short(trainee: Trainee) -> None:
    trainee.finished(trainee.order(1))
    assert Path(f"/proc/{trainee.child.pid}/oom_score_adj").read_text().strip() == "800"


def test_the_child_ends_when_the_agent_is_killed(tmp_path: Path) -> None:
    """A parent process that starts the child's module and is killed by SIGKILL."""
    script = (
        "import subprocess, sys, os, time\n"
        "child = subprocess.Popen([sys.executable, '-m', 'edged.trainer', str(os.getpid())],"
        " stdin=subprocess.PIPE, stdout=subprocess.PIPE)\n"
        f"open({str(tmp_path / 'pid')!r}, 'w').write(str(child.pid))\n"
        "time.sleep(600)\n"
    )
    parent = os.spawnv(os.P_NOWAIT, sys.executable, [sys.executable, "-c", script])
    path = tmp_path / "pid"
    while not path.exists() or not path.read_text():
        time.sleep(0.01)
    child = int(path.read_text())
    os.kill(parent, signal.SIGKILL)
    os.waitpid(parent, 0)
    command = Path(f"/proc/{child}/cmdline")
    end = time.monotonic() + 30
    while command.exists() and b"trainer" in command.read_bytes():
        assert time.monotonic() < end, "the child outlives the agent"
        time.sleep(0.02)
