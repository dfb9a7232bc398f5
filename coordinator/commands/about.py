"""Commands that need nothing but the program itself: `config` and `version`."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.commands import _show
from coordinator.commands._surroundings import ConfigOption, JsonOption, told


@told
def config(
    *,
    check: Annotated[
        Path | None, typer.Option("--check", help="Check this file instead.", show_default=False)
    ] = None,
    used: Annotated[bool, typer.Option("--used", help="The settings that commands would use now.")] = False,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Print a commented coordinator.toml with all defaults, or check a file.

    Example: edged-coordinator config | sudo tee /etc/edged/coordinator.toml
    """
    from coordinator.config import SAMPLE, Config, load

    if check is not None or used or as_json:
        found = load(check or config) if check is not None or used else Config()
        if check is not None and not as_json:
            typer.echo(f"{check}: good (fleet {found.fleet}, broker {found.broker.host}:{found.broker.port})")
        else:
            _show.json(found)
        return
    typer.echo(SAMPLE, nl=False)


@told
def version(as_json: JsonOption = False) -> None:
    """Tell the version of edged, of the protocol, and of the libraries that matter.

    Example: edged-coordinator version --json
    """
    import importlib.metadata
    import platform

    import edged
    from edged.messages import PROTOCOL_VERSIONS

    libraries: dict[str, str | None] = {}
    for name in ("torch", "numpy", "paho-mqtt", "msgspec", "matplotlib", "amqtt"):
        try:
            libraries[name] = importlib.metadata.version(name)
        except importlib.metadata.PackageNotFoundError:
            libraries[name] = None
    if as_json:
        _show.json(
            {
                "edged": edged.__version__,
                "protocols": PROTOCOL_VERSIONS,
                "python": platform.python_version(),
                "libraries": libraries,
            }
        )
        return
    spoken = ", ".join(str(number) for number in PROTOCOL_VERSIONS)
    typer.echo(
        f"edged-coordinator {edged.__version__}, protocol {spoken}, Python {platform.python_version()}"
    )
    typer.echo(", ".join(f"{name} {found or 'not installed'}" for name, found in libraries.items()))
