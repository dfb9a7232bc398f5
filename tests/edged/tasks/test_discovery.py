"""Finding tasks: shipped, a user's file, and everything that can be wrong with one."""

import sys
from pathlib import Path

import pytest

from edged import tasks
from edged.tasks import TaskError

GOOD = """
import msgspec
from edged.tasks import Defaults
NAME = "mine"
SUMMARY = "a task of somebody's own"
DEFAULTS = Defaults(batch=4, learning_rate=0.1)
class Options(msgspec.Struct, frozen=True):
    width: int = 8
    rate: float = 0.5
def model(options, seed): ...
def inspect(folder): ...
def load(folder, options): ...
def batch(data, indices): ...
def loss_sum(model, batch): ...
def evaluate(model, data, max_samples=None): ...
"""


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "mine.py"
    path.write_text(GOOD)
    return path


def test_shipped_tasks_are_listed_without_helpers() -> None:
    listed = tasks.names(folders=())
    assert listed["digits"] == listed["mnist"] == "shipped"
    assert not [name for name in listed if name.startswith("_")]


def test_a_users_file_is_found_by_path_and_by_name_in_its_folder(mine: Path) -> None:
    assert tasks.find(str(mine)).NAME == tasks.find(mine).NAME == "mine"
    assert tasks.names([mine.parent])["mine"] == str(mine)
    assert tasks.find("mine", [mine.parent]).DEFAULTS.batch == 4
    assert tasks.task_hash(mine) == tasks.task_hash("mine", [mine.parent])


def test_a_users_file_cannot_take_the_name_of_a_shipped_one(mine: Path) -> None:
    shipped = tasks.find("digits")
    other = mine.with_name("digits.py")
    other.write_text(GOOD.replace('"mine"', '"digits"'))
    assert tasks.names([mine.parent])["digits"] == "shipped"
    assert tasks.find("digits", [mine.parent]) is shipped
    assert tasks.find(str(other)) is not shipped
    assert tasks.task_hash(other) != tasks.task_hash("digits")


def test_a_change_of_source_or_helper_changes_the_hash(mine: Path) -> None:
    first = tasks.task_hash(mine)
    mine.write_text(GOOD + 'HELPERS = ("helper.py",)\n')
    mine.with_name("helper.py").write_text("A = 1\n")
    second = tasks.task_hash(mine)
    mine.with_name("helper.py").write_text("A = 2\n")
    assert len({first, second, tasks.task_hash(mine)}) == 3
    assert "helper" not in sys.modules


def test_hashing_runs_nothing(mine: Path) -> None:
    mine.write_text("raise SystemExit('ran')\n")
    assert len(tasks.task_hash(mine)) == 64


FAULTS = {
    "no such thing": (GOOD.replace("def batch", "def bach"), "has no batch"),
    "a number": (GOOD.replace("def batch(data, indices): ...", "batch = 3"), "batch is int"),
    "no defaults": (GOOD.replace("DEFAULTS = Defaults(", "DEFAULTS = dict("), "DEFAULTS is dict"),
    "another name": (
        GOOD.replace('"mine"', '"theirs"'),
        "NAME is 'theirs', it must be the file's name, 'mine'",
    ),
    "plain options": (
        GOOD.replace("Options(msgspec.Struct, frozen=True)", "Options"),
        "not a msgspec.Struct",
    ),
    "syntax": ("def (", "SyntaxError"),
    "leaves": ("raise SystemExit(3)", "SystemExit: 3"),
    "raises": ("1 / 0", "ZeroDivisionError: division by zero"),
    "missing library": ("import no_such_library_at_all", "No module named 'no_such_library_at_all'"),
}


@pytest.mark.parametrize("case", FAULTS)
def test_a_faulty_file_is_named_with_its_fault(case: str, mine: Path) -> None:
    source, message = FAULTS[case]
    mine.write_text(source)
    with pytest.raises(TaskError, match=message) as caught:
        tasks.find(mine)
    assert str(mine) in str(caught.value)


def test_an_unknown_name_tells_what_there_is(tmp_path: Path) -> None:
    with pytest.raises(TaskError, match=r"no task 'nmist'; there are .*digits.*mnist"):
        tasks.find("nmist")
    with pytest.raises(TaskError, match="no such file"):
        tasks.find(str(tmp_path / "none.py"))
    with pytest.raises(TaskError, match=r"not a \.py file"):
        tasks.find(tmp_path)
    with pytest.raises(TaskError, match="no task 'nmist'"):
        tasks.task_hash("nmist")


def test_a_missing_helper_is_named(mine: Path) -> None:
    mine.write_text(GOOD + 'HELPERS = ("gone.py",)\n')
    with pytest.raises(TaskError, match=r"cannot read .*gone\.py"):
        tasks.task_hash(mine)
    mine.write_text(GOOD + "HELPERS = find_helpers()\n")
    with pytest.raises(TaskError, match="HELPERS"):
        tasks.task_hash(mine)


def test_options_are_typed(mine: Path) -> None:
    task = tasks.find(mine)
    assert tasks.options_of(task, {"width": 9}).width == 9
    assert tasks.options_of(task, {"width": "9", "rate": "0.25"}, strict=False).rate == 0.25
    with pytest.raises(TaskError, match="no option widht; its options: width, rate"):
        tasks.options_of(task, {"widht": 9})
    with pytest.raises(TaskError, match=r"Expected `int`, got `str` - at `\$.width`"):
        tasks.options_of(task, {"width": "9"})
    with pytest.raises(TaskError, match="width is 7, expected a multiple of 4"):
        tasks.options_of(tasks.find("mnist"), {"width": 7})
