"""`edged uninstall`: takes away what `edged install` has put here."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

app = typer.Typer()


@app.command("uninstall")
def uninstall(
    *,
    purge: Annotated[
        bool, typer.Option("--purge", help="Settings, data below /var/lib/edged and accounts too.")
    ] = False,
    root: Annotated[Path, typer.Option(help="The image below it.", metavar="DIR")] = Path("/"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was done as a JSON object.")] = False,
) -> None:
    """Stop the service and remove it with all its releases. Settings and data stay without --purge.

    Example: sudo edged uninstall --purge
    """
    from edged.commands._steps import carried_out
    from edged.install import board as steps

    carried_out(
        "uninstall",
        lambda machine: steps.uninstall(machine, purge),
        root=root,
        dry=dry_run,
        as_json=as_json,
    )
