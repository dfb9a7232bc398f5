"""Filling keys into a settings file: everything else in it stays."""

import pytest

from edged.config import SAMPLE, check, parse
from edged.install.settings import faults, filled


def test_the_sample_with_keys_filled_in_is_what_was_asked_for() -> None:
    text = filled(SAMPLE.read_text(), {"broker": {"host": 'a "b"', "port": 1}, "data.x": {"path": "/x"}})
    found = check(parse(text.encode(), "x"))
    assert (found.broker.host, found.broker.port, found.data["x"].path) == ('a "b"', 1, "/x")
    assert set(SAMPLE.read_text().splitlines()) - set(text.splitlines()) == {
        '#host = "localhost"',
        "#port = 1883",
    }


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ("[board]\nid = 'a'\n", '[board]\nid = "b"\n'),
        ("[board]\n#id = 'a'\n", '[board]\nid = "b"\n'),
        ("[board]\n# id\n", '[board]\nid = "b"\n# id\n'),
        ("[board] # mine\n[log]\n#id = 1\n", '[board] # mine\nid = "b"\n[log]\n#id = 1\n'),
        ("# nothing\n", '# nothing\n\n[board]\nid = "b"\n'),
        ("[board]\n#id = 'a'\nid = 'c'\n", "[board]\n#id = 'a'\nid = \"b\"\n"),
    ],
)
def test_a_key_goes_where_it_belongs(before: str, after: str) -> None:
    assert filled(before, {"board": {"id": "b"}}) == after


def test_faults_name_the_key() -> None:
    assert faults("[broker]\nprot = 1\n").startswith("broker.prot: unknown key")
    assert "not TOML" in faults("[broker\n")
    assert faults("") == ""
