"""Official formats by folder: `tests/data/pools/TASK/CASE` holds files, and case.json what becomes of them.

A new case needs no new code.
"""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from edged import tasks
from edged.formats import prepared
from edged.tasks import PoolError, TaskError

CASES = Path(__file__).resolve().parents[2] / "data" / "pools"
NAMES = sorted(path.parent.relative_to(CASES).as_posix() for path in CASES.rglob("case.json"))


@pytest.mark.parametrize("name", NAMES)
def test_case(name: str, tmp_path: Path) -> None:
    case = json.loads((CASES / name / "case.json").read_text())
    if "needs" in case:
        pytest.importorskip(case["needs"], reason="this format needs the extra edged[data]")
    task: Any = tasks.find(name.split("/", maxsplit=1)[0])
    if "error" in case:
        with pytest.raises((PoolError, TaskError)) as caught:
            _prepare(task, CASES / name / case["source"], case["set"], tmp_path / "pool")
        assert case["error"] in str(caught.value)
        assert "\n" not in str(caught.value)
        assert list(tmp_path.iterdir()) == [], "nothing half-written is left"
        return
    made = _prepare(task, CASES / name / case["source"], case["set"], tmp_path / "pool")
    info = task.inspect(tmp_path / "pool")
    assert {key: getattr(info, key) for key in case.keys() - {"source", "set"}} == {
        key: case[key] for key in case.keys() - {"source", "set"}
    }
    assert prepared.verify(tmp_path / "pool") == made
    arrays = prepared.load(tmp_path / "pool", task.NAME)
    assert all(np.isfinite(value).all() for value in (arrays.inputs, arrays.targets, arrays.test_targets))


def _prepare(task: Any, source: Path, settings: dict[str, str], pool: Path) -> prepared.Manifest:
    options = tasks.options_of(task, settings, strict=False, kind=task.Prepare)
    return prepared.write(pool, task.NAME, task.prepare(source, options, lambda what, done, total: None))
