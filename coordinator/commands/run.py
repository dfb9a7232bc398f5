"""`edged-coordinator run`: submits a run to the live coordinator and follows it, or serves it itself."""

import logging
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, cast

import typer
from msgspec import ValidationError, structs

from coordinator.cleaning import Lines
from coordinator.client import Client, NobodyAnswersError, NoBrokerError, who
from coordinator.commands import _show, exits
from coordinator.commands._follow import Fetch, Follower
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    client_of,
    outside,
    pairs,
    settings,
    told,
)
from coordinator.commands.exits import CommandError
from coordinator.config import Config
from coordinator.wording import dotted
from edged.controls import GetRounds, GetStatus, RunSettings, Start

if TYPE_CHECKING:
    from coordinator.controller import Weights
    from coordinator.server import Server

ACCOUNT_SECONDS = 3.0
MEASURE_SECONDS = 60.0
OPTIONS = {
    "learning_rate": "lr",
    "deadline_floor_seconds": "deadline-floor",
    "deadline_limit_seconds": "deadline-limit",
    "policy_options": "option",
    "options": "task-option",
}
"""Of settings that are called otherwise on the command line."""
LEARNING, FLEET, PLACE = "Learning set-up", "Boards and deadlines", "Where"


def _option(name: str, help: str, panel: str | None = None, **more: Any) -> Any:
    return typer.Option(name, help=help, rich_help_panel=panel, show_default=more.pop("show", False), **more)


@told
def run(
    context: typer.Context,
    *,
    task: Annotated[str, _option("--task", "A task's name, or a .py file when serving in the foreground.")],
    pool: Annotated[str, _option("--pool", "Name of the data that the boards share.")],
    budget: Annotated[int, _option("--budget", "Samples a round, over all boards.", min=1)],
    rounds: Annotated[int, _option("--rounds", "So many times the budget ends the run.", min=1)],
    policy: Annotated[str, _option("--policy", "Who gives the shares.", show=True)] = "adaptive",
    option: Annotated[list[str] | None, _option("--option", "KEY=VALUE of the policy; repeatable.")] = None,
    w_e: Annotated[float | None, _option("--w-e", "Weight of energy, 0 to 1; else 0.")] = None,
    w_t: Annotated[float | None, _option("--w-t", "Weight of time; else 1 - w_e.")] = None,
    regime: Annotated[str, _option("--regime", "pma, ddp, hfl-ddp or asp.", LEARNING, show=True)] = "pma",
    seed: Annotated[int, _option("--seed", "Of everything random.", LEARNING, min=0, show=True)] = 1,
    batch: Annotated[int | None, _option("--batch", "A board's; in ddp all ranks'.", LEARNING, min=1)] = None,
    lr: Annotated[float | None, _option("--lr", "Learning rate; else the task's.", LEARNING)] = None,
    optimizer: Annotated[str | None, _option("--optimizer", "sgd, adam or adamw.", LEARNING)] = None,
    momentum: Annotated[float | None, _option("--momentum", "Of sgd.", LEARNING)] = None,
    weight_decay: Annotated[float | None, _option("--weight-decay", "Of the optimizer.", LEARNING)] = None,
    optimizer_state: Annotated[
        str, _option("--optimizer-state", "At round ends: reset, keep or average.", LEARNING, show=True)
    ] = "reset",
    model: Annotated[str | None, _option("--model", "Of the task: --task-option model=.", LEARNING)] = None,
    task_option: Annotated[
        list[str] | None, _option("--task-option", "KEY=VALUE of the task; repeatable.", LEARNING)
    ] = None,
    boards: Annotated[str | None, _option("--boards", "Only these, comma-separated.", FLEET)] = None,
    min_boards: Annotated[int, _option("--min-boards", "Begin with so many.", FLEET, min=1, show=True)] = 1,
    strict_boards: Annotated[bool, _option("--strict-boards", "Refuse if one cannot.", FLEET)] = False,
    fixed_cost: Annotated[str, _option("--fixed-cost", "none, or fit.", FLEET, show=True)] = "none",
    energy_window: Annotated[
        str, _option("--energy-window", "Joules of: compute or round.", FLEET, show=True)
    ] = "compute",
    deadline_floor: Annotated[
        float, _option("--deadline-floor", "Shortest deadline in seconds.", FLEET, show=True)
    ] = 30.0,
    deadline_limit: Annotated[
        float, _option("--deadline-limit", "Longest deadline in seconds.", FLEET, show=True)
    ] = 3600.0,
    evaluate: Annotated[bool, typer.Option(help="Held-out figures after each round.")] = True,
    name: Annotated[str | None, _option("--name", "Of the run; else task and time.")] = None,
    detach: Annotated[bool, _option("--detach", "Submit and do not follow.")] = False,
    store: Annotated[Path | None, _option("--store", "Folder of runs, in the foreground.", PLACE)] = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Start a run on the live coordinator and follow it; where none answers, serve it in the foreground.

    With --json each line is a document: rounds as they end, then how the run ended.

    Example: edged-coordinator run --task digits --pool digits --budget 720 --rounds 12 --w-e 0.25
    """
    weights = _weights(policy, w_e, w_t)
    wanted = checked(
        task=task,
        pool=pool,
        budget=budget,
        rounds=rounds,
        regime=regime,
        policy=policy,
        policy_options=pairs(option or (), "--option"),
        w_t=weights.w_t,
        w_e=weights.w_e,
        batch=batch,
        learning_rate=lr,
        optimizer=optimizer,
        momentum=momentum,
        weight_decay=weight_decay,
        optimizer_state=optimizer_state,
        options=pairs(task_option or (), "--task-option") | ({"model": model} if model else {}),
        seed=seed,
        boards=[part.strip() for part in boards.split(",") if part.strip()] if boards else [],
        min_boards=min_boards,
        strict_boards=strict_boards,
        fixed_cost=fixed_cost,
        energy_window=energy_window,
        deadline_floor_seconds=deadline_floor,
        deadline_limit_seconds=deadline_limit,
        evaluate=evaluate,
        name=name,
    )
    found = settings(config, broker, fleet)
    if store is not None:
        found = structs.replace(found, store=structs.replace(found.store, folder=str(store)))
    with client_of(outside(context), found) as client:
        try:
            follower = submitted(client, wanted, as_json)
        except NobodyAnswersError as error:
            silence = str(error)
        else:
            follow(client, follower, detach)
            return
    if detach:
        raise NobodyAnswersError(silence)
    _show.progress(f"{silence.partition('; ')[0]}: serving this run here")
    in_the_foreground(context, found, wanted, as_json)


def _weights(policy: str, w_e: float | None, w_t: float | None) -> "Weights":
    from coordinator.controller import NAMED_WEIGHTS, Weights

    named = NAMED_WEIGHTS.get(policy)
    if named is not None and (w_e is not None or w_t is not None):
        raise CommandError(
            f"--policy {policy} has w_t {named.w_t:g} and w_e {named.w_e:g}: leave the weights out, "
            "or take --policy adaptive",
            exits.USAGE,
        )
    try:
        return named or Weights.of(w_e, w_t)
    except ValueError as error:
        raise CommandError(str(error), exits.USAGE) from None


def checked(**values: Any) -> RunSettings:
    """Settings of plain values. Raises CommandError naming the option."""
    import msgspec

    try:
        return msgspec.convert(values, RunSettings)
    except ValidationError as error:
        where, _, what = dotted(str(error)).partition(": ")
        field = where.partition("[")[0].partition(".")[0]
        raise CommandError(f"--{OPTIONS.get(field, field).replace('_', '-')}: {what}", exits.USAGE) from None


def submitted(client: Client, wanted: RunSettings, as_json: bool) -> Follower:
    """Hand the run to the live coordinator. Raises NobodyAnswersError, NotDoneError."""
    reply = client.demand(Start(wanted))
    name = str(reply.data["run"])
    if as_json:
        _show.json_line({"event": "submitted", "run": name, "text": reply.text})
    else:
        _show.line(reply.text)
    target = wanted.budget * wanted.rounds
    fetch: Fetch = lambda last: client.demand(GetRounds(name, last, brief=True)).data  # noqa: E731
    return Follower(name, target, fetch, as_json, wanted.evaluate)


def follow(client: Client, follower: Follower, detach: bool) -> None:
    """Until the run is over. Ctrl-C ends the following alone."""
    if detach:
        return
    try:
        while not follower.done:
            told = client.wait(1.0)
            follower.presence(f"the broker at {client.place}", client.connected)
            if told and client.connected and client.fleet is not None:
                _see(follower, client)
    except KeyboardInterrupt:
        typer.echo(err=True)
        _show.progress(f"{follower.farewell()}")
        raise typer.Exit(exits.INTERRUPTED) from None
    _measured(follower, client)
    _ended(follower)


def _measured(follower: Follower, client: Client) -> None:
    """The last round is measured after the run is over: wait for its figures, a bounded time."""
    until = time.monotonic() + MEASURE_SECONDS
    told = False
    while not follower.measured() and time.monotonic() < until:
        if not client.demand(GetStatus()).data["evaluations_open"] and not follower.measured():
            return
        if not told:
            _show.progress(f"waiting for the last held-out figures, {MEASURE_SECONDS:g} s at most")
            told = True
        client.wait(0.5)


def _see(follower: Follower, client: Client) -> None:
    assert client.fleet is not None
    try:
        follower.see(client.fleet)
    except (NobodyAnswersError, NoBrokerError) as error:
        # The run goes on without us, and the coordinator tells its state again when it is back.
        _show.progress(f"{error}; still following")


def in_the_foreground(context: typer.Context, config: Config, wanted: RunSettings, as_json: bool) -> None:
    """Be the coordinator until the run is over. Ctrl-C leaves it in the store, where it can go on."""
    from coordinator import service, views
    from coordinator.runs import RunError
    from coordinator.store import StoreError

    handler = logging.StreamHandler(sys.stderr)
    handler.setFormatter(Lines("%(message)s"))
    logging.basicConfig(level=logging.WARNING, handlers=[handler])
    world, follower = outside(context), cast("Follower | None", None)
    try:
        with service.opened(config, trusted=True, make_link=world.make_link, tools=world.tools) as server:
            if server.runs.active:
                present = server.rounds.state.run if server.rounds else ""
                raise CommandError(
                    f"run {present} stands unfinished in {config.store_folder()}: `edged-coordinator serve` "
                    "goes on with it, and `edged-coordinator stop` then ends it; or take another --store",
                    exits.REFUSED,
                )

            def step(name: str) -> None:
                nonlocal follower
                if follower is None:
                    follower = Follower(
                        name,
                        wanted.budget * wanted.rounds,
                        lambda last: views.newest(server.store.history, name, last),
                        as_json,
                        wanted.evaluate,
                    )
                follower.see(server.fleet_state())

            service.follow_run(server, wanted, who(), step)
            if server.deposed:
                raise CommandError(f"{server.deposed}: this one ends, the run stays in the store")
            assert follower is not None
            _close_accounts(server, follower.run)
            follower.see(server.fleet_state())
            _ended(follower)
    except (StoreError, service.LiveCoordinatorError) as error:
        raise CommandError(str(error), exits.FAILED) from None
    except RunError as error:
        raise CommandError(str(error), exits.REFUSED) from None
    except KeyboardInterrupt:
        run = f"run {follower.run}" if follower else "the run"
        typer.echo(err=True)
        _show.progress(f"{run} stays in the store; `edged-coordinator serve` goes on with it")
        raise typer.Exit(exits.INTERRUPTED) from None


def _close_accounts(server: "Server", run: str) -> None:
    """Boards tell the whole of their last order only once it is over: hear that before the link is closed."""
    history, until = server.store.history, server.now + ACCOUNT_SECONDS
    while server.now < until:
        orders = sum(len(row["shares"]) for row in history.rows("round", run))
        if len(history.rows("closed", run)) >= orders:
            return
        server.step(0.1)


def _ended(follower: Follower) -> None:
    if not follower.complete and not follower.accepted and follower.run in follower.reason:
        raise CommandError(follower.reason)
    follower.end()
    if not follower.complete:
        raise typer.Exit(exits.FAILED)
