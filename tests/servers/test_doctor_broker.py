"""What `edged doctor` says of a real mosquitto: a wrong password, a list that withholds, a small limit."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from coordinator.broker import Broker
from coordinator.provisioning import board_rules
from edged.checks import Finding
from edged.checks.broker import examine
from edged.link import LinkConfig
from edged.paho_link import PahoLink

pytestmark = pytest.mark.server

StartBroker = Callable[..., Broker]
ALL = "topic readwrite edged/v1/main/#"
DEAF = f"user pi4\n{ALL}\ntopic deny edged/v1/main/board/pi4/echo"


def password(folder: Path, word: str) -> str:
    path = folder / f"password-{len(word)}"
    path.write_text(word)
    path.chmod(0o600)
    return str(path)


def look(broker: Broker, **settings: object) -> dict[str, Finding]:
    config = LinkConfig(broker.host, broker.port, "x", echo_seconds=1.0)
    config = replace(config, **settings)  # type: ignore[arg-type]
    return {one.what: one for one in examine("pi4", "main", config, PahoLink, "attic")}


def locked(folder: Path, access: str) -> str:
    """Lines of configuration: user pi4 with the password right, and this access list."""
    users, list_file = folder / "users", folder / "acl"
    users.touch(mode=0o600)
    subprocess.run(["mosquitto_passwd", "-b", str(users), "pi4", "right"], check=True, capture_output=True)
    list_file.write_text(access + "\n")
    list_file.chmod(0o600)
    return f"allow_anonymous false\npassword_file {users}\nacl_file {list_file}"


def test_each_refusal_is_named(start_mosquitto: StartBroker, tmp_path: Path) -> None:
    broker = start_mosquitto(locked(tmp_path, f"user pi4\n{ALL}"))
    right, wrong = password(tmp_path, "right"), password(tmp_path, "wrong!")
    assert {one.verdict for one in look(broker, username="pi4", password_file=right).values()} == {"ok"}
    refused = look(broker, username="pi4", password_file=wrong)["broker"]
    assert (refused.verdict, " CONNACK" in refused.text) == ("fail", True)
    assert "password_file" in refused.way_out


def test_a_broker_that_delivers_nothing_is_found_out(start_mosquitto: StartBroker, tmp_path: Path) -> None:
    broker = start_mosquitto(locked(tmp_path, DEAF))
    found = look(broker, username="pi4", password_file=password(tmp_path, "right"))["access list"]
    assert found.verdict == "fail"
    assert "check the ACL for edged/v1/main/board/pi4/echo" in found.text
    assert "access list" in found.way_out


def test_a_provisioned_board_is_in_good_health(start_mosquitto: StartBroker, tmp_path: Path) -> None:
    rules = "\n".join(["user pi4", *board_rules("main", "pi4")])
    broker = start_mosquitto(locked(tmp_path, rules))
    found = look(broker, username="pi4", password_file=password(tmp_path, "right"))
    assert {one.verdict for one in found.values()} == {"ok"}


def test_a_limit_below_what_a_board_sends_fails(start_mosquitto: StartBroker) -> None:
    found = look(start_mosquitto("max_packet_size 8000"))
    assert (found["broker"].verdict, found["packets"].verdict) == ("ok", "fail")
