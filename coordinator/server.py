"""The coordinator: one loop over one queue of messages, acknowledgements, results and time.

It decides nothing about a run (`rounds` does) and blocks on nothing but the queue and the store. Whatever an
event brings about, the loop goes on: an unexpected exception is logged with its event, counted and shown.
"""

import logging
import secrets
import socket
from collections import deque
from pathlib import Path
from queue import Empty
from typing import Any, Final

from msgspec import structs

from coordinator import arrears
from coordinator import events as ev
from coordinator.boards import Boards
from coordinator.collection import Collection
from coordinator.config import Config
from coordinator.counters import Counters
from coordinator.diary import Diary
from coordinator.distribution import Distribution
from coordinator.evaluations import Evaluations
from coordinator.execution import Execution
from coordinator.fleet import Fleet
from coordinator.herald import Herald
from coordinator.lookout import Lookout
from coordinator.reception import SUBSCRIPTIONS
from coordinator.rounds import Rounds
from coordinator.runs import Runs
from coordinator.store import Store
from coordinator.switchboard import Stop, Switchboard
from coordinator.tools import Follow, Onlooker, Tools
from edged.messages import FleetState, Grant, Manifest, Order, encode
from edged.topics import Topics

LOG = logging.getLogger(__name__)
WAKE_SECONDS: Final = 0.5
FLUSH_SECONDS: Final = 5.0
MOST_AT_ONCE: Final = 64
"""Events taken between two looks at the clock."""


class Server:
    """`trusted`: whoever starts runs may name files of this machine (a run in the foreground)."""

    def __init__(
        self,
        config: Config,
        store: Store,
        tools: Tools | None = None,
        *,
        follow: Follow | None = None,
        trusted: bool = False,
        above_term: int = 0,
    ) -> None:
        self.config, self.store, self.tools = config, store, tools or Tools()
        self.trusted = trusted
        self.boot, self.host = f"c{secrets.token_hex(8)}", socket.gethostname()
        self.term = store.raise_term(self.boot, self.host, above_term)
        self.topics = Topics(config.fleet)
        self.fleet = Fleet()
        self.rounds: Rounds | None = None
        self.deposed = ""
        """Why another coordinator took over; then the loop has ended."""
        self._follow = follow
        self.onlookers: list[Onlooker] = [Diary()]
        self._inbox: deque[ev.Event] = deque()
        self._feeding = self.stopping = False
        self._woken_seconds = self._flushed_seconds = float("-inf")
        self.counters = Counters(store.history.counters())
        self.herald = Herald(self.topics, FleetState(self.boot, self.term, "up", self.host))
        link_config = config.broker.link(f"edged-{config.fleet}-coordinator")
        self.link = self.tools.make_link(link_config, self.herald.announcement)
        self.work = self.tools.crew(self.link.events.put)
        self._examiner = self.tools.examiner(self.link.events.put)
        pools = {name: pool.path for name, pool in config.data.items()}
        self.evaluations = Evaluations(self._examiner.ask, store.checkpoints, pools, self.task_folders)
        self.boards = Boards(self)
        self._switchboard = Switchboard(self)
        self.runs = Runs(self)
        self.execution = Execution(self)
        self.lookout = Lookout(self, config.alerts)
        self.distribution = Distribution(self._publish_chunk, self._present_model, self.note, self._apart)
        self.collection = Collection(
            store.checkpoints,
            self.work,
            self._grant,
            self._happened,
            boot=self.boot,
            term=self.term,
            norm_bound=config.updates.norm_bound,
            at_once=config.updates.boards_at_once,
        )

    @property
    def task_folders(self) -> tuple[Path, ...]:
        """Where tasks of the owner are looked for."""
        return (Path(self.config.tasks.folder),)

    @property
    def now(self) -> float:
        """Monotonic seconds."""
        return self.tools.clock()

    @property
    def idle(self) -> bool:
        """No run is going on and nothing about the last one is open."""
        open_ends = self.runs.active or self.runs.accounts_open or self.evaluations.open
        return not (open_ends or self.execution.problem)

    def start(self) -> None:
        """Take up an unfinished run and connect, in the background."""
        self.runs.resume()
        arrears.settle(self)
        self.herald.begin(self.fleet_state())
        for name in SUBSCRIPTIONS:
            self.link.subscribe(self.topics.filter(name), 0 if name == "power" else 1)
        self.link.start()

    def step(self, timeout_seconds: float | None = None) -> None:
        """Wait until an event comes or something is due (so long at most); handle it, do what is due."""
        wait = max(0.0, self._due() - self.now)
        wait = wait if timeout_seconds is None else min(wait, timeout_seconds)
        try:
            self._take(self.link.events.get(timeout=wait) if wait else self.link.events.get_nowait())
            for _ in range(MOST_AT_ONCE):
                self._take(self.link.events.get_nowait())
        except Empty:
            pass
        self._tick(self.now)
        self.show("turn", None)

    def run(self) -> None:
        """Loop until `stop`, or until another coordinator took over (`deposed` says which)."""
        while not self.stopping:
            self.step()

    def stop(self) -> None:
        """End the loop; may be called from anywhere. A run that is not over goes on at the next start."""
        self.link.events.put(Stop())

    def close(self) -> None:
        """Say goodbye to the broker and give everything up."""
        self.execution.flush(self.now)
        self.link.close()
        self.distribution.close()
        self._examiner.close()
        self.work.close()
        self.store.close()

    def feed(self, event: ev.Event) -> None:
        """Tell the run, and carry out what it answers; events that come of this follow afterwards."""
        self._inbox.append(event)
        if self._feeding:
            return
        self._feeding = True
        try:
            while self._inbox:
                self._guarded(self._handle, self._inbox.popleft())
        finally:
            self._feeding = False

    def note(self, note: ev.Note) -> None:
        """Count something odd."""
        self.counters.note(note, self.now)
        self.show("note", note)

    def tell(self, what: str, row: dict[str, Any]) -> None:
        """Let whoever follows the run know."""
        if self._follow is not None:
            self._guarded(self._follow, what, row)
        self.show(what, row)

    def show(self, what: str, value: Any) -> None:
        """Let telemetry and page see it; what goes wrong there is theirs."""
        for onlooker in self.onlookers:
            try:
                onlooker(what, value)
            except Exception:
                LOG.exception("an onlooker failed at %s", what)

    def send(self, board: str, message: Order) -> None:
        """Publish an order that is not a run's."""
        self.link.publish(self.topics.of("order", board=board), encode(message))

    def fleet_state(self) -> FleetState:
        """What everybody may know."""
        if self.rounds is not None and self.runs.beginning is None:
            state = self.rounds.fleet_state(self.now)
        else:
            phase = "idle" if self.runs.beginning is None else "preparing"
            state = FleetState(self.boot, self.term, "up", self.host, self.runs.beginning, phase=phase)
        reason = self.execution.problem or (self.runs.failure if not self.runs.active else "") or state.reason
        return structs.replace(state, reason=reason[:2000], joules_basis=self.boards.bases())

    def _handle(self, event: ev.Event) -> None:
        if self.rounds is not None:
            self.execution.carry_out(self.rounds.handle(event, self.now), self.now)

    def _guarded(self, do: Any, *arguments: Any) -> None:
        try:
            do(*arguments)
        except Exception as error:
            LOG.exception("unexpected, while handling %.300r", arguments)
            self.note(ev.Note("-", "internal_errors", f"{type(error).__name__}: {error}"))

    def _take(self, item: object) -> None:
        self._guarded(self._switchboard.take, item)

    def _due(self) -> float:
        now = self.now
        times = [
            self._woken_seconds + WAKE_SECONDS if self.runs.active else None,
            self._flushed_seconds + FLUSH_SECONDS,
            self.herald.due(),
            self.collection.due(),
            self.distribution.due(now),
            self.execution.due(),
            self.lookout.due(),
        ]
        return min(time for time in times if time is not None)

    def _tick(self, now: float) -> None:
        for tick in (self.execution.tick, self.collection.tick, self.distribution.tick):
            self._guarded(tick, now)
        if self.runs.active and now - self._woken_seconds >= WAKE_SECONDS:
            self._woken_seconds = now
            self.feed(ev.Woken())
        if now - self._flushed_seconds >= FLUSH_SECONDS:
            self._flushed_seconds = now
            self._guarded(self.execution.flush, now)
        self._guarded(self.lookout.tick, now)
        self._guarded(self._tell_all, now)

    def _tell_all(self, now: float) -> None:
        told = self.herald.tell(self.fleet_state, self.link, now)
        if told is not None:
            self.show("state", told)

    def _grant(self, board: str, grant: Grant) -> None:
        self.send(board, grant)

    def _happened(self, event: ev.Arriving | ev.Stored | ev.Note) -> None:
        if isinstance(event, ev.Note):
            self.note(event)
        else:
            self.feed(event)

    def _present_model(self, version: str) -> tuple[Path, Manifest] | None:
        if self.rounds is None:
            return None
        manifest = self.rounds.manifest_of(version)
        return None if manifest is None else (self.store.checkpoints.model(version), manifest)

    def _apart(self) -> bool:
        return self.rounds is not None and self.rounds.state.pushes is not None

    def _publish_chunk(self, board: str | None, version: str, number: int, payload: bytes) -> int:
        if board is None:
            topic = self.topics.of("model", version=version, chunk=number)
        else:
            topic = self.topics.of("board_model", board=board, version=version, chunk=number)
        return self.link.publish(topic, payload, priority="chunk")
