"""The folder for models in transfer: whose, where, and what a second process gets."""

import os
import subprocess
from pathlib import Path

import pytest

from edged.runtime import Runtime

NOWHERE = Path("/nonexistent")


def test_the_asked_folder_is_made_and_kept(tmp_path: Path) -> None:
    runtime = Runtime(str(tmp_path / "a" / "b"), "main-pi4", {}, NOWHERE)
    assert runtime.folder == tmp_path / "a" / "b" / "main-pi4"
    assert runtime.reason == ""
    runtime.close()
    assert runtime.folder.is_dir()


def test_the_services_folder_comes_before_run_edged_and_that_before_a_temporary_one(tmp_path: Path) -> None:
    service, run = tmp_path / "service", tmp_path / "run"
    service.mkdir()
    run.mkdir()
    for environment, place, folder in (
        ({"RUNTIME_DIRECTORY": f"{service}:/other"}, run, service),
        ({}, run, run),
    ):
        runtime = Runtime("", "main-pi4", environment, place)
        assert runtime.folder.parent == folder
        runtime.close()
    runtime = Runtime("", "main-pi4", {}, NOWHERE)
    assert "cannot be written" in runtime.reason
    assert runtime.folder.is_dir()
    runtime.close()
    assert not runtime.folder.parent.exists()


def test_a_second_process_of_one_board_does_not_touch_the_firsts_files(tmp_path: Path) -> None:
    first = Runtime(str(tmp_path), "main-pi4", {}, NOWHERE)
    second = Runtime(str(tmp_path), "main-pi4", {}, NOWHERE)
    other = Runtime(str(tmp_path), "main-pi5", {}, NOWHERE)
    assert "another process uses" in second.reason
    assert second.folder != first.folder
    assert other.folder == tmp_path / "main-pi5"
    second.close()
    first.close()
    again = Runtime(str(tmp_path), "main-pi4", {}, NOWHERE)
    assert again.folder == first.folder
    for runtime in (again, other):
        runtime.close()


def test_a_folder_that_cannot_be_is_an_error_that_names_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(OSError, match="file"):
        Runtime(str(tmp_path / "file" / "x"), "main-pi4", {}, NOWHERE)


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting needs root")
def test_a_disk_that_became_read_only_costs_the_folder_not_the_service(tmp_path: Path) -> None:
    """As a card does that breaks: what was asked for cannot be had, and models are kept in memory."""
    place = tmp_path / "card"
    place.mkdir()
    for command in ("mount -t tmpfs tmpfs {}", "mkdir {}/main-pi4", "mount -o remount,ro {}"):
        subprocess.run(command.format(place).split(), check=True)
    try:
        runtime = Runtime(str(place), "main-pi4", {}, NOWHERE)
        assert runtime.reason == f"{place}: Read-only file system"
        (runtime.folder / "file").write_text("")
        runtime.close()
    finally:
        subprocess.run(["umount", str(place)], check=True)


def test_the_folder_is_the_boards_alone(tmp_path: Path) -> None:
    runtime = Runtime(str(tmp_path), "main-pi4", {}, NOWHERE)
    assert runtime.folder.stat().st_mode & 0o077 == 0
    runtime.close()
