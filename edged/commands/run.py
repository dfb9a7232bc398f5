"""`edged run`: checks the settings and becomes the daemon, in the same process."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

app = typer.Typer()

# typer reads these at run time, on Python 3.10 too.
OptionalPath = Optional[Path]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
OptionalTexts = Optional[list[str]]  # noqa: UP045
OptionalNumber = Optional[float]  # noqa: UP045
OptionalInteger = Optional[int]  # noqa: UP045


@app.command("run")
def run(
    *,
    config: Annotated[
        OptionalPath, typer.Option(help="Settings; default /etc/edged/edged.toml.", metavar="FILE")
    ] = None,
    board: Annotated[OptionalText, typer.Option(help="This board's id; default the host name.")] = None,
    fleet: Annotated[OptionalText, typer.Option(help="The fleet it belongs to.")] = None,
    silo: Annotated[OptionalText, typer.Option(help="The silo it trains with in hfl-ddp.")] = None,
    broker: Annotated[OptionalText, typer.Option(help="The MQTT broker.", metavar="HOST[:PORT]")] = None,
    pool: Annotated[
        OptionalTexts,
        typer.Option(help="A pool, again for each; PATH builtin: shipped data.", metavar="NAME=PATH"),
    ] = None,
    emulate: Annotated[
        OptionalText, typer.Option(help="Pace and meter like this board, e.g. rpi4.", metavar="BOARD")
    ] = None,
    speed_scale: Annotated[
        OptionalNumber, typer.Option(help="With --emulate: seconds a sample on a Raspberry Pi 4.")
    ] = None,
    tasks: Annotated[OptionalText, typer.Option(help="Folder of task files.", metavar="DIR")] = None,
    runtime: Annotated[OptionalText, typer.Option(help="For models in transfer.", metavar="DIR")] = None,
    threads: Annotated[OptionalInteger, typer.Option(help="Threads of a training step.")] = None,
    micro_batch: Annotated[
        OptionalInteger, typer.Option(help="Samples at once that fit into memory; else found out.")
    ] = None,
    log_level: Annotated[OptionalText, typer.Option(help="debug, info, warning or error.")] = None,
    as_json: Annotated[bool, typer.Option("--json", help="Print the settings, do not run.")] = False,
) -> None:
    """Run the board's daemon until SIGTERM or Ctrl-C. Flags override the file.

    Example: edged run --board pi4 --broker 192.0.2.1 --pool mnist=/data/mnist
    """
    import msgspec

    from edged import entry
    from edged.config import EXIT_CONFIG, ConfigError, broker_of, load, pool_of
    from edged.journal import as_error
    from edged.reload import Source, Start
    from edged.vetting import vet

    flags: dict[str, dict[str, Any]] = {
        "board": {"id": board, "fleet": fleet, "silo": silo},
        "emulate": {"board": emulate, "speed_scale": speed_scale},
        "tasks": {"folder": tasks},
        "storage": {"runtime": runtime},
        "training": {"threads": threads, "micro_batch": micro_batch},
        "log": {"level": log_level},
    }
    given = {
        name: {key: value for key, value in table.items() if value is not None}
        for name, table in flags.items()
    }
    try:
        if broker is not None:
            given["broker"] = broker_of(broker)
        given["data"] = dict(pool_of(text) for text in pool or ())
        settings = load(config, given)
        vet(settings)
    except ConfigError as error:
        typer.echo(as_error(f"edged run: {error}"), err=True)
        raise typer.Exit(EXIT_CONFIG) from None
    if as_json:
        typer.echo(msgspec.json.encode(settings).decode())
        return
    source = Source(str(config.resolve()) if config is not None else "", given)
    entry.hand_over("edged.daemon", msgspec.json.encode(Start(settings, source)).decode())
