"""The `edged` command: finds its sub-commands by listing `edged.commands`.

Each of them imports what it needs when it runs, so that help is quick on a slow board.
"""

import importlib
import pkgutil
from typing import Annotated

import typer

from edged import __version__, commands


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
    """The console script."""
    build()()


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
