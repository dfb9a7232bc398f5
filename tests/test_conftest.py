"""The rule that CI tolerates no skip, tried on a small suite in a process of its own."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

PASSES = "def test_passes():\n    assert True\n"
SKIPS = "import pytest\ndef test_skips():\n    pytest.skip('no broker here')\n"
SLOW = "import pytest\npytestmark = pytest.mark.slow\ndef test_slow():\n    assert True\n"
SKIPS_WHOLE = "import pytest\npytest.skip('no torch here', allow_module_level=True)\n"
XFAILS = "import pytest\n@pytest.mark.xfail(reason='known')\ndef test_known():\n    assert False\n"


def run(folder: Path, suite: str, ci: str, *options: str) -> subprocess.CompletedProcess[str]:
    shutil.copy(Path(__file__).with_name("conftest.py"), folder / "conftest.py")
    (folder / "pytest.ini").write_text("[pytest]\nmarkers = slow: slow\n")
    (folder / "test_passes.py").write_text(PASSES)
    (folder / "test_suite.py").write_text(suite)
    command = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "xdist", *options, str(folder)]
    # Only the plugin that the rule has to do with: each process would load all others anew.
    environment = os.environ | {"CI": ci, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    return subprocess.run(command, env=environment, cwd=folder, capture_output=True, text=True, check=False)


@pytest.mark.parametrize("processes", ["0", "2"])
@pytest.mark.parametrize(
    ("suite", "reason"), [(SKIPS, "no broker here"), (SKIPS_WHOLE, "no torch here")], ids=["test", "file"]
)
def test_a_skip_fails_the_session_in_ci_and_says_why(
    tmp_path: Path, suite: str, reason: str, processes: str
) -> None:
    done = run(tmp_path, suite, "true", "-n", processes)
    assert done.returncode == 1, done.stdout
    assert "counts as failure" in done.stdout
    assert reason in done.stdout


def test_a_skip_is_fine_outside_ci(tmp_path: Path) -> None:
    assert run(tmp_path, SKIPS, ci="").returncode == 0


def test_an_expected_failure_is_no_skip(tmp_path: Path) -> None:
    assert run(tmp_path, XFAILS, ci="true").returncode == 0


def test_slow_files_are_begun_first(tmp_path: Path) -> None:
    done = run(tmp_path, SLOW, "true", "-v")
    assert done.stdout.index("test_slow") < done.stdout.index("test_passes"), done.stdout
