"""`edged-coordinator install`, `provision` and `uninstall`: a fleet's first hour, and its end."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.commands._surroundings import PROGRAM, JsonOption

RootOption = Annotated[Path, typer.Option("--root", help="The image below it.", metavar="DIR")]
DryOption = Annotated[bool, typer.Option("--dry-run", help="Tell what would be done.")]
HostOption = Annotated[
    str, typer.Option("--host", help="What boards call this machine; default its address.")
]


def install(
    *,
    fleet: Annotated[str, typer.Option("--fleet", help="The fleet's name.")] = "main",
    port: Annotated[int, typer.Option("--port", help="The broker's port.", min=1, max=65535)] = 1883,
    torch: Annotated[
        str, typer.Option("--torch", help="auto, no, or pip's word for one: for held-out figures.")
    ] = "no",
    wheel: Annotated[
        Path | None, typer.Option("--wheel", help="Install this edged, not the running one.", metavar="FILE")
    ] = None,
    wheels: Annotated[
        Path | None, typer.Option("--wheels", help="Take packages from this folder only.", metavar="DIR")
    ] = None,
    root: RootOption = Path("/"),
    dry_run: DryOption = False,
    as_json: JsonOption = False,
) -> None:
    """Set the coordinator up as a service, and mosquitto with passwords and access rules beside it.

    Needs root. Exit statuses: 1 failed, 69 no systemd or no mosquitto, 78 settings.

    Example: edged-coordinator install --fleet attic
    As root that is: sudo "$(command -v edged-coordinator)" install --fleet attic
    """
    from coordinator import install as steps
    from edged.commands._steps import carried_out

    wish = steps.Wish(
        fleet=fleet, port=port, torch=torch, wheel=wheel, wheels=str(wheels.resolve()) if wheels else ""
    )
    carried_out(
        "install",
        lambda machine: steps.install(machine, wish),
        root=root,
        dry=dry_run,
        as_json=as_json,
        program=PROGRAM,
    )


def provision(
    board: Annotated[str, typer.Argument(help="The new board's id.")],
    *,
    again: Annotated[bool, typer.Option("--again", help="A new password for a board that has one.")] = False,
    host: HostOption = "",
    root: RootOption = Path("/"),
    dry_run: DryOption = False,
    as_json: JsonOption = False,
) -> None:
    """Give a board a password and rules of its own, and print the line to run there.

    Example: edged-coordinator provision pi4 --host 192.0.2.1
    """
    from coordinator import install as steps
    from edged.commands._steps import carried_out

    carried_out(
        "provision",
        lambda machine: steps.provision(machine, board, again=again, host=host),
        root=root,
        dry=dry_run,
        as_json=as_json,
        program=PROGRAM,
    )


def uninstall(
    *,
    purge: Annotated[
        bool, typer.Option("--purge", help="Settings, runs, passwords and accounts too.")
    ] = False,
    root: RootOption = Path("/"),
    dry_run: DryOption = False,
    as_json: JsonOption = False,
) -> None:
    """Stop the service, and take it and mosquitto's settings for the fleet away; mosquitto stays.

    Example: edged-coordinator uninstall --purge
    """
    from coordinator import install as steps
    from edged.commands._steps import carried_out

    carried_out(
        "uninstall",
        lambda machine: steps.uninstall(machine, purge),
        root=root,
        dry=dry_run,
        as_json=as_json,
        program=PROGRAM,
    )
