"""Whether the user who asks may read password and certificates, and nobody else; and its groups."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct

from edged.checks import Finding
from edged.config import BrokerTable

SERVICE = "edged"


class User(Struct, frozen=True):
    """Who asks: name, groups it is in, and the groups that this system has."""

    name: str
    groups: tuple[str, ...]
    known_groups: tuple[str, ...]


def this_user() -> User:
    """The one of this process."""
    import grp
    import pwd

    known = {row.gr_gid: row.gr_name for row in grp.getgrall()}
    try:
        name = pwd.getpwuid(os.geteuid()).pw_name
    except KeyError:
        name = str(os.geteuid())
    mine = {os.getegid(), *os.getgroups()}
    return User(name, tuple(known.get(gid, str(gid)) for gid in sorted(mine)), tuple(known.values()))


def examine(
    broker: BrokerTable, password: str | None, user: User, needed: Sequence[str]
) -> Iterator[Finding]:
    """`password` is the password's file as the daemon would take it; `needed` are groups of sensors here."""
    yield from _user(user, needed)
    if password is not None:
        yield _secret("password file", Path(password), text=True)
        if not broker.username:
            text = "there is a password and no user name: the broker is told neither"
            yield Finding("user name", "warn", text, "set [broker] username")
    elif broker.username:
        text = f"user {broker.username} has no password here"
        yield Finding("password file", "warn", text, "set [broker] password_file, if the broker asks for one")
    for what, name in (("CA file", broker.ca_file), ("certificate", broker.certificate_file)):
        if name:
            yield _readable(what, Path(name))
    if broker.key_file:
        yield _secret("key file", Path(broker.key_file))


def groups_of_sensors(root: Path) -> list[str]:
    """The groups that let a user read what is here, by the files that belong to them."""
    signs = {
        "edged-energy": "etc/udev/rules.d/60-edged-energy.rules",
        "jtop": "run/jtop.sock",
        "video": "dev/vcio",
    }
    return [group for group, path in signs.items() if (root / path).exists()]


def _user(user: User, needed: Sequence[str]) -> Iterator[Finding]:
    if user.name == "root":
        text = "root reads everything; the service does not"
        way_out = f"sudo -u {SERVICE} edged doctor" if SERVICE in user.known_groups else ""
        yield Finding("user", "ok", text, way_out)
        return
    missing = [group for group in needed if group in user.known_groups and group not in user.groups]
    yield Finding("user", "ok", f"{user.name}, groups {', '.join(user.groups)}")
    for group in missing:
        text = f"{user.name} is not in {group}, the group that may read a sensor here"
        yield Finding("groups", "warn", text, f"sudo usermod -aG {group} {user.name}, then log in anew")


def _readable(what: str, path: Path) -> Finding:
    try:
        with path.open("rb") as file:
            empty = not file.read(1)
    except OSError as error:
        return Finding(what, "fail", f"{path}: {error.strerror}", f"let {SERVICE} read it, or name another")
    if empty:
        return Finding(what, "fail", f"{path} is empty", "put what belongs there into it")
    return Finding(what, "ok", f"{path} can be read")


def _secret(what: str, path: Path, *, text: bool = False) -> Finding:
    found = _readable(what, path)
    if found.verdict != "ok":
        return found
    mode = stat.S_IMODE(path.stat().st_mode)
    if mode & 0o007:
        return Finding(what, "fail", f"{path} is open to everybody (mode {mode:04o})", f"chmod o= {path}")
    if text:
        try:
            lines = path.read_text("utf-8").rstrip("\r\n").splitlines()
        except UnicodeDecodeError:
            return Finding(what, "fail", f"{path} is not UTF-8 text", "put the password alone into it")
        if len(lines) != 1:
            return Finding(what, "fail", f"{path} has {len(lines)} lines", "put the password alone into it")
    return Finding(what, "ok", f"{path}, mode {mode:04o}")
