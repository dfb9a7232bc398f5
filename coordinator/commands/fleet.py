"""`edged-coordinator fleet list|show|from-run`: fleet files for the simulator, also out of readings."""

from pathlib import Path
from typing import Annotated

import typer

from coordinator.commands import _fleets, _recorded, _show
from coordinator.commands._surroundings import ConfigOption, JsonOption, StoreOption, told
from coordinator.commands.exits import CommandError

app = typer.Typer(
    help="Fleet files: virtual boards for `simulate` and `compare`.\n\n"
    "Example: edged-coordinator fleet show paper-eleven",
    no_args_is_help=True,
)


@app.command("list")
@told
def list_(*, as_json: JsonOption = False) -> None:
    """List the fleets that ship.

    Example: edged-coordinator fleet list
    """
    _fleets.show_list(as_json)


@app.command("show")
@told
def show(
    fleet: Annotated[str, typer.Argument(metavar="FLEET", help="A name or a file.")],
    *,
    as_json: JsonOption = False,
) -> None:
    """Show the boards of a fleet.

    Example: edged-coordinator fleet show paper-eleven
    """
    found = _fleets.read(fleet)
    if as_json:
        _show.json(found)
        return
    rows = [
        [
            b.id,
            _show.figure(b.samples_per_second, 4),
            _show.figure(b.active_watts),
            _show.figure(b.waiting_watts),
            _show.figure(1000 * b.active_watts / b.samples_per_second, 3),
            _show.percent(b.noise) if b.noise else "",
            b.silo or "",
            ", ".join(f"{key} {value}" for key, value in b.sourced.items()),
        ]
        for b in found.board
    ]
    head = ["board", "samples/s", "W active", "W waiting", "mJ/sample", "noise", "silo", "from"]
    _show.table(f"{found.name}: {found.about}", head, rows, "<>>>>><<")
    typer.echo(f"{found.budget:,} samples a round, batch {found.batch}, policy {found.policy}")


@app.command("from-run")
@told
def from_run(
    run: Annotated[str, typer.Argument(help="A recorded run.")],
    *,
    out: Annotated[
        Path | None,
        typer.Option("--out", help="Write it there, not to the terminal.", show_default=False),
    ] = None,
    store: StoreOption = None,
    config: ConfigOption = None,
    as_json: JsonOption = False,
) -> None:
    """Fit a fleet file to a run's readings: speed, watts, fixed cost, noise, each with its uncertainty.

    Example: edged-coordinator fleet from-run monday --out monday.toml
    """
    from coordinator import fitting
    from coordinator.situation import UntoldError, situation

    with _recorded.opened(_recorded.store_folder(store, config)) as history:
        found = _recorded.recorded(history, run)
    try:
        where = situation(found)
    except UntoldError as error:
        raise CommandError(str(error)) from None
    if out is not None:
        try:
            out.write_text(fitting.toml(where))
        except OSError as error:
            raise CommandError(f"{out}: {error.strerror}; give another --out") from None
        _show.progress(f"written: {out}")
    if as_json:
        _show.json(fitting.fitted(where))
    elif out is None:
        typer.echo(fitting.toml(where), nl=False)
