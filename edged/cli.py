"""The `edged` command: finds its sub-commands by listing `edged.commands`.

Each of them imports what it needs when it runs, so that help is quick on a slow board.
"""

import importlib
import os
import pkgutil
import sys
from typing import Annotated

import typer

from edged import __version__, commands
from edged.commands import _exits


def build() -> typer.Typer:
    """The command line with every sub-command there is."""
    app = typer.Typer(
        help="Train on this board as its fleet's coordinator orders, and report seconds and joules.",
        epilog="Example: edged run --board pi4 --broker 192.0.2.1 --pool mnist=/data/mnist",
        no_args_is_help=True,
        add_completion=False,
        pretty_exceptions_enable=False,
    )
    app.callback()(_global)
    app.command("version")(version)
    for module in sorted(found.name for found in pkgutil.iter_modules(commands.__path__)):
        if module.startswith("_"):
            continue
        sub: typer.Typer = importlib.import_module(f"{commands.__name__}.{module}").app
        alone = len(sub.registered_commands) == 1 and not sub.registered_groups
        if alone and sub.registered_callback is None:
            # `edged run`, not `edged run run`.
            app.registered_commands.append(sub.registered_commands[0])
        else:
            app.add_typer(sub, name=module)
    return app


def main() -> None:
    """Run the command line. A fault is one line and status 70, with EDGED_TRACEBACK=1 its traceback."""
    try:
        build()()
    except Exception as error:
        if os.environ.get("EDGED_TRACEBACK"):
            raise
        told = f"{type(error).__name__}: {error} (EDGED_TRACEBACK=1 shows where)"
        sys.stderr.write(f"edged: a fault of edged: {told}\n")
        # What could not be written is still buffered, and must not complain at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
        sys.exit(_exits.FAULT)


def version(
    as_json: Annotated[bool, typer.Option("--json", help="As a JSON object.")] = False,
) -> None:
    """Print the version. Example: edged version --json"""
    if as_json:
        import json

        from edged.messages import PROTOCOL_VERSIONS

        typer.echo(json.dumps({"edged": __version__, "protocols": list(PROTOCOL_VERSIONS)}))
    else:
        typer.echo(f"edged {__version__}")


def _say_version(asked: bool) -> None:
    if asked:
        version()
        raise typer.Exit


def _global(
    shown: Annotated[
        bool, typer.Option("--version", help="Print the version.", is_eager=True, callback=_say_version)
    ] = False,
) -> None: ...
