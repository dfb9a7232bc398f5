"""The broker's side of a fleet: who may log in, and which topics each may write and read.

Texts in, texts out: mosquitto's password and access files (mosquitto.conf(5)). What others wrote there stays.
"""

import base64
import hashlib
import re
import secrets
from collections.abc import Callable, Iterator
from typing import Final

from edged.topics import ROUTES, VALID_ID, Topics

COORDINATOR: Final = "coordinator"
PASSWORD_BYTES: Final = 18
_ITERATIONS: Final = 101
"""Mosquitto's own number; the passwords are random, so that guessing is hopeless at any."""


def new_password() -> str:
    """144 random bits, in characters that no shell minds."""
    return secrets.token_urlsafe(PASSWORD_BYTES)


def hashed(password: str, salt: bytes | None = None) -> str:
    """As mosquitto_passwd writes it: PBKDF2 with SHA-512."""
    salt = secrets.token_bytes(12) if salt is None else salt
    digest = hashlib.pbkdf2_hmac("sha512", password.encode(), salt, _ITERATIONS)
    return f"$7${_ITERATIONS}${base64.b64encode(salt).decode()}${base64.b64encode(digest).decode()}"


def users(passwords: str) -> list[str]:
    """Who has a password."""
    return [line.partition(":")[0] for line in passwords.splitlines() if ":" in line]


def with_password(passwords: str, user: str, password: str) -> str:
    """The password file with this user's line; an older one is replaced."""
    kept = [line for line in passwords.splitlines() if line.partition(":")[0] != user]
    return "\n".join([*kept, f"{user}:{hashed(password)}"]) + "\n"


def with_rules(access: str, user: str, rules: list[str]) -> str:
    """The access file with this user's rules; older ones are replaced."""
    made = "\n".join([f"user {user}", *rules])
    blocks = [block.rstrip() for block in re.split(r"(?m)^(?=user )", access)]
    found = [made if block.split()[:2] == ["user", user] else block for block in blocks if block]
    return "\n\n".join(found if made in found else [*found, made]) + "\n"


def coordinator_rules(fleet: str) -> list[str]:
    """The coordinator, and the operator's commands, which use its password."""
    return [f"topic readwrite {Topics(fleet).root}/#"]


def board_rules(fleet: str, board: str) -> list[str]:
    """A board writes its own words and reads the coordinator's for it; it hears no other board."""
    assert VALID_ID.match(board), board
    topics = Topics(fleet)
    return list(dict.fromkeys(_rules(lambda name: topics.filter(name, board=board))))


def _rules(filter_of: Callable[[str], str]) -> Iterator[str]:
    for kind in ROUTES:
        if kind.sender == "board":
            yield f"topic write {filter_of(kind.name)}"
        elif kind.sender == "coordinator" and kind.message != "Reply":
            yield f"topic read {filter_of(kind.name)}"
    # Its own words come back to it: a second board's birth under its name, and the word of `edged doctor`.
    yield f"topic read {filter_of('birth')}"
    yield f"topic read {filter_of('echo')}"


def broker_settings(port: int, folder: str, *, persistence: bool) -> str:
    """The drop-in for mosquitto: one listener for the fleet; nobody without a password."""
    lines = [
        "# The fleet's listener. Passwords and topics: edged-coordinator provision BOARD.",
        f"listener {port}",
        "allow_anonymous false",
        f"password_file {folder}/edged.passwords",
        f"acl_file {folder}/edged.access",
        "# A board that was away for a while gets all that it missed; a default of 1000 drops it silently.",
        "max_queued_messages 10000",
        "max_queued_bytes 268435456",
        "set_tcp_nodelay true",
        *(["persistence true"] if persistence else []),
    ]
    return "\n".join(lines) + "\n"
