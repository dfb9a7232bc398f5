"""The example of docs/add-a-task.md, taken out of the page and used as its reader would."""

import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch

from edged import pools, schedule, tasks
from edged.tasks import PoolError

PAGE = Path(__file__).resolve().parents[3] / "docs" / "add-a-task.md"


@pytest.fixture
def example(tmp_path: Path) -> Path:
    (source,) = re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL)
    path = tmp_path / "tasks" / "machines.py"
    path.parent.mkdir()
    path.write_text(source)
    return path


@pytest.fixture
def pool(tmp_path: Path) -> Path:
    readings = (np.arange(8000, dtype=np.uint32) * np.uint32(2654435761) >> 16).reshape(1000, 8) / 65536
    faulty = readings[:, 0] + readings[:, 3] > 1
    lines = [
        ",".join([*(f"{value:.4f}" for value in row), str(int(bad))])
        for row, bad in zip(readings, faulty, strict=True)
    ]
    (tmp_path / "pool").mkdir()
    (tmp_path / "pool" / "readings.csv").write_text("\n".join(lines) + "\n")
    return tmp_path / "pool"


def test_it_learns(example: Path, pool: Path) -> None:
    task = tasks.find(example)
    data, model = task.load(pool, task.Options()), task.model(task.Options(), 1)
    optimizer = torch.optim.SGD(model.parameters(), task.DEFAULTS.learning_rate, task.DEFAULTS.momentum)
    for epoch in range(3):
        order, at = schedule.permutation(1, epoch, data.samples), 0
        for count in schedule.even_batches(data.samples, task.DEFAULTS.batch):
            optimizer.zero_grad()
            loss, _ = task.loss_sum(model, task.batch(data, order[at : at + count]))
            torch.autograd.backward(loss / count)
            optimizer.step()
            at += count
    figures = task.evaluate(model, data)
    assert figures["accuracy"] > 0.9
    assert figures["samples"] == 200


def test_a_board_finds_it_in_its_folder_with_its_pool(example: Path, pool: Path) -> None:
    listing = pools.inventory({"machines": str(pool)}, [example.parent])
    assert listing.pools["machines"].tasks == ("machines",)
    assert listing.tasks["machines"] == tasks.task_hash(example)


def test_it_lists_without_torch(example: Path, pool: Path) -> None:
    code = (
        "import sys; sys.modules['torch'] = sys.modules['numpy'] = None; from pathlib import Path;"
        f"from edged import tasks; print(tasks.find({str(example)!r}).inspect(Path({str(pool)!r})).samples)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.stdout.strip() == "800", done.stderr


def test_it_names_a_bad_line(example: Path, pool: Path) -> None:
    with (pool / "readings.csv").open("a") as file:
        file.write("1,2,3\n")
    with pytest.raises(PoolError, match=r"readings.csv: line 1001 has 3 values, expected 9"):
        tasks.find(example).inspect(pool)


def test_it_handles_empty_and_single_batches(example: Path, pool: Path) -> None:
    task = tasks.find(example)
    data, model = task.load(pool, task.Options()), task.model(task.Options(), 1)
    assert task.loss_sum(model, task.batch(data, np.arange(0)))[0].item() == 0
    assert task.loss_sum(model, task.batch(data, np.arange(1)))[0].item() > 0
