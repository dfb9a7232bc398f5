"""`edged doctor`: everything that a board needs, line by line, each with the way out."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Optional

import typer

if TYPE_CHECKING:
    from edged.checks import Finding

app = typer.Typer()

# typer reads it at run time, on Python 3.10 too.
OptionalPath = Optional[Path]  # noqa: UP045

EXIT_FAILED = 1
EXIT_INTERRUPTED = 130


@app.command("doctor")
def doctor(
    *,
    config: Annotated[
        OptionalPath, typer.Option(help="Settings; default /etc/edged/edged.toml.", metavar="FILE")
    ] = None,
    root: Annotated[
        Path,
        typer.Option(help="Another root: a folder, or a recorded machine's JSON file.", metavar="DIR|FILE"),
    ] = Path("/"),
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON list.")] = False,
) -> None:
    """Look at all that this board needs: sensors, clock, broker, torch, data, permissions, disk, memory.

    It changes nothing. Below another root only the sensors and the memory are looked at.
    Exit status 1 where something fails. Example: edged doctor --config /etc/edged/edged.toml
    """
    import json

    import msgspec

    from edged.checks import written
    from edged.checks._rounds import examine
    from edged.checks._working import Working

    findings: list[Finding] = []
    try:
        with Working() as working:
            for finding in examine(config, root, working.on):
                if not as_json:
                    with working.aside():
                        typer.echo(written(finding, findings[-1].way_out if findings else ""))
                findings.append(finding)
    except KeyboardInterrupt:
        raise typer.Exit(EXIT_INTERRUPTED) from None
    if as_json:
        typer.echo(json.dumps(msgspec.to_builtins(findings), indent=1))
    if any(finding.verdict == "fail" for finding in findings):
        raise typer.Exit(EXIT_FAILED)
