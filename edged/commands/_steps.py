"""How install and uninstall show their steps, and how they end where one cannot be done."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import typer

from edged.install.machine import InstallError, Machine

EXIT_INTERRUPTED = 130


def carried_out(
    command: str,
    steps: Callable[[Machine], Iterator[str]],
    *,
    root: Path,
    dry: bool,
    as_json: bool,
    program: str = "edged",
) -> None:
    """Each change as a line on standard error while it goes on, what came of it on standard output."""
    if os.geteuid() != 0 and not dry:
        text = (
            f'this needs root: sudo "$(command -v {program})" {command} …  (--dry-run shows what it would do)'
        )
        raise fail(command, text, 1, program)
    begun = time.monotonic()
    changes: list[str] = []
    found: list[str] = []

    def tell(line: str) -> None:
        changes.append(line)
        typer.echo(f"{time.monotonic() - begun:6.1f} s  {'would ' if dry else ''}{line}", err=True)

    machine = Machine(root.resolve(), dry=dry, tell=tell)
    try:
        for line in steps(machine):
            found.append(line)
            if not as_json:
                typer.echo(line)
    except InstallError as error:
        raise fail(command, str(error), error.status, program) from None
    except OSError as error:
        raise fail(
            command, f"{error.filename or root}: {error.strerror}; running it again goes on", 1, program
        ) from None
    except KeyboardInterrupt:
        raise fail(command, "interrupted; running it again goes on", EXIT_INTERRUPTED, program) from None
    if as_json:
        typer.echo(json.dumps({"dry_run": dry, "changes": changes, "found": found}, indent=1))


def fail(command: str, text: str, status: int, program: str = "edged") -> typer.Exit:
    """Say the fault; the exit to raise."""
    typer.echo(f"{program} {command}: {text}", err=True)
    return typer.Exit(status)
