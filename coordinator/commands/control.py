"""Commands that change the running run: weights, policy, pause, resume, stop. The coordinator decides."""

from typing import Annotated, Any

import typer

from coordinator.commands import _show, exits
from coordinator.commands._surroundings import (
    BrokerOption,
    ConfigOption,
    FleetOption,
    JsonOption,
    connected,
    pairs,
    told,
)
from coordinator.commands.exits import CommandError
from edged.controls import Pause, Reply, Resume, SetPolicy, SetWeights, Stop


@told
def weights(
    context: typer.Context,
    *,
    w_e: Annotated[
        float | None, typer.Option("--w-e", help="Weight of energy, 0 to 1.", show_default=False)
    ] = None,
    w_t: Annotated[
        float | None, typer.Option("--w-t", help="Weight of time; else 1 - w_e.", show_default=False)
    ] = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Change how much energy counts against time while the run goes on; without options: tell what holds.

    The answer says from which round the weights apply and what the shares would become.

    Example: edged-coordinator weights --w-e 0.25
    """
    from coordinator.controller import Weights

    if w_e is not None or w_t is not None:
        try:
            Weights.of(w_e, w_t)
        except ValueError as error:
            raise CommandError(str(error), exits.USAGE) from None
    with connected(context, config, broker, fleet) as client:
        reply = client.demand(SetWeights(w_e, w_t))
    if as_json:
        _show.json(reply)
        return
    _say(reply)
    _say_shares(reply)


@told
def policy(
    context: typer.Context,
    name: Annotated[str, typer.Argument(help="equal, adaptive, time-only, low-energy, balanced, ...")],
    *,
    option: Annotated[
        list[str] | None,
        typer.Option("--option", metavar="KEY=VALUE", help="An option of the policy; may be repeated."),
    ] = None,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Let another policy give the shares from the next round on.

    Example: edged-coordinator policy adaptive --option deadband=0.05
    """
    action = SetPolicy(name, pairs(option or (), "--option"))
    with connected(context, config, broker, fleet) as client:
        reply = client.demand(action)
    _answer(reply, as_json)
    if not as_json:
        _say_shares(reply)


@told
def pause(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Begin no new round after the running one, in asp give no more orders; `resume` goes on.

    Example: edged-coordinator pause
    """
    with connected(context, config, broker, fleet) as client:
        reply = client.demand(Pause())
    _answer(reply, as_json)


@told
def resume(
    context: typer.Context,
    *,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """Go on after a pause, also after one that the coordinator made by itself.

    Example: edged-coordinator resume
    """
    with connected(context, config, broker, fleet) as client:
        reply = client.demand(Resume())
    _answer(reply, as_json)


@told
def stop(
    context: typer.Context,
    *,
    yes: Annotated[bool, typer.Option("--yes", "-y", help="Do not ask.")] = False,
    config: ConfigOption = None,
    broker: BrokerOption = None,
    fleet: FleetOption = None,
    as_json: JsonOption = False,
) -> None:
    """End the run now: what is being trained is given up, what was accepted stays.

    Example: edged-coordinator stop --yes
    """
    with connected(context, config, broker, fleet) as client:
        if not yes and not as_json and _show.is_terminal():
            run = client.fleet.run if client.fleet is not None else None
            typer.confirm(
                f"End run {run or ''} now? What is being trained is lost".replace("  ", " "), abort=True
            )
        reply = client.demand(Stop())
    _answer(reply, as_json)


def _answer(reply: Reply, as_json: bool) -> None:
    if as_json:
        _show.json(reply)
    else:
        _say(reply)


def _say(reply: Reply) -> None:
    _show.line(reply.text or "done")


def _say_shares(reply: Reply) -> None:
    """What the shares are and, where the answer foretells them, what they would become."""
    shares, present = reply.data.get("shares"), reply.data.get("present")
    if not isinstance(shares, dict) or not shares:
        return
    if isinstance(present, dict):
        rows = [[board, _share(present.get(board)), _share(shares[board])] for board in sorted(shares)]
        _show.table("", ["board", "share now", "would become"], rows, "<>>")
    else:
        _show.table(
            "", ["board", "share"], [[board, _share(shares[board])] for board in sorted(shares)], "<>"
        )
    if reply.data.get("reason"):
        _show.line(str(reply.data["reason"]))


def _share(samples: Any) -> str:
    return f"{samples:,}" if isinstance(samples, int) else _show.UNKNOWN
