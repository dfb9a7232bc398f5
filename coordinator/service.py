"""From a configuration to a coordinator that serves: alone in its fleet, its store its own, ended by signals.

`serve` is the installed service, `opened` and `follow_run` are what a command in the foreground uses.
"""

import logging
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Final

from coordinator.client import Client, LinkFactory, NobodyAnswersError, NoBrokerError, client_id, client_name
from coordinator.client import mqtt_link as client_link
from coordinator.config import Config
from coordinator.server import Server
from coordinator.store import Store
from coordinator.tools import Follow, Tools
from coordinator.watching import watched
from edged.controls import GetStatus, RunSettings
from edged.messages import FleetState
from edged.notify import Notify
from edged.orders import round_name

LOG = logging.getLogger(__name__)
RETAINED_SECONDS: Final = 1.0
"""A broker hands a retained message over with the subscription: whoever heard none by then will hear none."""
ANSWER_SECONDS: Final = 3.0
TRY_AGAIN_SECONDS: Final = 5.0
STEP_SECONDS: Final = 0.5
EXIT_DEPOSED: Final = 1


class LiveCoordinatorError(RuntimeError):
    """Another coordinator serves this fleet; the text names its host."""


def predecessor(config: Config, make_link: LinkFactory = client_link) -> FleetState | None:
    """The word that the last coordinator of the fleet left with the broker, None where there is none.

    Raises LiveCoordinatorError where it answers, NoBrokerError where the broker cannot be reached.
    """
    name = client_name()
    link_config = config.broker.link(client_id(config.fleet, name))
    with Client(make_link(link_config), link_config, config.fleet, name) as client:
        if client.fleet is None:
            client.wait(RETAINED_SECONDS)
        found = client.fleet
        if found is None or found.link != "up":
            return found
        try:
            client.ask(GetStatus(), ANSWER_SECONDS)
        except NobodyAnswersError:
            LOG.warning("the broker still says that a coordinator on %s is up; it is not", found.host)
            return found
    raise LiveCoordinatorError(
        f"a coordinator on {found.host or 'an unnamed host'} serves fleet {config.fleet} at {client.place} "
        f"(term {found.term}); stop that one first, or give this one another fleet"
    )


@contextmanager
def opened(
    config: Config,
    *,
    follow: Follow | None = None,
    trusted: bool = False,
    tools: Tools | None = None,
    make_link: LinkFactory = client_link,
    patient: Callable[[NoBrokerError], bool] = lambda error: False,
    web: bool = False,
) -> Iterator[Server]:
    """A coordinator that is connected (or trying) and owns its store; it is closed at the end.

    `web`: with the live page. `patient` is asked whether to try again while the broker is away. Raises
    StoreError, LiveCoordinatorError, NoBrokerError.
    """
    store = Store(config.store_folder())
    try:
        last = _heard(config, make_link, patient)
        server = Server(
            config, store, tools, follow=follow, trusted=trusted, above_term=last.term if last else 0
        )
    except BaseException:
        store.close()
        raise
    try:
        server.start()
        with watched(server, web):
            yield server
    finally:
        server.close()


def serve(config: Config, *, follow: Follow | None = None, notify: Notify | None = None) -> int:
    """Serve until SIGTERM or SIGINT; returns the exit status. Raises StoreError, LiveCoordinatorError."""
    notify = notify or Notify()
    ended = False

    def patient(error: NoBrokerError) -> bool:
        # Locally all is well: a broker that is not there yet must not make the service fail at boot.
        notify.ready()
        notify.status(f"waiting for the broker: {error}")
        notify.alive()
        LOG.warning("%s; trying again in %g s", error, TRY_AGAIN_SECONDS)
        until = time.monotonic() + TRY_AGAIN_SECONDS
        while not ended and time.monotonic() < until:
            time.sleep(0.2)
            notify.alive()
        return not ended

    def end(_number: int, _frame: Any) -> None:
        nonlocal ended
        ended = True

    with _signals(end):
        try:
            with opened(config, follow=follow, patient=patient, web=True) as server:
                notify.ready()
                while not ended and not server.deposed:
                    server.step(STEP_SECONDS)
                    notify.alive()
                    notify.status_of(lambda: describe(server))
                notify.stopping()
        except NoBrokerError:
            return 0
    if server.deposed:
        LOG.error("%s; this one ends", server.deposed)
        return EXIT_DEPOSED
    return 0


def follow_run(server: Server, settings: RunSettings, who: str, on_step: Callable[[str], None]) -> str:
    """Submit a run and serve until it is over and measured; returns the run's name.

    `on_step` gets the name at least twice a second; what it raises (KeyboardInterrupt, too) passes through,
    the run then goes on at the next start. Raises RunError.
    """
    run = server.runs.start(settings, who)
    while not server.idle and not server.deposed:
        server.step(STEP_SECONDS)
        on_step(run)
    return run


def describe(server: Server) -> str:
    """One line on what goes on, for the service manager."""
    state, link = server.fleet_state(), server.link.status()
    if link.stage != "up":
        return f"broker {link.host}:{link.port} {link.stage}: {link.reason or 'connecting'}"
    up = sum(seen.birth.link == "up" for seen in server.fleet.boards.values())
    if state.run is None:
        return f"{up} boards, no run. {state.reason}".strip()
    waiting = ", ".join(waiting.board for waiting in state.waiting[:4])
    turn = f"{round_name(state.regime)} {state.round} of {state.rounds}"
    return f"run {state.run}: {turn}, {state.phase}; {up} boards" + (
        f"; waits for {waiting}" if waiting else ""
    )


def _heard(
    config: Config, make_link: LinkFactory, patient: Callable[[NoBrokerError], bool]
) -> FleetState | None:
    while True:
        try:
            return predecessor(config, make_link)
        except NoBrokerError as error:
            if not patient(error):
                raise


@contextmanager
def _signals(handler: Callable[[int, Any], None]) -> Iterator[None]:
    numbers = (signal.SIGTERM, signal.SIGINT)
    before = [signal.signal(number, handler) for number in numbers]
    try:
        yield
    finally:
        for number, old in zip(numbers, before, strict=True):
            signal.signal(number, old)
