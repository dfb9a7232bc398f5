"""`edged probe`: which sensors this board has, what they read, and the joules of any command."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

app = typer.Typer(
    help="Show this board's energy sensors, watch them, measure a command, scale them to a wall meter.",
    epilog="Example: edged probe list",
    no_args_is_help=True,
)

# typer reads these at run time, on Python 3.10 too.
OptionalPath = Optional[Path]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
OptionalTexts = Optional[list[str]]  # noqa: UP045
OptionalNumber = Optional[float]  # noqa: UP045

EXIT_FAILED = 1
EXIT_NOT_FOUND = 127
EXIT_INTERRUPTED = 130

Config = Annotated[
    OptionalPath, typer.Option(help="Settings; default /etc/edged/edged.toml.", metavar="FILE")
]
Root = Annotated[
    Path,
    typer.Option(help="Another root: a folder, or a recorded machine's JSON file.", metavar="DIR|FILE"),
]
Json = Annotated[bool, typer.Option("--json", help="As JSON.")]
Idle = Annotated[OptionalNumber, typer.Option(help="This board's idle watts, for an estimate.", min=0)]
Full = Annotated[OptionalNumber, typer.Option(help="Its watts with every core busy.", min=0)]


@app.command("list")
def list_channels(
    *,
    root: Root = Path("/"),
    config: Config = None,
    idle_watts: Idle = None,
    full_watts: Full = None,
    as_json: Json = False,
) -> None:
    """List every channel: what it covers, how good it is, why it is the headline or not, what helps.

    Exit status 1 where nothing gives a figure. Example: edged probe list --root /mnt/board
    """
    from edged.commands import _probe_show
    from edged.commands._probe_meter import Refused, opened

    try:
        with opened(root, config, idle_watts, full_watts) as meter:
            meter.open()
            found, live = meter.channels(), meter.live()
    except Refused as error:
        raise _refused(error) from None
    typer.echo(_probe_show.as_json(found, live) if as_json else _probe_show.table(found, live))
    if live.headline_channel_id is None:
        raise typer.Exit(EXIT_FAILED)


@app.command("watch")
def watch(
    *,
    root: Root = Path("/"),
    config: Config = None,
    idle_watts: Idle = None,
    full_watts: Full = None,
    seconds: Annotated[float, typer.Option(help="Stop after this long; 0: until Ctrl-C.", min=0)] = 0.0,
    as_json: Annotated[bool, typer.Option("--json", help="A JSON object a second.")] = False,
) -> None:
    """Watch the watts of every channel live, a bar each. Ctrl-C ends it.

    Example: edged probe watch --seconds 30
    """
    from edged.commands import _probe_show
    from edged.commands._probe_meter import Refused, opened

    try:
        with opened(root, config, idle_watts, full_watts) as meter:
            meter.start()
            if as_json:
                _probe_show.stream(meter, seconds)
            else:
                _probe_show.bars(meter, seconds)
    except Refused as error:
        raise _refused(error) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED if seconds else 0) from None


@app.command("measure", context_settings={"ignore_unknown_options": True})
def measure(
    command: Annotated[
        OptionalTexts, typer.Argument(help="What to run, with its arguments.", metavar="COMMAND")
    ] = None,
    *,
    config: Config = None,
    idle_watts: Idle = None,
    full_watts: Full = None,
    as_json: Annotated[bool, typer.Option("--json", help="The figures as a JSON object.")] = False,
) -> None:
    """Measure the joules of a command, as `time` does its seconds; the figures go to standard error.

    Exit status: the command's own. Example: edged probe measure -- python3 -c 'sum(range(10**8))'
    """
    from edged.commands import _probe_show
    from edged.commands._probe_meter import Refused, measured, opened

    if not command:
        typer.echo("edged probe measure: no command given; put it behind --", err=True)
        raise typer.Exit(2)
    try:
        with opened(Path("/"), config, idle_watts, full_watts) as meter:
            meter.start()
            outcome = measured(meter, command)
            findings = meter.channels()
    except Refused as error:
        raise _refused(error) from None
    if outcome.energy is None:
        typer.echo(f"edged probe measure: {outcome.fault}", err=True)
        raise typer.Exit(EXIT_NOT_FOUND)
    shown = _probe_show.measured_json if as_json else _probe_show.measured_text
    typer.echo(shown(outcome, findings), err=True)
    raise typer.Exit(outcome.code)


@app.command("calibrate")
def calibrate(
    *,
    against: Annotated[
        OptionalText, typer.Option(help="The better meter's channel; default the configured plug.")
    ] = None,
    channel: Annotated[
        OptionalText, typer.Option(help="What to scale; default the best other channel.")
    ] = None,
    seconds: Annotated[float, typer.Option(help="How long to compare.", min=20)] = 120.0,
    config: Config = None,
    as_json: Json = False,
) -> None:
    """Scale this board's own sensor to a wall meter: prints the lines to add to edged.toml.

    Let the board idle and work in turn meanwhile: a varied load tells the slope from the offset.
    Example: edged probe calibrate --seconds 180
    """
    from edged.commands import _probe_show
    from edged.commands._probe_meter import Refused, compared, opened

    try:
        with opened(Path("/"), config, None, None) as meter:
            meter.start()
            found = compared(meter, channel, against, seconds, tell=_probe_show.progress(seconds))
    except Refused as error:
        raise _refused(error) from None
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    typer.echo(_probe_show.calibration_json(found) if as_json else _probe_show.calibration_text(found))


def _refused(error: Exception) -> typer.Exit:
    typer.echo(f"edged probe: {error}", err=True)
    return typer.Exit(78)
