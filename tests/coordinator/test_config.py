"""The configuration names what is wrong by its dotted path, and its sample is the defaults."""

from pathlib import Path

import pytest

from coordinator.config import SAMPLE, Config, ConfigError, load, parse


def test_the_sample_is_the_defaults() -> None:
    assert parse(SAMPLE.encode(), "sample") == Config()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[broker]\nport = 'x'", "broker.port: Expected `int`"),
        ("[broker]\nport = 0", "broker.port: "),
        ("[broker]\nhots = 'a'", "broker.hots: no such key"),
        ("fleets = 'a'", "fleets: no such key"),
        ("fleet = 'A b'", "fleet: "),
        ("[data.mnist]\nfolder = '/x'", "no such key"),
        ("[data.mnist]", "data"),
        ("[updates]\nnorm_bound = 0.0", "updates.norm_bound: "),
        ("[store]\nkeep_checkpoints = -1", "store.keep_checkpoints: "),
        ("fleet = ", "not TOML"),
        ("fleet = 'a'\nfleet = 'b'", "not TOML"),
    ],
)
def test_a_fault_is_named(text: str, words: str) -> None:
    with pytest.raises(ConfigError) as caught:
        parse(text.encode(), "/etc/x.toml")
    assert str(caught.value).startswith("/etc/x.toml: ")
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_bytes_that_are_no_text_are_refused() -> None:
    with pytest.raises(ConfigError, match="not TOML"):
        parse(b"\xff\xfe", "x")


def test_a_file_that_was_asked_for_must_be_there(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="cannot be read"):
        load(tmp_path / "none.toml")


def test_the_store_is_where_it_was_said_first() -> None:
    assert parse(b"[store]\nfolder = '/a'", "x").store_folder({"STATE_DIRECTORY": "/b"}) == Path("/a")
    assert Config().store_folder({"STATE_DIRECTORY": "/b:/c"}) == Path("/b")
    assert Config().store_folder({"XDG_STATE_HOME": "/d"}) == Path("/d/edged-coordinator")


def test_the_services_credential_stands_in_for_a_password_file(tmp_path: Path) -> None:
    environment = {"CREDENTIALS_DIRECTORY": str(tmp_path)}
    assert Config().broker.link("c", environment).password_file is None
    (tmp_path / "mqtt-password").write_text("secret")
    assert Config().broker.link("c", environment).password_file == str(tmp_path / "mqtt-password")
    own = parse(b"[broker]\npassword_file = '/p'", "x").broker
    assert own.link("c", environment).password_file == "/p"


def test_a_ca_file_turns_encryption_on() -> None:
    assert parse(b"[broker]\nca_file = 'ca.crt'", "x").broker.link("c").tls
    assert not Config().broker.link("c").tls
