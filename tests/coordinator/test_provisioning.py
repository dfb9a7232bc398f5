"""Mosquitto's password and access files: whose lines are in them, and which topics a board gets."""

import base64
import hashlib
import textwrap
from pathlib import Path

import pytest

from coordinator import provisioning
from edged.topics import ROUTES, Topics

BOARD = provisioning.board_rules("main", "pi4")


def allowed(rules: list[str], access: str, topic: str) -> bool:
    """Whether a rule of that kind covers the topic."""
    filters = [rule.split()[2] for rule in rules if rule.split()[1] in (access, "readwrite")]
    return any(covers(one.split("/"), topic.split("/")) for one in filters)


def covers(pattern: list[str], topic: list[str]) -> bool:
    if pattern[:1] == ["#"]:
        return True
    if not pattern or not topic:
        return not pattern and not topic
    return pattern[0] in ("+", topic[0]) and covers(pattern[1:], topic[1:])


def example(name: str, board: str) -> str:
    fields: dict[str, str | int] = {"board": board, "client": "c", "chunk": 3, "version": "r.1"}
    return Topics("main").of(name, **fields, order=f"r.1.{board}.1")


@pytest.mark.parametrize("kind", ROUTES, ids=lambda kind: kind.name)
def test_a_board_writes_its_own_words_and_reads_the_coordinators(kind: object) -> None:
    name, sender = getattr(kind, "name"), getattr(kind, "sender")  # noqa: B009
    topic = example(name, "pi4")
    assert allowed(BOARD, "write", topic) is (sender == "board")
    assert allowed(BOARD, "read", topic) is (
        (sender == "coordinator" and name != "reply") or name in ("birth", "echo")
    )


@pytest.mark.parametrize(
    "kind", [kind for kind in ROUTES if "<board>" in kind.pattern], ids=lambda kind: kind.name
)
def test_a_board_neither_writes_nor_reads_anothers_topics(kind: object) -> None:
    topic = example(getattr(kind, "name"), "pi5")  # noqa: B009
    assert not allowed(BOARD, "write", topic)
    assert not allowed(BOARD, "read", topic)


def test_the_coordinator_reaches_its_fleet_and_no_other() -> None:
    rules = provisioning.coordinator_rules("main")
    assert allowed(rules, "write", example("order", "pi4"))
    assert not allowed(rules, "read", "edged/v1/attic/board/pi4/birth")


def test_a_password_is_kept_as_its_hash() -> None:
    line = provisioning.with_password("", "pi4", "secret").strip()
    user, _, kept = line.partition(":")
    _, kind, iterations, salt, digest = kept.split("$")
    made = hashlib.pbkdf2_hmac("sha512", b"secret", base64.b64decode(salt), int(iterations))
    assert (user, kind, base64.b64decode(digest)) == ("pi4", "7", made)
    assert "secret" not in line


def test_a_new_password_replaces_the_old_and_no_other() -> None:
    text = "me:$7$mine\n" + provisioning.with_password("", "pi4", "a")
    again = provisioning.with_password(text, "pi4", "b")
    assert provisioning.users(again) == ["me", "pi4"]
    assert again.startswith("me:$7$mine\n")
    assert again != text


def test_rules_of_others_stay_as_they_were() -> None:
    mine = "# mine\ntopic read $SYS/#\n\nuser me\ntopic readwrite home/#\n"
    text = provisioning.with_rules(mine, "pi4", ["topic read a"])
    assert text == mine + "\nuser pi4\ntopic read a\n"
    again = provisioning.with_rules(text, "pi4", ["topic read b"])
    assert again == mine + "\nuser pi4\ntopic read b\n"


def test_passwords_are_long_and_never_the_same() -> None:
    made = {provisioning.new_password() for _ in range(50)}
    assert len(made) == 50
    assert min(map(len, made)) >= 24


def test_the_manual_shows_the_rules_that_are_written() -> None:
    access = provisioning.with_rules("", "coordinator", provisioning.coordinator_rules("main"))
    access = provisioning.with_rules(access, "pi4", provisioning.board_rules("main", "pi4"))
    manual = (Path(__file__).resolve().parents[2] / "docs" / "operate.md").read_text()
    assert textwrap.indent(access, "    ") in manual
