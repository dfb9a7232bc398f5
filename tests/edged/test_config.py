"""A board's settings: the sample, the flags, and every bad input by its dotted path."""

import re
from pathlib import Path

import msgspec
import pytest

from edged import config
from edged.config import ConfigError, Settings

NAME = "a name is 1 to 63 of a-z, 0-9, - and _, the first a letter or a digit"


def test_the_sample_with_nothing_commented_out_is_the_defaults() -> None:
    lines = config.SAMPLE.read_text().splitlines()
    keys = [line.lstrip("#") for line in lines if re.match(r"#?(\[|[a-z_]+ = )", line)]
    uncommented = "\n".join(keys)
    # Two tables of the sample are examples, not defaults.
    tables = msgspec.toml.decode(uncommented)
    assert tables.pop("data") == {"mnist": {"path": "/var/lib/edged/data/mnist"}}
    assert tables["energy"].pop("plug") == {"kind": "shelly", "url": "http://192.0.2.7"}
    assert config.check(tables) == Settings()


def test_the_sample_names_every_key_there_is() -> None:
    text = config.SAMPLE.read_text()
    for section in Settings.__struct_fields__:
        assert f"[{section}" in text
        table = getattr(Settings(), section)
        for key in getattr(table, "__struct_fields__", ()):
            assert key == "probes" or re.search(rf"^#{key} = ", text, re.MULTILINE), f"{section}.{key}"


def test_the_sample_as_it_is_can_be_used(tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_bytes(config.SAMPLE.read_bytes())
    settings = config.load(path, {"board": {"id": "pi4"}})
    assert settings == msgspec.structs.replace(Settings(), board=config.BoardTable(id="pi4"))


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("[broker]\nport = 'x'", "broker.port: Expected `int`, got `str`"),
        ("[broker]\nport = 0", "broker.port: Expected `int` >= 1"),
        ("[broker]\nprot = 1883", "broker.prot: unknown key"),
        ("[brokr]\nport = 1883", "brokr: unknown key"),
        ("port = 1883", "port: unknown key"),
        ("[board]\nid = 'Pi 4'", f"board.id: {NAME}"),
        ("[board]\nsilo = '-a'", f"board.silo: {NAME}"),
        ("[board]\nfleet = ''", f"board.fleet: {NAME}"),
        ("[data.mnist]\npath = 3", "data.mnist.path: Expected `str`, got `int`"),
        ("[data.mnist]", "data.mnist: Object missing required field `path`"),
        ("[data.mnist]\npath = 'x'\nsize = 3", "data.mnist.size: unknown key"),
        ("[data.'my pool']\npath = 'x'", f"toml: data: {NAME}"),
        ("[data]\n'a.b' = {path = 'x'}", f"toml: data: {NAME}"),
        ("data = 3", "data: Expected `object`, got `int`"),
        ("[training]\nthreads = -1", "training.threads: Expected `int` >= 0"),
        ("[energy]\nprefer = 'wall'", "energy.prefer: Expected `array`, got `str`"),
        ("[emulate]\nspeed_scale = -1.0", "emulate.speed_scale: Expected `float` >= 0.0"),
        ("[emulate]\nspeed_scale = inf", "emulate.speed_scale: inf is not a finite number"),
        ("[emulate]\nspeed_scale = nan", "emulate.speed_scale: "),
        ("[log]\nlevel = 'loud'", "log.level: Invalid enum value 'loud'"),
        ("board = 3", "board: Expected `object`, got `int`"),
        ("energy = 3", "energy: Expected `object`, got `int`"),
        ("[board", "not TOML"),
        ("\xff", "not TOML"),
    ],
)
def test_a_fault_is_named_with_the_file_and_its_dotted_path(text: str, words: str, tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_bytes(text.encode("latin-1"))
    with pytest.raises(ConfigError) as caught:
        config.load(path, {})
    assert str(path) in str(caught.value)
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"nowhere.toml: cannot be read: No such file"):
        config.load(tmp_path / "nowhere.toml", {})


def test_flags_override_the_file_key_by_key(tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_text("[board]\nid = 'pi4'\nfleet = 'attic'\n[data.mnist]\npath = '/a'")
    flags = {
        "board": {"id": "pi5"},
        "broker": config.broker_of("far:1"),
        "data": dict([config.pool_of("era=/b")]),
    }
    settings = config.load(path, flags)
    assert (settings.board.id, settings.board.fleet) == ("pi5", "attic")
    assert (settings.broker.host, settings.broker.port) == ("far", 1)
    assert {name: table.path for name, table in settings.data.items()} == {"mnist": "/a", "era": "/b"}


def test_a_bad_flag_is_named_like_a_bad_key(tmp_path: Path) -> None:
    path = tmp_path / "edged.toml"
    path.write_text("")
    with pytest.raises(ConfigError, match=r"^broker.port: Expected `int` <= 65535"):
        config.load(path, {"broker": config.broker_of("far:99999")})


@pytest.mark.parametrize(
    ("text", "host", "port"),
    [
        ("far", "far", None),
        ("far:1884", "far", 1884),
        ("192.0.2.1:1", "192.0.2.1", 1),
        ("[2001:db8::1]:1883", "2001:db8::1", 1883),
        ("2001:db8::1", "2001:db8::1", None),
    ],
)
def test_a_broker_is_a_host_and_perhaps_a_port(text: str, host: str, port: int | None) -> None:
    found = config.broker_of(text)
    assert (found["host"], found.get("port")) == (host, port)


@pytest.mark.parametrize("text", ["", ":1883", "far:", "far:x", "[::1", "a:b:c"])
def test_what_is_no_broker_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not HOST"):
        config.broker_of(text)


@pytest.mark.parametrize("text", ["mnist", "=x", "mnist="])
def test_what_is_no_pool_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match="is not NAME=PATH"):
        config.pool_of(text)


@pytest.mark.parametrize(
    ("host", "board"),
    [("pi4", "pi4"), ("Attic-Pi.local", "attic-pi"), ("x y", "x-y"), ("_a", "a"), ("a" * 80, "a" * 63)],
)
def test_a_board_without_an_id_takes_its_host_name(host: str, board: str) -> None:
    assert config.with_board_id(Settings(), host).board.id == board


def test_a_host_name_that_gives_no_id_is_said() -> None:
    with pytest.raises(ConfigError, match=r"board.id: the host name '---' gives none"):
        config.with_board_id(Settings(), "---")


def test_the_password_comes_from_a_file_or_the_services_credential(tmp_path: Path) -> None:
    assert config.password_file(Settings(), {}) is None
    assert config.password_file(Settings(), {"CREDENTIALS_DIRECTORY": str(tmp_path)}) is None
    (tmp_path / config.CREDENTIAL).write_text("secret")
    credential = config.password_file(Settings(), {"CREDENTIALS_DIRECTORY": str(tmp_path)})
    assert credential == str(tmp_path / config.CREDENTIAL)
    named = config.check({"broker": {"password_file": "/etc/edged/password"}})
    assert config.password_file(named, {"CREDENTIALS_DIRECTORY": str(tmp_path)}) == "/etc/edged/password"


def test_a_probes_own_table_is_passed_on_as_it_is() -> None:
    found = config.check({"energy": {"prefer": ["wall"], "plug": {"url": "http://192.0.2.7", "channel": 1}}})
    assert found.energy.prefer == ("wall",)
    assert found.energy.probes == {"plug": {"url": "http://192.0.2.7", "channel": 1}}
