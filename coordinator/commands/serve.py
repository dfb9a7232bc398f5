"""`edged-coordinator serve`: the coordinator's process, in the foreground of a terminal or under systemd."""

import logging
import os
import sys
from pathlib import Path
from typing import Annotated

import typer
from msgspec import structs

from coordinator.cleaning import Lines, visible_json
from coordinator.commands import exits
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    settings,
    told,
)
from coordinator.commands.exits import CommandError

LEVELS = ("debug", "info", "warning", "error")


@told
def serve(
    *,
    store: Annotated[
        Path | None,
        typer.Option("--store", help="Folder of runs; else the configured one.", show_default=False),
    ] = None,
    web: Annotated[
        str | None,
        typer.Option(
            "--web", metavar="HOST:PORT|off", help="Where the live page listens.", show_default=False
        ),
    ] = None,
    log_level: Annotated[str, typer.Option("--log-level", help=", ".join(LEVELS))] = "info",
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Serve the fleet until SIGTERM or Ctrl-C; an unfinished run of the store goes on.

    With --json the log is a JSON document a line.

    Example: edged-coordinator serve --config /etc/edged/coordinator.toml
    """
    from coordinator import service
    from coordinator.store import StoreError
    from coordinator.web.settings import WebError

    if log_level not in LEVELS:
        raise CommandError(f"--log-level {log_level}: one of {', '.join(LEVELS)}", exits.USAGE)
    found = settings(config, broker, fleet)
    if store is not None:
        found = structs.replace(found, store=structs.replace(found.store, folder=str(store)))
    if web is not None:
        found = structs.replace(found, web=structs.replace(found.web, listen=web))
    try:
        found.web.token()
    except WebError as error:
        raise CommandError(str(error), exits.CONFIG) from None
    _log(log_level, as_json)
    try:
        status = service.serve(found)
    except StoreError as error:
        raise CommandError(str(error)) from None
    except service.LiveCoordinatorError as error:
        raise CommandError(str(error), exits.REFUSED) from None
    if status:
        raise typer.Exit(status)


class _JsonLines(logging.Formatter):
    def format(self, record: logging.LogRecord) -> str:
        import msgspec

        row = {
            "at": record.created,
            "level": record.levelname.lower(),
            "name": record.name,
            "text": record.getMessage(),
        }
        if record.exc_info:
            row["where"] = self.formatException(record.exc_info)
        return visible_json(msgspec.json.encode(row).decode())


def _log(level: str, as_json: bool) -> None:
    handler = logging.StreamHandler(sys.stderr)
    # The journal has the time of each line by itself.
    stamp = "" if os.environ.get("JOURNAL_STREAM") else "%(asctime)s "
    handler.setFormatter(_JsonLines() if as_json else Lines(f"{stamp}%(levelname)s %(message)s"))
    logging.basicConfig(level=level.upper(), handlers=[handler], force=True)
