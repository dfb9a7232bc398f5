"""`edged-coordinator`: mounts the commands. Each stands in a file of its own under `commands`."""

import typer

from coordinator.commands import (
    about,
    advise,
    boards,
    compare,
    control,
    dashboards,
    demo,
    doctor,
    fleet,
    install,
    replay,
    rounds,
    run,
    serve,
    simulate,
    status,
    telemetry,
    top,
)

app = typer.Typer(
    name="edged-coordinator",
    help="Give unlike boards their shares of the training, merge the models, and show what it costs.\n\n"
    "Example: edged-coordinator demo",
    epilog="Exit statuses: 0 done, 1 failed, 2 usage, 3 no coordinator answers, 4 it refuses, 69 no broker, "
    "78 configuration, 130 Ctrl-C.",
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
    rich_markup_mode="rich",
)

STARTING = "Starting"
RUNNING = "While a run goes on"
LOOKING = "Looking"
SETTING_UP = "Setting up"
TRYING = "Without boards"
for command, panel in (
    (demo.demo, STARTING),
    (run.run, STARTING),
    (serve.serve, STARTING),
    (control.weights, RUNNING),
    (control.policy, RUNNING),
    (control.pause, RUNNING),
    (control.resume, RUNNING),
    (control.stop, RUNNING),
    (boards.boards, RUNNING),
    (status.status, LOOKING),
    (top.top, LOOKING),
    (rounds.rounds, LOOKING),
    (rounds.runs, LOOKING),
    (compare.compare, LOOKING),
    (advise.advise, LOOKING),
    (replay.replay, LOOKING),
    (simulate.simulate, TRYING),
    (doctor.doctor, LOOKING),
    (install.install, SETTING_UP),
    (telemetry.telemetry, SETTING_UP),
    (dashboards.dashboards, SETTING_UP),
    (install.provision, SETTING_UP),
    (install.uninstall, SETTING_UP),
    (about.config, "About"),
    (about.version, "About"),
):
    app.command(rich_help_panel=panel)(command)
app.add_typer(fleet.app, name="fleet", rich_help_panel=TRYING)


def main() -> None:
    """The entry point of the console script."""
    app()
