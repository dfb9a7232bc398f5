"""What can be told of settings beyond their types before anything runs: boards and sensors that they name.

`edged run` refuses by it, `edged config --check` says the same. It looks at no sensor and at no network.
"""

from __future__ import annotations

import socket
from importlib.metadata import entry_points
from typing import Any

from edged.boards import BoardError
from edged.config import ConfigError, Settings, with_board_id
from edged.emulation import emulation_of
from probes import Checking, Probe, load, names
from probes._calibration import TABLE as CALIBRATION
from probes._calibration import parse
from probes._plug import KINDS
from probes._settings import word

PLUG = "plug"


def vet(settings: Settings) -> None:
    """Raises ConfigError with the key and what it takes."""
    if settings.emulate.board:
        try:
            emulation_of(settings.emulate.board, settings.emulate.speed_scale)
        except BoardError as error:
            raise ConfigError(f"emulate.board: {error}") from None
    elif settings.emulate.speed_scale:
        raise ConfigError(
            "emulate.speed_scale: it paces an emulated board, and there is none: set emulate.board "
            "(--emulate BOARD), or leave it out"
        )
    tables = settings.energy.probes
    added = {entry.name: entry for entry in entry_points(group="edged.probes")}
    known = {*names(), *added, PLUG, CALIBRATION} - set(KINDS)
    for name in tables:
        if name in KINDS:
            raise ConfigError(f'energy.{name}: a plug\'s table is [energy.plug], with kind = "{name}"')
        if name not in known:
            there = ", ".join(sorted(known))
            raise ConfigError(f"energy.{name}: no sensor has such a table; there are: {there}")
    try:
        parse(tables)
        for name in tables:
            _check(added[name].load()() if name in added else _owner(name, tables), tables)
        if tables.get(PLUG, {}).get("topic"):
            _hear(settings, tables[PLUG])
    except ValueError as error:
        raise ConfigError(str(error)) from None


def _owner(name: str, tables: dict[str, dict[str, Any]]) -> Probe | None:
    """The probe that reads this table. Raises ValueError for a plug of no kind."""
    if name == CALIBRATION:
        return None
    if name == PLUG:
        kind = word(tables[PLUG], PLUG, "kind")
        name = kind if kind in KINDS else KINDS[0]  # whichever: each tells the kinds there are
    return load(name)


def _check(probe: Probe | None, tables: dict[str, dict[str, Any]]) -> None:
    if isinstance(probe, Checking):
        probe.check(tables)


def _hear(settings: Settings, plug: dict[str, Any]) -> None:
    """Whether the plug's own broker is an address. Raises ValueError."""
    from edged.daemon import link_config
    from edged.plugs import link_config as plug_link

    plug_link(link_config(with_board_id(settings, socket.gethostname())), plug)
