"""What a board tells that it can train: every task and pool answers, the bad ones with their reason."""

import json
import subprocess
import sys
from pathlib import Path

from edged import pools, tasks


def test_the_shipped_pool_needs_no_files() -> None:
    listing = pools.inventory({"digits": "builtin"}, folders=())
    pool = listing.pools["digits"]
    assert pool.tasks == ("digits",)
    assert pool.info is not None
    assert pool.info.samples == 1437
    assert listing.tasks["digits"] == tasks.task_hash("digits")
    assert listing.task_errors == {}


def test_a_bad_pool_carries_its_error_and_the_others_stay(tmp_path: Path) -> None:
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "notes").write_text("x")
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("x")
    (tmp_path / "half").mkdir()
    (tmp_path / "half" / "t10k-images-idx3-ubyte").write_bytes(b"")
    paths = {name: str(tmp_path / name) for name in ("strange", "empty", "file", "half", "gone")}
    found = pools.inventory({**paths, "digits": "builtin"}, folders=()).pools
    assert found["digits"].error == ""
    assert "no task knows this data" in found["strange"].error
    assert found["empty"].error == f"{tmp_path / 'empty'}: the folder is empty"
    assert "is a file" in found["file"].error
    assert "no such folder" in found["gone"].error
    assert "t10k-labels-idx1-ubyte[.gz] is missing" in found["half"].error


def test_a_users_faulty_task_hides_nothing(tmp_path: Path) -> None:
    (tmp_path / "broken.py").write_text("import no_such_library\n")
    listing = pools.inventory({"digits": "builtin"}, [tmp_path])
    assert "no_such_library" in listing.task_errors["broken"]
    assert "broken" not in listing.tasks
    assert listing.pools["digits"].tasks == ("digits",)


def test_the_child_prints_one_json_even_when_a_task_prints(tmp_path: Path) -> None:
    (tmp_path / "loud.py").write_text("print('hello')\n")
    request = json.dumps({"pools": {"d": "builtin"}, "folders": [str(tmp_path)]})
    done = subprocess.run(
        [sys.executable, "-m", "edged.pools", request], capture_output=True, text=True, check=True
    )
    listing = json.loads(done.stdout)
    assert listing["pools"]["d"]["tasks"] == ["digits"]
    assert "loud" in listing["task_errors"]
    assert done.stderr.strip() == "hello"


def test_a_request_that_is_none_is_refused_by_path() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "edged.pools"],
        input='{"pools": {"d": 3}}',
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 2
    assert "$.pools" in done.stderr
    assert done.stdout == ""


def test_the_child_imports_neither_torch_nor_numpy() -> None:
    code = (
        "import sys; from edged import pools; pools.inventory({'d': 'builtin'}, ());"
        "sys.exit(any(m in sys.modules for m in ('torch', 'numpy', 'paho')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
