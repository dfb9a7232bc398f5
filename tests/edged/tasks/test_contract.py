"""What every shipped task must do, found by listing the folder: a new task needs no new test here."""

import ast
import math
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import msgspec
import numpy as np
import pytest
import torch

from edged import tasks
from edged.tasks import BUILTIN, OtherPoolError, PoolError

SHIPPED = [name for name, origin in tasks.names(folders=()).items() if origin == "shipped"]
PoolOf = Callable[[str], Path]

pytestmark = pytest.mark.parametrize("name", SHIPPED)


def test_it_says_what_it_is(name: str) -> None:
    task = tasks.find(name)
    assert name == task.NAME
    assert 10 < len(task.SUMMARY) < 100
    assert task.Options() == msgspec.convert({}, task.Options), "every option has a default"
    assert task.DEFAULTS.batch >= 1
    assert 0 < task.DEFAULTS.learning_rate < 1


def test_its_hash_covers_the_helpers_it_imports(name: str) -> None:
    """A helper outside the hash could differ between boards without anybody noticing.

    What `prepare` imports runs on a PC and shows in the pool's fingerprint instead.
    """
    source = tasks.source_of(name)
    tree = ast.parse(source.read_text())
    helpers = {(source.parent / helper).resolve() for helper in getattr(tasks.find(name), "HELPERS", ())}
    root = source.parents[2]
    used = set()
    tree.body = [
        node for node in tree.body if not (isinstance(node, ast.FunctionDef) and node.name == "prepare")
    ]
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module and node.module.startswith("edged"):
            package = root.joinpath(*node.module.split("."))
            if package.with_suffix(".py").is_file():
                used.add(package.with_suffix(".py"))
            used |= {
                package / f"{alias.name}.py"
                for alias in node.names
                if (package / f"{alias.name}.py").is_file()
            }
    assert used <= helpers
    assert all(helper.is_file() for helper in helpers)


def test_a_board_without_torch_can_list_and_inspect(name: str, pool_of: PoolOf) -> None:
    pool = pool_of(name)
    code = f"""
import sys
from pathlib import Path
sys.modules["torch"] = sys.modules["numpy"] = None  # importing either is an ImportError
from edged import tasks
print(tasks.find({name!r}).inspect(Path({str(pool)!r})).samples, tasks.task_hash({name!r}))
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[1] == tasks.task_hash(name)


def test_inspect_tells_what_load_gives(name: str, pool_of: PoolOf) -> None:
    task, pool = tasks.find(name), pool_of(name)
    info, data = task.inspect(pool), task.load(pool, task.Options())
    assert info.samples == data.samples == len(data.targets)
    assert info.test_samples == len(data.test_inputs) == len(data.test_targets) > 0
    assert len(info.fingerprint) == 64
    assert info == task.inspect(pool)


def test_equal_seeds_give_equal_weights_and_leave_the_generator_alone(name: str) -> None:
    task = tasks.find(name)
    torch.manual_seed(5)
    before = torch.get_rng_state()
    one, two, other = (task.model(task.Options(), seed).state_dict() for seed in (1, 1, 2))
    assert torch.equal(before, torch.get_rng_state())
    assert all(torch.equal(one[key], two[key]) for key in one)
    assert any(not torch.equal(one[key], other[key]) for key in one)


def test_it_has_no_batch_norm(name: str) -> None:
    task = tasks.find(name)
    assert not [m for m in task.model(task.Options(), 0).modules() if "BatchNorm" in type(m).__name__]


def test_steps_lower_the_loss_with_finite_gradients(name: str, pool_of: PoolOf) -> None:
    task = tasks.find(name)
    # Without dropout, whose noise would hide what a few small steps gain.
    data, model = task.load(pool_of(name), task.Options()), task.model(task.Options(), 0).eval()
    optimizer = torch.optim.SGD(model.parameters(), lr=0.01)
    batch = task.batch(data, np.arange(4))
    losses = []
    for _ in range(3):
        optimizer.zero_grad()
        loss, sums = task.loss_sum(model, batch)
        torch.autograd.backward(loss / len(batch[0]))
        assert all(p.grad is not None and torch.isfinite(p.grad).all() for p in model.parameters())
        assert all(math.isfinite(value) for value in sums.values())
        optimizer.step()
        losses.append(loss.item())
    assert losses[-1] < losses[0]


def test_empty_and_single_batches_train(name: str, pool_of: PoolOf) -> None:
    """A weak board in a synchronous step may have one sample, or none."""
    task = tasks.find(name)
    data, model = task.load(pool_of(name), task.Options()), task.model(task.Options(), 0)
    for count in (0, 1):
        loss, _ = task.loss_sum(model, task.batch(data, np.arange(count)))
        torch.autograd.backward(loss)
        assert math.isfinite(loss.item())
        assert (loss.item() == 0) == (count == 0)


def test_the_loss_is_a_sum_over_samples(name: str, pool_of: PoolOf) -> None:
    """Exact sample means over boards need sums (ALGORITHMS 5.3)."""
    task = tasks.find(name)
    data, model = task.load(pool_of(name), task.Options()), task.model(task.Options(), 0).eval()
    with torch.no_grad():
        parts = [task.loss_sum(model, task.batch(data, np.arange(*ends))) for ends in ((0, 3), (3, 10))]
        whole = task.loss_sum(model, task.batch(data, np.arange(10)))
    assert sum(loss.item() for loss, _ in parts) == pytest.approx(whole[0].item(), rel=1e-4)
    for key, value in whole[1].items():
        assert sum(sums[key] for _, sums in parts) == pytest.approx(value, rel=1e-4)


def test_evaluation_is_repeatable_and_leaves_the_mode_alone(name: str, pool_of: PoolOf) -> None:
    task = tasks.find(name)
    data, model = task.load(pool_of(name), task.Options()), task.model(task.Options(), 0)
    model.train()
    full, again = task.evaluate(model, data), task.evaluate(model, data)
    assert full == again
    assert model.training
    assert full["samples"] == len(data.test_inputs)
    assert all(math.isfinite(value) for value in full.values())
    assert 0 <= full.get("accuracy", 0) <= 1
    assert task.evaluate(model, data, 3)["samples"] == 3


def test_it_refuses_what_is_not_its_data(name: str, tmp_path: Path) -> None:
    task = tasks.find(name)
    (tmp_path / "empty").mkdir()
    with pytest.raises(OtherPoolError):
        task.inspect(tmp_path / "empty")
    with pytest.raises(PoolError):
        task.inspect(tmp_path / "nowhere")
    if name != "digits":
        with pytest.raises(OtherPoolError):
            task.inspect(BUILTIN)
