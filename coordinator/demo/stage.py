"""Puts the demo on: starts broker, coordinator and boards, submits both runs, ends everything.

It draws nothing; what happens goes to an `Audience`.
"""

import time
from collections.abc import Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path
from typing import Final, Protocol

from msgspec import Struct, structs

from coordinator.broker import Broker, start_broker
from coordinator.client import Client, NobodyAnswersError, client_id, client_name, mqtt_link
from coordinator.commands._recorded import recorded
from coordinator.comparison import Recorded
from coordinator.config import Broker as BrokerPlace
from coordinator.config import Config
from coordinator.demo.children import Children
from coordinator.demo.plan import FLEET, Plan
from coordinator.demo.scale import Bench, Scale, settled
from coordinator.history import History
from edged.controls import GetStatus, RunSettings, Start
from edged.messages import FleetState

START_SECONDS: Final = 60.0
STILL_SECONDS: Final = 180.0
"""So long nothing may happen before the demo gives up."""
ACCOUNT_SECONDS: Final = 20.0
"""For the last orders to be closed and the last model to be measured."""
RUNS: Final = ("equal", "adaptive")
WARM_UP: Final = "warm-up"
ONE_THREAD: Final = dict.fromkeys(("OMP_NUM_THREADS", "MKL_NUM_THREADS", "OPENBLAS_NUM_THREADS"), "1")


class DemoError(RuntimeError):
    """The demo did not get to its end; the text says why and where to look."""


class Audience(Protocol):
    """Whoever watches."""

    def says(self, text: str) -> None:
        """A step of the preparation, or a remark."""

    def scaled(self, scale: Scale) -> None:
        """The speed scale is chosen."""

    def sees(self, run: Recorded, state: FleetState | None) -> None:
        """At least twice a second: the run as recorded so far, and what the coordinator said last."""


class Outcome(Struct, frozen=True):
    """Both runs as recorded, and what they were paced by."""

    runs: tuple[Recorded, ...]
    scale: Scale
    broker: str
    store: Path


def play(plan: Plan, audience: Audience, runs: tuple[str, ...] = RUNS) -> Outcome:
    """The whole demo. Raises DemoError, ChildError, BrokerError; nothing is left running either way."""
    with started(plan.folder / "broker") as broker, Children(plan.folder / "logs", ONE_THREAD) as children:
        audience.says(f"broker: {broker}")
        settings = configuration(plan, broker)
        children.start("coordinator", ["-m", "coordinator", "serve", "--config", str(settings), "--json"])
        audience.says(
            f"measuring training steps of {plan.task} with {len(plan.boards)} boards at once, "
            "to choose one speed scale for all"
        )
        scale = settled(plan, Bench(children, plan).measure())
        audience.scaled(scale)
        for board, kind in plan.boards.items():
            children.start(board, board_arguments(plan, board, kind, broker, scale))
        with client(broker) as asking, closing(Watch(plan, children, asking, audience)) as watch:
            watch.coordinator()
            audience.says(f"starting {len(plan.boards)} boards, with a short round that is not compared")
            watch.run(warm_up(plan))
            found = tuple(watch.run(run_settings(plan, scale.budget, name)) for name in runs)
        return Outcome(found, scale, str(broker), plan.folder / "store")


@contextmanager
def started(folder: Path) -> Iterator[Broker]:
    """A broker of one's own that ends with the context."""
    broker = start_broker(folder)
    try:
        yield broker
    finally:
        broker.stop()


def configuration(plan: Plan, broker: Broker) -> Path:
    """Write the coordinator's configuration."""
    import json

    path = plan.folder / "coordinator.toml"
    # A JSON string is a TOML basic string.
    lines = [
        f"fleet = {json.dumps(FLEET)}",
        f"[broker]\nhost = {json.dumps(broker.host)}\nport = {broker.port}",
        f"[store]\nfolder = {json.dumps(str(plan.folder / 'store'))}",
        f"[tasks]\nfolder = {json.dumps(plan.task_folder)}",
        f"[data.{plan.pool}]\npath = {json.dumps(plan.pool_path)}",
    ]
    path.write_text("\n".join(lines) + "\n")
    return path


def board_arguments(plan: Plan, board: str, kind: str, broker: Broker, scale: Scale) -> list[str]:
    """What `python` is given to be an emulated board."""
    return [
        *("-m", "edged", "run", "--board", board, "--fleet", FLEET),
        *("--broker", f"{broker.host}:{broker.port}", "--pool", f"{plan.pool}={plan.pool_path}"),
        *("--emulate", kind, "--speed-scale", f"{scale.seconds_per_sample:.9f}"),
        *("--tasks", plan.task_folder, "--runtime", str(plan.folder / "boards")),
    ]


def warm_up(plan: Plan) -> RunSettings:
    """A round of a batch a board, so that the first run compared does not pay for starting the processes."""
    budget = plan.batch * len(plan.boards)
    settings = structs.replace(run_settings(plan, budget, "equal"), rounds=1, evaluate=False)
    return structs.replace(settings, name=WARM_UP)


def run_settings(plan: Plan, budget: int, name: str) -> RunSettings:
    """The same work for both; the policy alone differs."""
    w_e = plan.w_e if name != "equal" else 0.0
    return RunSettings(
        plan.task,
        plan.pool,
        budget,
        plan.rounds,
        policy=name,
        w_t=1.0 - w_e,
        w_e=w_e,
        batch=plan.batch,
        seed=plan.seed,
        boards=tuple(plan.boards),
        name=name,
    )


def client(broker: Broker) -> Client:
    """An operator of the demo's fleet."""
    name = client_name()
    config = Config(FLEET, BrokerPlace(broker.host, broker.port))
    link_config = config.broker.link(client_id(FLEET, name))
    return Client(mqtt_link(link_config), link_config, FLEET, name)


class Watch:
    """Waits for what the demo waits for, and looks after its processes meanwhile."""

    def __init__(self, plan: Plan, children: Children, asking: Client, audience: Audience) -> None:
        self._plan, self._children, self._client, self._audience = plan, children, asking, audience
        self._history: History | None = None

    def close(self) -> None:
        """Give the store up."""
        if self._history is not None:
            self._history.close()

    def coordinator(self) -> None:
        """Until the coordinator answers."""
        until = time.monotonic() + START_SECONDS
        while True:
            self._children.check()
            try:
                self._client.ask(GetStatus(), 1.0)
                return
            except NobodyAnswersError as error:
                if time.monotonic() >= until:
                    raise DemoError(f"{error} (log: {self._children.log('coordinator')})") from None

    def run(self, settings: RunSettings) -> Recorded:
        """Submit the run and wait until it is over, accounted for and measured."""
        name = str(settings.name)
        self._client.demand(Start(settings), 10.0)
        moved, seen = time.monotonic(), (-1, "")
        while True:
            self._client.wait(0.5)
            self._children.check()
            state, found = self._client.fleet, self._recorded(name)
            if name != WARM_UP:
                self._audience.sees(found, state)
            if state is not None and state.phase == "done" and state.run == name:
                break
            self._stuck(name, state)
            present = (len(found.rounds), repr(state.waiting) if state else "")
            if present != seen:
                moved, seen = time.monotonic(), present
                continue
            gathering = state is not None and state.phase in ("gathering", "idle", "preparing")
            limit = START_SECONDS if gathering else STILL_SECONDS
            if time.monotonic() - moved > limit:
                raise DemoError(f"run {name}: nothing happened for {limit:g} s: {_waits(state)}")
        return self._accounted(name, settings.evaluate)

    def _stuck(self, name: str, state: FleetState | None) -> None:
        if state is None:
            return
        failed = state.phase == "idle" and f"run {name} could not begin" in state.reason
        if failed or (state.phase == "paused" and state.run == name):
            raise DemoError(f"{state.reason} (logs: {self._plan.folder / 'logs'})")

    def _accounted(self, name: str, evaluate: bool) -> Recorded:
        until = time.monotonic() + ACCOUNT_SECONDS
        while True:
            found = self._recorded(name)
            orders = sum(len(row["shares"]) for row in found.rounds)
            measured = found.evaluations[-1]["round"] if found.evaluations else -1
            if len(found.closed) >= orders and (measured >= len(found.rounds) or not evaluate):
                return found
            if time.monotonic() >= until:
                self._audience.says(
                    f"run {name}: {orders - len(found.closed)} orders were not closed"
                    if len(found.closed) < orders
                    else f"run {name}: the last model was not measured"
                )
                return found
            self._children.check()
            time.sleep(0.2)

    def _recorded(self, name: str) -> Recorded:
        store = self._plan.folder / "store"
        with suppress(FileNotFoundError):
            self._history = self._history or History.open(store)
        if self._history is None or not self._history.known(name):
            return Recorded({"run": name, "settings": {"policy": name}})
        return recorded(self._history, name)


def _waits(state: FleetState | None) -> str:
    if state is None:
        return "the coordinator said nothing"
    waiting = ", ".join(f"{item.board} ({item.what})" for item in state.waiting)
    return f"waiting for {waiting}" if waiting else state.reason or state.phase
