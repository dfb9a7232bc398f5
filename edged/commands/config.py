"""`edged config`: the commented sample of the settings, or what a file comes to."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Optional

import typer

app = typer.Typer()


@app.command("config")
def config(
    check: Annotated[
        Optional[Path],  # noqa: UP045 - typer reads this at run time, on Python 3.10 too
        typer.Option("--check", help="Read this file and say whether it can be used.", metavar="FILE"),
    ] = None,
    as_json: Annotated[
        bool, typer.Option("--json", help="Print settings as JSON: the defaults, or those of --check.")
    ] = False,
) -> None:
    """Print the commented sample of edged.toml, or check a file.

    Examples: edged config > /etc/edged/edged.toml; edged config --check /etc/edged/edged.toml
    """
    import msgspec

    from edged.config import EXIT_CONFIG, SAMPLE, ConfigError, Settings, load
    from edged.vetting import vet

    if check is None and not as_json:
        typer.echo(SAMPLE.read_text(), nl=False)
        return
    try:
        settings = load(check, {}) if check else Settings()
    except ConfigError as error:
        typer.echo(f"edged config: {error}", err=True)
        raise typer.Exit(EXIT_CONFIG) from None
    try:
        vet(settings)
    except ConfigError as error:
        typer.echo(f"edged config: {check}: {error}", err=True)
        raise typer.Exit(EXIT_CONFIG) from None
    if as_json:
        typer.echo(msgspec.json.format(msgspec.json.encode(settings)).decode())
    else:
        typer.echo(f"{check}: good; board {settings.board.id} of fleet {settings.board.fleet}")
