"""`edged-coordinator run`: submits a run to the live coordinator and follows it, or serves it itself."""

from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from msgspec import ValidationError, structs

from coordinator.client import NobodyAnswersError
from coordinator.commands import _show, exits
from coordinator.commands._foreground import in_the_foreground
from coordinator.commands._submission import follow, submitted
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
from coordinator.controller import staleness as staleness_rules
from coordinator.wording import dotted
from edged.controls import RunSettings

if TYPE_CHECKING:
    from coordinator.controller import Weights

OPTIONS = {
    "learning_rate": "lr",
    "learning_rate_batch": "lr-batch",
    "deadline_floor_seconds": "deadline-floor",
    "deadline_limit_seconds": "deadline-limit",
    "policy_options": "option",
    "options": "task-option",
}
"""Of settings that are called otherwise on the command line."""
LEARNING, FLEET, PLACE = "Learning set-up", "Boards and deadlines", "Where"
RULES = staleness_rules.names()
ASYNCHRONOUS = "Asynchronous updates (--regime asp)"


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
    policy: Annotated[
        str | None, _option("--policy", "Who gives the shares; else adaptive, in asp omnilearn.")
    ] = None,
    option: Annotated[list[str] | None, _option("--option", "KEY=VALUE of the policy; repeatable.")] = None,
    w_e: Annotated[float | None, _option("--w-e", "Weight of energy, 0 to 1; else 0.")] = None,
    w_t: Annotated[float | None, _option("--w-t", "Weight of time; else 1 - w_e.")] = None,
    regime: Annotated[str, _option("--regime", "pma, ddp, hfl-ddp or asp.", LEARNING, show=True)] = "pma",
    seed: Annotated[int, _option("--seed", "Of everything random.", LEARNING, min=0, show=True)] = 1,
    batch: Annotated[int | None, _option("--batch", "A board's; in ddp all ranks'.", LEARNING, min=1)] = None,
    lr: Annotated[float | None, _option("--lr", "Learning rate; else the task's.", LEARNING)] = None,
    lr_batch: Annotated[int | None, _option("--lr-batch", "Lr is for this batch.", LEARNING, min=1)] = None,
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
    grain: Annotated[
        str | None, _option("--grain", "gradient (one batch an order; default) or model.", ASYNCHRONOUS)
    ] = None,
    staleness: Annotated[
        str | None,
        _option(
            "--staleness",
            f"A rule: {', '.join(RULES)}; else none, for models polynomial.",
            ASYNCHRONOUS,
        ),
    ] = None,
    staleness_option: Annotated[
        list[str] | None, _option("--staleness-option", "KEY=VALUE of the rule; repeatable.", ASYNCHRONOUS)
    ] = None,
    bound: Annotated[
        int | None, _option("--bound", "Drop updates more versions old.", ASYNCHRONOUS, min=0)
    ] = None,
    update_scale: Annotated[
        str | None, _option("--update-scale", "batch (b / mean b) or none.", ASYNCHRONOUS)
    ] = None,
    alpha: Annotated[
        float | None, _option("--alpha", "Of model: its mixing; else 0.6.", ASYNCHRONOUS)
    ] = None,
    server_momentum: Annotated[
        float | None, _option("--server-momentum", "Of gradient: the coordinator's.", ASYNCHRONOUS)
    ] = None,
    allow_large: Annotated[
        bool, _option("--allow-large", "Gradients of models above 8 MB, too.", ASYNCHRONOUS)
    ] = False,
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

    Asynchronous: edged-coordinator run --task digits --pool digits --budget 720 --rounds 12 --regime asp
    """
    policy = policy or ("omnilearn" if regime == "asp" else "adaptive")
    weights = _weights(policy, w_e, w_t)
    asynchronous = {
        "grain": grain,
        "staleness": staleness,
        "staleness_options": pairs(staleness_option or (), "--staleness-option") or None,
        "bound": bound,
        "scale": update_scale,
        "alpha": alpha,
        "momentum": server_momentum,
        "allow_large": allow_large or None,
    }
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
        learning_rate_batch=lr_batch,
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
        asynchronous=_given(asynchronous, regime),
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


def _given(options: dict[str, Any], regime: str) -> dict[str, Any] | None:
    """Those that were given, None for another regime. Raises CommandError for any with another regime."""
    given = {name: value for name, value in options.items() if value is not None}
    if regime == "asp":
        if "alpha" in given and given.get("grain", "gradient") == "gradient":
            raise CommandError("--alpha is for --grain model: gradients are applied by --lr", exits.USAGE)
        return given
    if given:
        called = {
            "staleness_options": "staleness-option",
            "scale": "update-scale",
            "momentum": "server-momentum",
        }
        names = ", ".join(f"--{called.get(name, name).replace('_', '-')}" for name in given)
        raise CommandError(f"{names}: only with --regime asp, not with {regime}", exits.USAGE)
    return None


def checked(**values: Any) -> RunSettings:
    """Settings of plain values. Raises CommandError naming the option."""
    import msgspec

    try:
        return msgspec.convert(values, RunSettings)
    except ValidationError as error:
        where, _, what = dotted(str(error)).partition(": ")
        field = where.partition("[")[0].partition(".")[0]
        raise CommandError(f"--{OPTIONS.get(field, field).replace('_', '-')}: {what}", exits.USAGE) from None
