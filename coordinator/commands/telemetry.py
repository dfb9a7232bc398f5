"""`edged-coordinator telemetry`: make what the InfluxDB lacks, try it, write a recorded run to it."""

from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, Final

import typer
from msgspec import structs

from coordinator.commands import _recorded, _show, exits
from coordinator.commands._surroundings import (
    ConfigOption,
    FleetOption,
    JsonOption,
    StoreOption,
    settings,
    told,
)
from coordinator.commands.exits import CommandError
from coordinator.config import Config

ACTIONS: Final = ("setup", "check", "import")
BATCH: Final = 2000


@told
def telemetry(
    action: Annotated[str, typer.Argument(metavar="setup|check|import", show_default=False)],
    run: Annotated[str | None, typer.Argument(metavar="[RUN]", show_default=False)] = None,
    *,
    url: Annotated[
        str | None, typer.Option("--url", help="Instead of the configured one.", show_default=False)
    ] = None,
    again: Annotated[
        bool, typer.Option("--again", help="Import a run that the server has points of.")
    ] = False,
    store: StoreOption = None,
    config: ConfigOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Set up the configured InfluxDB (database or bucket, retention, DBRP), check it, or import a RUN.

    check writes a point and reads it back through InfluxQL, as the dashboards will. import writes a run of
    the store that was recorded without a server.

    Example: edged-coordinator telemetry setup --url http://127.0.0.1:8086
    """
    from coordinator.telemetry import setup
    from coordinator.telemetry.server import InfluxServer
    from coordinator.telemetry.settings import TelemetryError

    if action not in ACTIONS or (action == "import") != (run is not None):
        raise CommandError("telemetry: it is setup, check, or import RUN", exits.USAGE)
    found = settings(config, None, fleet)
    if url is not None:
        found = structs.replace(found, telemetry=structs.replace(found.telemetry, url=url))
    if not found.telemetry.url:
        raise CommandError("no [telemetry] url is configured; give one there, or with --url", exits.CONFIG)
    try:
        server = InfluxServer(found.telemetry)
        if action == "setup":
            _tell(setup.setup(server), as_json)
        elif action == "check":
            _tell(setup.check(server, found.fleet), as_json)
        else:
            _import(
                found, server, str(run), _recorded.store_folder(store, config), again=again, as_json=as_json
            )
    except TelemetryError as error:
        raise CommandError(str(error)) from None
    except ModuleNotFoundError as error:
        raise CommandError(
            f"{error.name} is not installed; pip install 'edged[coordinator]' brings it"
        ) from None


def _tell(steps: Iterator[str], as_json: bool) -> None:
    told_so_far = []
    for step in steps:
        told_so_far.append(step)
        if not as_json:
            _show.line(step)
    if as_json:
        _show.json({"steps": told_so_far})


def _import(config: Config, server: Any, run: str, store: Path, *, again: bool, as_json: bool) -> None:
    from coordinator.telemetry import recorded, setup
    from coordinator.telemetry.lines import Writer

    with _recorded.opened(store) as history:
        found = _recorded.recorded(history, run)
        there = setup.points_of(server, run)
        if there and not again:
            raise CommandError(
                f"the server has {there} rounds of run {run} already, written live or before; --again writes "
                "it all the same, and points may be there twice"
            )
        writer, batch, sent = Writer(), [], 0
        for point in recorded.points(history, config.fleet, found.run):
            batch.append(writer.line(point))
            if len(batch) == BATCH:
                sent += _sent(server, batch)
                _show.progress(f"{sent:,} points")
                batch = []
        sent += _sent(server, batch) if batch else 0
        unset = recorded.unset(history, run)
    if as_json:
        _show.json({"run": run, "points": sent, "rows_without_a_time": unset})
        return
    _show.line(f"{sent:,} points of run {run} are written")
    if unset:
        _show.line(f"{unset:,} rows are left out: they were recorded while the clock was not set")


def _sent(server: Any, batch: list[str]) -> int:
    from coordinator.telemetry.settings import TelemetryError

    verdict = server.write(batch)
    if verdict.kind == "partial":
        _show.progress(f"{verdict.lost:,} points are not kept: {verdict.text}")
        return len(batch) - int(verdict.lost)
    if verdict.kind != "stored":
        raise TelemetryError(f"points could not be written: {verdict.text}")
    return len(batch)
