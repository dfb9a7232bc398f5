"""`edged-coordinator simulate`: the boards of a fleet file in virtual time, by the real decisions."""

import csv
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import structs

from coordinator.commands import _fleets, _show, exits
from coordinator.commands._surroundings import JsonOption, pairs, told
from coordinator.commands.exits import CommandError
from coordinator.simulator.experiments import Plan, closed_line, played, settings_of
from coordinator.simulator.fleetfile import FleetFile, shipped
from coordinator.simulator.tally import RoundFigures, tally
from coordinator.simulator.world import World
from coordinator.updates import Updates, updates
from edged.orders import round_name

if TYPE_CHECKING:
    from coordinator.simulator.training import RealTraining

SHOWN = 6
"""Odd things that are told."""


@told
def simulate(
    fleet: Annotated[
        str | None, typer.Argument(metavar="FLEET", help="A fleet file, or the name of one that ships.")
    ] = None,
    *,
    policy: Annotated[
        str | None,
        typer.Option(
            "--policy", help="Else the file's, else adaptive (in asp omnilearn).", show_default=False
        ),
    ] = None,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the policy; may be repeated."),
    ] = None,
    w_e: Annotated[
        float | None, typer.Option("--w-e", min=0, max=1, help="Weight of energy.", show_default=False)
    ] = None,
    rounds: Annotated[int | None, typer.Option("--rounds", min=1, show_default=False)] = None,
    budget: Annotated[
        int | None, typer.Option("--budget", min=1, help="Samples a round.", show_default=False)
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", min=0, show_default=False)] = None,
    regime: Annotated[
        str | None, typer.Option("--regime", help="pma, ddp, hfl-ddp or asp.", show_default=False)
    ] = None,
    noise: Annotated[
        float | None,
        typer.Option("--noise", min=0, max=0.5, help="Of every board's time and watts.", show_default=False),
    ] = None,
    steady_state: Annotated[
        bool, typer.Option("--steady-state", help="Where shares settle with exact costs; no rounds.")
    ] = False,
    train: Annotated[
        str | None,
        typer.Option(
            "--train", metavar="TASK", help="Train this task for real meanwhile.", show_default=False
        ),
    ] = None,
    pool: Annotated[
        Path | None, typer.Option("--pool", help="The task's data; else what ships.", show_default=False)
    ] = None,
    csv_file: Annotated[Path | None, typer.Option("--csv", help="Write the rounds there, too.")] = None,
    list_fleets: Annotated[bool, typer.Option("--list", help="List the fleets that ship.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Run a fleet of virtual boards with the real coordinator's decisions; all its joules are simulated ones.

    Boards, noise, throttling, dropouts, policy, rounds and seed come from the fleet file; options say
    otherwise. With --train the learning is real: held-out figures over virtual seconds and joules.

    Example: edged-coordinator simulate paper-eleven --w-e 0.25 --noise 0.05
    """
    if list_fleets:
        _fleets.show_list(as_json)
        return
    if fleet is None:
        raise CommandError(f"which fleet? a file, or one of {', '.join(shipped())}", exits.USAGE)
    found = _fleets.with_noise(_fleets.read(fleet), noise)
    found = structs.replace(
        found,
        **{
            name: value
            for name, value in (
                ("policy", policy),
                ("w_e", w_e),
                ("rounds", rounds),
                ("budget", budget),
                ("seed", seed),
            )
            if value is not None
        },
    )
    if regime is not None:
        found = _fleets.with_regime(found, regime)
    if found.regime == "asp" and policy is None and found.policy == "adaptive":
        policy = "omnilearn"
    if policy is not None:
        found = structs.replace(found, policy=policy, policy_options={})
    plan = _fleets.plan(found, pairs(option or (), "--option"))
    if steady_state:
        if train is not None:
            raise CommandError("--train needs rounds: not with --steady-state", exits.USAGE)
        result = _fleets.compared(found, [plan], steady_state=True, rounds=found.rounds, seed=found.seed)
        _fleets.answer(result, csv_file, None, as_json)
        return
    world = run(found, plan, train, pool, quiet=as_json)
    answer(found, plan, world, csv_file, as_json)


def run(fleet: FleetFile, plan: Plan, train: str | None, pool: Path | None, quiet: bool) -> World:
    """The whole run. CommandError where it cannot be done."""
    from coordinator.simulator.training import TrainingError

    settings = settings_of(fleet, plan, fleet.rounds, fleet.seed, fleet.regime)
    last = [0]

    def told_round(table: str, row: dict[str, Any]) -> None:
        if table == "round" and not quiet and _show.is_terminal() and row["round"] > last[0]:
            last[0] = row["round"]
            _show.progress(f"{round_name(fleet.regime)} {row['round']} of {fleet.rounds}")

    try:
        with ExitStack() as stack:
            training = None
            if train is not None:
                folder = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="edged-simulate-")))
                training, settings, fleet = _training(train, pool, settings, fleet, folder)
                stack.enter_context(training)
            return played(fleet, plan, settings, training=training, told=told_round)
    except (ValueError, TrainingError) as error:
        raise CommandError(str(error)) from None


def _training(
    task: str, pool: Path | None, settings: Any, fleet: FleetFile, folder: Path
) -> "tuple[RealTraining, Any, FleetFile]":
    from coordinator.simulator.training import Lesson, RealTraining
    from edged import tasks

    if fleet.regime not in ("pma", "asp"):
        raise CommandError(f"--train trains pma and asp, not {fleet.regime}", exits.USAGE)
    folders = (str(tasks.FOLDER),)
    if task.endswith(".py"):
        path = Path(task).resolve()
        task, folders = path.stem, (str(path.parent),)
    lesson = Lesson(task, pool or tasks.BUILTIN, folders=folders)
    samples = lesson.samples
    fleet = structs.replace(fleet, pool_samples=samples, budget=min(fleet.budget, samples))
    defaults = lesson.defaults
    if fleet.regime == "asp":  # gradients are applied without the task's own momentum
        defaults = structs.replace(defaults, momentum=0.0)
    settings = structs.replace(
        settings,
        task=task,
        budget=fleet.budget,
        learning_rate=defaults.learning_rate,
        optimizer=defaults.optimizer,
        momentum=defaults.momentum,
        weight_decay=defaults.weight_decay,
        evaluate=True,
    )
    return RealTraining(lesson, fleet.seed, folder), settings, fleet


def answer(fleet: FleetFile, plan: Plan, world: World, csv_file: Path | None, as_json: bool) -> None:
    """The rounds as a table or JSON, and what they come to."""
    rounds = tally(world.rows)
    settle = min(2, len(rounds) - 1)
    line = closed_line(plan.label, world, settle)
    if csv_file is not None:
        _write(rounds, csv_file)
    pushed = _pushed(fleet, world)
    if as_json:
        _show.json(
            {
                "fleet": fleet.name,
                "basis": "simulated",
                "settings": world.settings,
                "settled": line,
                "virtual_seconds": world.now,
                "rounds": rounds,
                **({"updates": pushed} if pushed is not None else {}),
            }
        )
        return
    trained = any(found.held_out for found in rounds)
    turn, free = round_name(fleet.regime), pushed is not None  # then no period has a makespan
    head = [
        turn,
        "until",
        "in all" if free else "makespan",
        "joules",
        "waiting",
        *(["loss", "accuracy"] if trained else []),
    ]
    _show.table(
        f"{fleet.name}: {plan.label}, {len(fleet.board)} boards, {world.settings.budget:,} samples a {turn} "
        "(virtual time, simulated joules)",
        [*head, "shares"],
        [_cells(found, trained, free=free) for found in rounds],
        ">" * len(head) + "<",
    )
    took = "" if free else f"makespan {_show.duration(line.makespan_seconds)} (median), "
    typer.echo(
        f"after {turn} {settle}: {took}{_show.figure(line.joules, 4)} J a {turn} "
        f"({_show.figure(line.wait_joules, 3)} waiting), wait share {_show.percent(line.wait_share)}, "
        f"CV {line.variation:.3f}, {line.reallocations} reallocations"
    )
    if pushed is not None:
        ages = ", ".join(f"{age}: {n}" for age, n in pushed.all_ages.items())
        _show.line(f"updates by board {_show.shares(pushed.counts)}; by their age in versions {ages}")
    for note in world.notes[:SHOWN]:
        typer.echo(f"{note.board}: {note.text}")
    if csv_file is not None:
        _show.progress(f"written: {csv_file}")


def _pushed(fleet: FleetFile, world: World) -> Updates | None:
    """Of a run with asynchronous updates."""
    if world.settings.regime != "asp":
        return None
    return updates(world.rows.get("push", ()), [board.id for board in fleet.board])


def _cells(found: RoundFigures, trained: bool, *, free: bool) -> list[str]:
    held_out = found.held_out
    return [
        str(found.round),
        _show.duration(found.until_seconds),
        _show.duration(found.wall_seconds if free else found.makespan_seconds),
        _show.figure(found.total_joules, 4),
        _show.percent(found.wait_share),
        *([_show.figure(held_out.get("loss")), _show.percent(held_out.get("accuracy"))] if trained else []),
        _show.shares(found.shares),
    ]


def _write(rounds: tuple[RoundFigures, ...], path: Path) -> None:
    figures = sorted({name for found in rounds for name in found.held_out})
    parts = sorted(rounds[0].joules)
    try:
        with path.open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(
                ["round", "until_seconds", "makespan_seconds", "wall_seconds", "total_joules"]
                + [f"{part}_joules" for part in parts]
                + ["wait_share", "variation", "accepted", *(f"held_out_{name}" for name in figures)]
            )
            for r in rounds:
                writer.writerow(
                    [r.round, r.until_seconds, r.makespan_seconds, r.wall_seconds, r.total_joules]
                    + [r.joules[part] for part in parts]
                    + [r.wait_share, r.variation, r.accepted, *(r.held_out.get(name) for name in figures)]
                )
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}; give another --csv") from None
