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
        ("[data.mnist]\nfolder = '/x'\npath = '/x'", "data.mnist.folder: no such key"),
        ("[data.a]\npath = '/x'\n[data.mnist]\npath = 3", "data.mnist.path: Expected `str`"),
        ("[data.mnist]", "data.mnist: Object missing required field `path`"),
        ("[data.'M N']\npath = '/x'", "data.M N: Expected `str` matching"),
        ("[data]\nmnist = 3", "data.mnist: Expected `object`"),
        ("data = 3", "data: Expected `object`"),
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


@pytest.mark.parametrize("key", ["password_file", "ca_file", "certificate_file", "key_file"])
def test_a_named_file_that_is_not_there_is_a_fault_of_the_configuration(key: str, tmp_path: Path) -> None:
    broker = parse(f"[broker]\n{key} = '{tmp_path / 'none'}'".encode(), "x").broker
    with pytest.raises(ConfigError, match=f"broker.{key}: .*none: No such file"):
        broker.check()
    (tmp_path / "none").write_text("secret")
    broker.check()
