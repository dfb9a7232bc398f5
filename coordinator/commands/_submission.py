"""Hands a run to the live coordinator and follows it to its end."""

import time
from typing import Final

import typer

from coordinator.client import Client, NobodyAnswersError, NoBrokerError
from coordinator.commands import _show, exits
from coordinator.commands._follow import Fetch, Follower
from coordinator.commands.exits import CommandError
from edged.controls import GetRounds, GetStatus, RunSettings, Start

MEASURE_SECONDS: Final = 60.0


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
    ended(follower)


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


def ended(follower: Follower) -> None:
    """Tell how the run ended, by the exit code, too. Raises CommandError, typer.Exit."""
    if not follower.complete and not follower.accepted and follower.run in follower.reason:
        raise CommandError(follower.reason)
    follower.end()
    if not follower.complete:
        raise typer.Exit(exits.FAILED)
