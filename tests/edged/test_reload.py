"""What a reload takes over, what it leaves for a restart, and what it says of both."""

import logging
from collections.abc import Iterator
from pathlib import Path

import pytest

from edged.config import load
from edged.reload import Source, Start, again

BEFORE = """
[board]
id = "pi4"
[broker]
host = "old"
[data.mnist]
path = "/srv/mnist"
[energy.plug]
kind = "shelly"
"""


@pytest.fixture(autouse=True)
def level() -> Iterator[None]:
    """A reload sets the level of all logs."""
    kept = logging.getLogger().level
    yield
    logging.getLogger().setLevel(kept)


@pytest.fixture
def start(tmp_path: Path) -> Start:
    file = tmp_path / "edged.toml"
    file.write_text(BEFORE)
    flags = {"log": {"level": "info"}, "data": {}}
    return Start(load(file, flags), Source(str(file), flags))


def changed(start: Start, *pairs: tuple[str, str]) -> Start:
    """A reload after these replacements in the file."""
    file = Path(start.source.file)
    text = file.read_text()
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new)
    file.write_text(text)
    return again(start)


def test_pools_and_tasks_are_taken_over_and_named(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    now = changed(start, ("/srv/mnist", "/new"), ("[energy", '[data.more]\npath = "/more"\n[energy'))
    assert {name: pool.path for name, pool in now.settings.data.items()} == {"mnist": "/new", "more": "/more"}
    assert "read again: data.mnist.path, data.more" in caplog.text
    assert "restart" not in caplog.text


def test_what_takes_a_restart_stays_and_is_named_each_time(
    start: Start, caplog: pytest.LogCaptureFixture
) -> None:
    now = changed(start, ('"old"', '"new"'), ('"shelly"', '"tasmota"'))
    assert now.settings == start.settings
    assert "take a restart: broker.host, energy.plug.kind" in caplog.text
    caplog.clear()
    assert again(now) == now
    assert "broker.host" in caplog.text


def test_settings_that_cannot_be_used_change_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    now = changed(start, ("[broker]", "[broker]\nprot = 1"), ("/srv/mnist", "/new"))
    assert now is start
    assert "stay as they are" in caplog.text
    assert "broker.prot" in caplog.text


def test_flags_stay_above_the_file(start: Start) -> None:
    now = changed(start, ("[energy", '[log]\nlevel = "debug"\n[energy'))
    assert now.settings.log.level == "info"


def test_nothing_changed_says_nothing(start: Start, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.INFO)
    assert again(start) == start
    assert caplog.text == ""
