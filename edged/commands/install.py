"""`edged install`: sets this board, or an image of one, up as a service; again, it upgrades or repairs."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any, Optional

import typer

app = typer.Typer()

# typer reads these at run time, on Python 3.10 too.
OptionalPath = Optional[Path]  # noqa: UP045
OptionalText = Optional[str]  # noqa: UP045
OptionalTexts = Optional[list[str]]  # noqa: UP045


@app.command("install")
def install(
    *,
    broker: Annotated[OptionalText, typer.Option(help="The MQTT broker.", metavar="HOST[:PORT]")] = None,
    board: Annotated[OptionalText, typer.Option(help="This board's id; default the host name.")] = None,
    fleet: Annotated[OptionalText, typer.Option(help="The fleet it belongs to.")] = None,
    pool: Annotated[
        OptionalTexts,
        typer.Option(help="A pool, again for each; PATH builtin: shipped data.", metavar="NAME=PATH"),
    ] = None,
    username: Annotated[
        OptionalText, typer.Option(help="For the broker; with a password, default the board's id.")
    ] = None,
    password_file: Annotated[
        OptionalPath, typer.Option(help="A file with the broker's password; - reads it.", metavar="FILE|-")
    ] = None,
    energy_group: Annotated[
        str, typer.Option(help="yes: the service may read the processor's energy counters.", metavar="yes|no")
    ] = "yes",
    torch: Annotated[
        str, typer.Option(help="auto: what fits the board; no; or what pip is to install.", metavar="WHICH")
    ] = "auto",
    rollback: Annotated[bool, typer.Option("--rollback", help="Back to the release before.")] = False,
    wheel: Annotated[
        OptionalPath, typer.Option(help="Install this edged, not the running one.", metavar="FILE")
    ] = None,
    wheels: Annotated[
        OptionalPath, typer.Option(help="Take packages from this folder only.", metavar="DIR")
    ] = None,
    root: Annotated[Path, typer.Option(help="Set up the image below it.", metavar="DIR")] = Path("/"),
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Tell what would be done.")] = False,
    as_json: Annotated[bool, typer.Option("--json", help="What was done as a JSON object.")] = False,
) -> None:
    """Set this board up as a service that starts with it. Again: an upgrade, or a repair.

    Settings that somebody edited are left as they are. Exit statuses: 1 failed, 69 no systemd, 78 settings.

    Example: sudo "$(command -v edged)" install --broker 192.0.2.1 --board pi4 --pool mnist=/srv/mnist
    """
    from edged.commands._steps import carried_out, fail
    from edged.config import EXIT_CONFIG, ConfigError, broker_of, pool_of
    from edged.install import board as steps

    if energy_group not in {"yes", "no"}:
        raise fail("install", f"--energy-group {energy_group}: yes or no", 2)
    tables: dict[str, dict[str, Any]] = {}
    try:
        password = _password(password_file)
        if broker is not None:
            tables["broker"] = broker_of(broker)
        if password and username is None:
            username = board
        if username is not None:
            tables.setdefault("broker", {})["username"] = username
        given = {"id": board, "fleet": fleet}
        if found := {key: value for key, value in given.items() if value is not None}:
            tables["board"] = found
        for name, table in (pool_of(text) for text in pool or ()):
            tables[f"data.{name}"] = table
    except ConfigError as error:
        raise fail("install", str(error), EXIT_CONFIG) from None
    wish = steps.Wish(
        tables=tables,
        password=password,
        energy_group=energy_group == "yes",
        torch=torch,
        wheel=wheel,
        wheels=str(wheels.resolve()) if wheels else "",
    )
    carried_out(
        "install",
        lambda machine: steps.roll_back(machine) if rollback else steps.install(machine, wish),
        root=root,
        dry=dry_run,
        as_json=as_json,
    )


def _password(file: Path | None) -> str:
    """The first line of the file, or of standard input. Raises ConfigError."""
    import sys

    from edged.config import ConfigError

    if file is None:
        return ""
    try:
        text = sys.stdin.readline() if str(file) == "-" else file.read_text()
    except (OSError, UnicodeDecodeError) as error:
        raise ConfigError(f"--password-file {file}: {error}") from None
    lines = text.splitlines()
    if not lines or not lines[0]:
        raise ConfigError(f"--password-file {file}: no password in its first line")
    return lines[0]
