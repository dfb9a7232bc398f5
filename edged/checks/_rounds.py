"""The order in which a board is looked at, and what each look is given. Nothing is judged here."""

from __future__ import annotations

import os
import socket
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from edged.checks import Finding, broker, clock, data, machine, network, permissions, sensors, torch
from edged.commands._probe_meter import Refused, opened
from edged.config import DEFAULT_FILE, ConfigError, Settings, load, password_file
from edged.runtime import RUN

Tell = Callable[[str], None]
HERE = Path("/")


def examine(config: Path | None, root: Path, tell: Tell) -> Iterator[Finding]:
    """All findings, each as soon as it is known; `tell` hears what is being looked at."""
    if root != HERE:
        yield from _elsewhere(config, root, tell)
        return
    settings, finding = _settings(config)
    yield finding
    tell("looking for sensors")
    yield from _sensors(config if finding.verdict == "ok" else None, HERE, settings)
    yield from _second_opinion(settings)
    yield from clock.examine(clock.read(), tls=bool(settings.broker.ca_file))
    if finding.verdict == "ok":
        tell(f"connecting to {settings.broker.host}:{settings.broker.port}")
        yield from _broker(settings)
        yield from network.examine(settings.broker.host, settings.broker.port)
    tell("importing torch in a process of its own; a slow board takes minutes")
    yield from torch.examine(torch.ask(), HERE)
    tell("listing tasks and pools")
    yield from _data(settings)
    yield from _permissions(settings)
    yield from _disk(settings)
    yield from machine.memory(HERE)


def _elsewhere(config: Path | None, root: Path, tell: Tell) -> Iterator[Finding]:
    """Broker, torch and permissions of this machine would say nothing of the other one."""
    settings = Settings()
    if config is not None:
        settings, finding = _settings(config)
        yield finding
        config = config if finding.verdict == "ok" else None
    tell("looking for sensors")
    yield from _sensors(config, root, settings)
    if root.is_dir():
        yield from machine.memory(root)
    text = f"only sensors and memory were looked at below {root}: the rest is asked of the running board"
    yield Finding("scope", "ok", text)


def _settings(config: Path | None) -> tuple[Settings, Finding]:
    """The settings, or the defaults with the fault."""
    place = config or DEFAULT_FILE
    try:
        found = load(config, {})
    except ConfigError as error:
        return Settings(), Finding("settings", "fail", str(error), "edged config prints a commented sample")
    except OSError as error:
        way_out = f"let this user read it: sudo -u edged edged doctor, or chmod o+r {place}"
        return Settings(), Finding("settings", "fail", f"{place}: {error.strerror}", way_out)
    which = str(place) if config or DEFAULT_FILE.exists() else f"no {place}: the defaults"
    text = f"{which}; board {found.board.id} of fleet {found.board.fleet}"
    return found, Finding("settings", "ok", text)


def _sensors(config: Path | None, root: Path, settings: Settings) -> Iterator[Finding]:
    if settings.emulate.board:
        from edged.boards import BoardError
        from edged.boards import load as load_boards

        try:
            name = load_boards().find(settings.emulate.board).name
        except BoardError as error:
            yield Finding("joules", "fail", f"emulate.board: {error}", "choose one of these")
            return
        text = f"emulated: metered like {name}; no sensor of this machine is read"
        yield Finding("joules", "ok", text)
        return
    try:
        with opened(root, config, None, None) as meter:
            meter.open()
            found, reason = meter.channels(), meter.live().reason
    except Refused as error:
        yield Finding("joules", "fail", str(error))
        return
    yield from sensors.examine(found, reason, _asked(settings))


def _asked(settings: Settings) -> list[str]:
    """The probes that the settings ask for: their own tables, and the plug's kind."""
    tables = settings.energy.probes
    kind = tables.get("plug", {}).get("kind")
    return [*tables, *([kind] if isinstance(kind, str) else [])]


def _second_opinion(settings: Settings) -> Iterator[Finding]:
    from probes._outside import real_context

    if not settings.emulate.board:
        yield from sensors.cross_check(real_context())


def _broker(settings: Settings) -> Iterator[Finding]:
    from edged.daemon import link_config
    from edged.paho_link import PahoLink

    board = settings.board
    try:
        link = link_config(settings)
    except ValueError as error:
        yield Finding("broker", "fail", str(error), "mend [broker] in the settings")
        return
    yield from broker.examine(board.id, board.fleet, link, PahoLink, socket.gethostname())


def _data(settings: Settings) -> Iterator[Finding]:
    from edged.stock import listing_of

    pools = {name: table.path for name, table in settings.data.items()}
    yield from data.examine(listing_of(pools, (settings.tasks.folder,)))


def _permissions(settings: Settings) -> Iterator[Finding]:
    needed = permissions.groups_of_sensors(HERE)
    user = permissions.this_user()
    yield from permissions.examine(settings.broker, password_file(settings), user, needed)


def _disk(settings: Settings) -> Iterator[Finding]:
    folder, reason = machine.runtime_folder(settings.storage.runtime, dict(os.environ), RUN)
    if folder is None:
        yield Finding("runtime", "fail", reason, "set [storage] runtime to a folder that this user may write")
        return
    if reason:
        way_out = "the installed service has its own; else set [storage] runtime"
        yield Finding("runtime", "warn", reason, way_out)
    yield machine.disk(folder, "disk")
    if folder != Path(tempfile.gettempdir()):
        yield from _temporary()


def _temporary() -> Iterator[Finding]:
    """The first optimizer of torch needs one."""
    try:
        tempfile.gettempdir()
    except FileNotFoundError as error:
        yield Finding("temporary folder", "fail", str(error), "set TMPDIR to one that can be written")
