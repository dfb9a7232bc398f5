"""A board's settings: from TOML and flags into one checked value. Every fault names its dotted path.

Passwords are never settings: only the file that holds one is named.
"""

from __future__ import annotations

import ipaddress
import math
import os
import re
import socket
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta, Struct

from edged.fields import Id

DEFAULT_FILE = Path("/etc/edged/edged.toml")
SAMPLE = Path(__file__).with_name("sample.toml")
CREDENTIAL = "mqtt-password"
EXIT_CONFIG = 78  # EX_CONFIG: a service manager need not try again

T = TypeVar("T")
Port = Annotated[int, Meta(ge=1, le=65535)]


class ConfigError(ValueError):
    """Settings that cannot be used; the text names the key and the way out."""


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    """Settings refuse what they do not know: a misspelt key must not be a silent default."""


class BoardTable(_Table, frozen=True):
    """[board]; an empty id stands for the host name, an empty silo for the coordinator's choice."""

    id: Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9_-]{0,62})?\Z")] = ""
    fleet: Id = "main"
    silo: Annotated[str, Meta(pattern=r"^([a-z0-9][a-z0-9_-]{0,62})?\Z")] = ""


class BrokerTable(_Table, frozen=True):
    """[broker]"""

    host: Annotated[str, Meta(min_length=1)] = "localhost"
    port: Port = 1883
    username: str = ""
    password_file: str = ""
    ca_file: str = ""
    certificate_file: str = ""
    key_file: str = ""
    keepalive_seconds: Annotated[int, Meta(ge=5, le=3600)] = 60


class PoolTable(_Table, frozen=True):
    """[data.NAME]"""

    path: Annotated[str, Meta(min_length=1)]


class TasksTable(_Table, frozen=True):
    """[tasks]"""

    folder: str = "/etc/edged/tasks"


class TrainingTable(_Table, frozen=True):
    """[training]"""

    threads: Annotated[int, Meta(ge=0, le=1024)] = 0
    micro_batch: Annotated[int, Meta(ge=0)] = 0


class StorageTable(_Table, frozen=True):
    """[storage]"""

    runtime: str = ""


class EnergyTable(_Table, frozen=True):
    """[energy]; `probes` are the tables [energy.NAME], each a probe's own business."""

    prefer: tuple[str, ...] = ()
    exclude: tuple[str, ...] = ()
    count_psys: bool = False
    probes: dict[str, dict[str, Any]] = {}


class EmulateTable(_Table, frozen=True):
    """[emulate]"""

    board: str = ""
    speed_scale: Annotated[float, Meta(ge=0)] = 0.0


class LogTable(_Table, frozen=True):
    """[log]"""

    level: Literal["debug", "info", "warning", "error"] = "info"


class Settings(_Table, frozen=True):
    """All settings of a board."""

    board: BoardTable = BoardTable()
    broker: BrokerTable = BrokerTable()
    data: dict[Id, PoolTable] = {}
    tasks: TasksTable = TasksTable()
    training: TrainingTable = TrainingTable()
    storage: StorageTable = StorageTable()
    energy: EnergyTable = EnergyTable()
    emulate: EmulateTable = EmulateTable()
    log: LogTable = LogTable()


def load(path: Path | None, flags: Mapping[str, Mapping[str, Any]]) -> Settings:
    """The file's settings (None: the default file, if there is one) with the flags' tables laid over them."""
    if path is None:
        text = DEFAULT_FILE.read_bytes() if DEFAULT_FILE.exists() else b""
        path = DEFAULT_FILE
    else:
        text = _read(path)
    tables = parse(text, str(path))
    try:
        check(tables)
    except ConfigError as error:
        raise ConfigError(f"{path}: {error}") from None
    for name, table in flags.items():
        tables[name] = {**tables.get(name, {}), **table}
    return with_board_id(check(tables), socket.gethostname())


def parse(text: bytes, name: str) -> dict[str, Any]:
    """The tables of a TOML text, unchecked; `name` stands for it in the error. Raises ConfigError."""
    try:
        found: dict[str, Any] = msgspec.toml.decode(text)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{name}: not TOML: {error}") from None
    return found


def check(tables: Mapping[str, Any]) -> Settings:
    """Settings of plain tables. Raises ConfigError naming the first key that is unknown or of a wrong
    type.
    """
    folded = dict(tables)
    if isinstance(tables.get("energy"), dict):
        known = {name: value for name, value in tables["energy"].items() if not isinstance(value, dict)}
        probes = {name: value for name, value in tables["energy"].items() if isinstance(value, dict)}
        folded["energy"] = {**known, "probes": probes}
    if isinstance(tables.get("data"), dict):
        # One by one: msgspec does not say which entry of a mapping is at fault.
        folded["data"] = {
            name: _converted(table, PoolTable, f"data.{name}") for name, table in tables["data"].items()
        }
    settings = _converted(folded, Settings)
    if not math.isfinite(settings.emulate.speed_scale):
        raise ConfigError(f"emulate.speed_scale: {settings.emulate.speed_scale} is not a finite number")
    return settings


def with_board_id(settings: Settings, host: str) -> Settings:
    """The same with a board id, taken from the host name where none is set."""
    if settings.board.id:
        return settings
    made = re.sub(r"[^a-z0-9_-]+", "-", host.split(".", maxsplit=1)[0].lower()).strip("-_")[:63]
    if not made:
        raise ConfigError(f"board.id: the host name {host!r} gives none; set it in the file or by --board")
    board = msgspec.structs.replace(settings.board, id=made)
    return msgspec.structs.replace(settings, board=board)


def broker_of(text: str) -> dict[str, Any]:
    """The [broker] keys of HOST[:PORT]; an IPv6 address with a port stands in brackets."""
    found = re.fullmatch(r"\[([^][]+)\](?::(\d+))?|([^][:]+)(?::(\d+))?", text)
    if found:
        port = found[2] or found[4]
        return {"host": found[1] or found[3], **({"port": int(port)} if port else {})}
    try:
        return {"host": str(ipaddress.IPv6Address(text))}
    except ValueError:
        raise ConfigError(f"broker: {text!r} is not HOST[:PORT]") from None


def pool_of(text: str) -> tuple[str, dict[str, Any]]:
    """Name and [data.NAME] table of NAME=PATH."""
    name, equals, path = text.partition("=")
    if not (name and equals and path):
        raise ConfigError(f"pool: {text!r} is not NAME=PATH")
    return name, {"path": path}


def password_file(settings: Settings, environment: Mapping[str, str] = os.environ) -> str | None:
    """The file that holds the broker's password: the one set, else the service's credential, else None."""
    if settings.broker.password_file:
        return settings.broker.password_file
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if folder and (Path(folder) / CREDENTIAL).exists():
        return str(Path(folder) / CREDENTIAL)
    return None


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise ConfigError(f"{path}: cannot be read: {error.strerror}") from None


def _converted(value: Any, kind: type[T], prefix: str = "") -> T:
    try:
        return msgspec.convert(value, kind)
    except msgspec.ValidationError as error:
        raise ConfigError(_in_words(str(error), prefix)) from None


def _in_words(text: str, prefix: str) -> str:
    """Msgspec's message with the path first: `broker.port: Expected int, got str`."""
    what, _, path = text.partition(" - at `")
    inside = (
        path.removeprefix("key` in `")
        .rstrip("`")
        .removeprefix("$")
        .removeprefix(".")
        .replace("energy.probes", "energy")
    )
    where = ".".join(name for name in (prefix, inside) if name)
    unknown = re.match(r"Object contains unknown field `(.+)`", what)
    if unknown:
        where = f"{where}.{unknown[1]}" if where else unknown[1]
        what = "unknown key; `edged config` prints all there are"
    if "matching regex" in what:  # the only patterns of settings are those of names
        what = "a name is 1 to 63 of a-z, 0-9, - and _, the first a letter or a digit"
    return f"{where}: {what}" if where else what
