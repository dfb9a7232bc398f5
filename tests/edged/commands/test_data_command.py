"""`edged data` and `edged tasks` as a person uses them."""

import json
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from edged import cli, tasks

SENTENCES = "".join(f"a fine film {n}\t1\na dull film {n}\t0\n" for n in range(20))


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "imdb_labelled.txt"
    path.write_text(SENTENCES)
    return path


def edged(*arguments: object) -> Result:
    return CliRunner().invoke(cli.build(), [str(argument) for argument in arguments])


def test_prepare_check_info(source: Path, tmp_path: Path) -> None:
    pool = tmp_path / "pool"
    made = edged("data", "prepare", "imdb", source, "-o", pool, "--set", "length=12", "--json")
    assert made.exit_code == 0, made.stderr
    described = json.loads(made.stdout)
    assert described["samples"] == 32
    assert described["facts"]["length"] == 12
    checked = edged("data", "check", pool)
    assert checked.exit_code == 0
    assert "good; imdb" in checked.stdout
    shown = json.loads(edged("data", "info", pool, "--json").stdout)
    assert shown["tasks"] == ["imdb"]
    assert shown["fingerprint"] == described["fingerprint"]
    assert shown["fingerprint"] in edged("data", "info", pool).stdout


def test_prepare_says_how_a_board_offers_the_pool(source: Path, tmp_path: Path) -> None:
    said = edged("data", "prepare", "imdb", source, "-o", tmp_path / "pool").stdout
    assert f'[data.imdb] path = "{tmp_path / "pool"}"' in said


def test_a_second_prepare_into_the_same_folder_is_refused_before_work(source: Path, tmp_path: Path) -> None:
    edged("data", "prepare", "imdb", source, "-o", tmp_path / "pool")
    again = edged("data", "prepare", "imdb", tmp_path / "none", "-o", tmp_path / "pool")
    assert again.exit_code == 1
    assert "exists already" in again.stderr


@pytest.mark.parametrize(
    ("arguments", "code", "message"),
    [
        (("nmist", "x"), 2, "no task 'nmist'; there are"),
        (("digits", "x"), 2, "task digits prepares nothing"),
        (("imdb", "no/such/file"), 1, "no/such/file: no such file or folder"),
        (("imdb", "x", "--set", "lenght=3"), 2, "no option lenght; its options: words, length, encoding"),
        (("imdb", "x", "--set", "length=long"), 2, "Expected `int`"),
        (("imdb", "x", "--set", "length"), 2, "--set length: expected NAME=VALUE"),
    ],
)
def test_bad_input_is_one_line_and_leaves_nothing(
    arguments: tuple[str, ...], code: int, message: str, tmp_path: Path
) -> None:
    done = edged("data", "prepare", *arguments, "-o", tmp_path / "pool")
    assert done.exit_code == code
    assert message in done.stderr
    assert done.stderr.count("\n") == 1
    assert done.stdout == ""
    assert list(tmp_path.iterdir()) == []


def test_check_finds_a_flipped_bit_and_a_strange_folder(source: Path, tmp_path: Path) -> None:
    edged("data", "prepare", "imdb", source, "-o", tmp_path / "pool")
    path = tmp_path / "pool" / "inputs.npy"
    content = bytearray(path.read_bytes())
    content[-1] ^= 1
    path.write_bytes(content)
    done = edged("data", "check", tmp_path / "pool")
    assert done.exit_code == 1
    assert "inputs.npy: its content is not what was prepared" in done.stderr
    (tmp_path / "strange").mkdir()
    (tmp_path / "strange" / "notes.txt").write_text("no data")
    for command in ("check", "info"):
        strange = edged("data", command, tmp_path / "strange")
        assert strange.exit_code == 1
        assert "no task knows this data" in strange.stderr


def test_the_shipped_pool_has_an_info() -> None:
    assert json.loads(edged("data", "info", "builtin", "--json").stdout)["samples"] == 1437
    assert "1437 to train" in edged("data", "info", "builtin").stdout


def test_fetch_says_what_it_cannot_fetch(tmp_path: Path) -> None:
    account = edged("data", "fetch", "era5", "-o", tmp_path)
    assert account.exit_code == 2
    assert "needs an account" in account.stderr
    unknown = edged("data", "fetch", "imagenet", "-o", tmp_path)
    assert unknown.exit_code == 2
    assert "there are some for mnist, imdb, cifar10" in unknown.stderr


def test_tasks_list_has_every_task_and_says_what_is_wrong_with_one(tmp_path: Path) -> None:
    (tmp_path / "faulty.py").write_text("import no_such_library\n")
    listed = edged("tasks", "list", "--folder", tmp_path)
    assert listed.exit_code == 0
    assert "mnist " in listed.stdout
    assert "cannot be used: task" in listed.stdout
    rows = json.loads(edged("tasks", "list", "--folder", tmp_path, "--json").stdout)
    assert rows["mnist"]["hash"] == tasks.task_hash("mnist")
    assert "no_such_library" in rows["faulty"]["error"]


def test_tasks_show_has_types_and_defaults(tmp_path: Path) -> None:
    shown = edged("tasks", "show", "mnist", "--folder", tmp_path).stdout
    assert "cnn | resnet18 | resnet50 | alexnet | vgg11, default 'cnn'" in shown
    assert "batch 32" in shown
    options = json.loads(edged("tasks", "show", "era5", "--json").stdout)
    assert {"name": "horizon_hours", "type": "int", "default": 6} in options["prepare"]
    missing = edged("tasks", "show", "nmist")
    assert missing.exit_code == 2
    assert "there are cifar10, digits" in missing.stderr


@pytest.mark.parametrize(
    "command", ["data prepare", "data check", "data info", "data fetch", "tasks list", "tasks show"]
)
def test_every_command_has_help_with_an_example(command: str) -> None:
    done = edged(*command.split(), "--help")
    assert done.exit_code == 0
    assert f"Example: edged {command}" in " ".join(done.stdout.split())
