"""Serves a run in the foreground, where no coordinator answers."""

import logging
import sys
from typing import TYPE_CHECKING, cast

import typer

from coordinator.cleaning import Lines
from coordinator.client import who
from coordinator.commands import _show, exits
from coordinator.commands._follow import Follower
from coordinator.commands._submission import ended
from coordinator.commands._surroundings import outside
from coordinator.commands.exits import CommandError
from coordinator.config import Config
from edged.controls import RunSettings

if TYPE_CHECKING:
    from coordinator.server import Server


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
            _close_accounts(server)
            follower.see(server.fleet_state())
            ended(follower)
    except (StoreError, service.LiveCoordinatorError) as error:
        raise CommandError(str(error), exits.FAILED) from None
    except RunError as error:
        raise CommandError(str(error), exits.REFUSED) from None
    except KeyboardInterrupt:
        run = f"run {follower.run}" if follower else "the run"
        typer.echo(err=True)
        _show.progress(f"{run} stays in the store; `edged-coordinator serve` goes on with it")
        raise typer.Exit(exits.INTERRUPTED) from None


def _close_accounts(server: "Server") -> None:
    """Boards tell the whole of their last order only once it is over: hear that before the link is closed."""
    while server.runs.accounts_open:
        server.step(0.1)
