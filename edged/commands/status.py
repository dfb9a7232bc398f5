"""`edged status`: how the board's service is, for anybody: link, round and watts in its own words."""

from __future__ import annotations

from typing import Annotated

import typer

app = typer.Typer()

EXIT_NOT_RUNNING = 3
EXIT_NOT_INSTALLED = 4


@app.command("status")
def status(as_json: Annotated[bool, typer.Option("--json", help="As a JSON object.")] = False) -> None:
    """Show the board's service: whether it runs, its link, round, share and watts, and its last error.

    Exit statuses: 3 it does not run, 4 there is none. Example: edged status --json
    """
    import json

    from edged.install import releases, units
    from edged.install.machine import Machine

    machine = Machine()
    service = units.asked(machine, units.NAME)
    current = releases.marked(machine, releases.CURRENT)
    previous = releases.marked(machine, releases.PREVIOUS)
    error, why = units.last_error(machine, units.NAME) if service else (None, "no service is installed")
    if as_json:
        shown = {
            "service": service and {name: getattr(service, name) for name in service.__struct_fields__},
            "release": current and current.version,
            "previous": previous and previous.version,
            "last_error": error,
            "last_error_unknown": None if error else why,
        }
        typer.echo(json.dumps(shown, indent=1))
    elif service is None:
        typer.echo('no service edged here (or no systemd): sudo "$(command -v edged)" install')
    else:
        ended = f", ended with {service.exit_status}" if service.exit_status else ""
        version = f", edged {current.version}" if current else ""
        typer.echo(
            f"service     {service.active} ({service.sub}){ended}, {service.restarts} restarts{version}"
        )
        typer.echo(f"since       {service.since or 'not known'}")
        typer.echo(f"now         {service.text or 'nothing said'}")
        typer.echo(f"last error  {error or why}")
    if service is None:
        raise typer.Exit(EXIT_NOT_INSTALLED)
    if service.active != "active":
        raise typer.Exit(EXIT_NOT_RUNNING)
