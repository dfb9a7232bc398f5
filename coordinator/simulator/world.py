"""Virtual time: carries out the effects of `rounds` on virtual boards and feeds back what they would say.

No sockets, files or threads, and one seed: the same fleet and settings give the same rows every time.
"""

import heapq
import random
from collections.abc import Iterable
from typing import Any

from msgspec import Struct

from coordinator import events as ev
from coordinator.fleet import Fleet
from coordinator.rounds import Rounds
from coordinator.run import begin
from coordinator.simulator.actor import HASH, MODEL, Actor
from coordinator.simulator.boards import VirtualBoard
from edged.controls import RunSettings
from edged.messages import Abort, Accepted, Attend, Order, Train

WAKE_SECONDS = 15.0


class Dropped(Struct, frozen=True):
    """A board's process dies, or is back."""

    board: str
    down: bool


class World:
    """A fleet, a run, and the time that passes for them."""

    def __init__(
        self, boards: Iterable[VirtualBoard], settings: RunSettings, pool_samples: int, seed: int = 1
    ) -> None:
        self.settings, self.pool_samples, self.now = settings, pool_samples, 0.0
        self.actors = {b.id: Actor(b, random.Random(f"{seed}/{b.id}")) for b in boards}
        prepared = ev.Prepared("simulated", settings, HASH, MODEL, HASH, pool_samples)
        self.rounds = Rounds(begin(prepared, 1, "virtual"), Fleet())
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.orders: dict[str, Train] = {}
        self.notes: list[ev.Note] = []
        self.finished: ev.Finished | None = None
        self._queue: list[tuple[float, int, ev.Event | Dropped]] = []
        self._count = 0
        self._woken_at = 0.0
        for name, actor in sorted(self.actors.items()):
            self.at(0.0, ev.Born(actor.birth(settings, pool_samples)))
            for dropout in actor.spec.dropouts:
                self.at(dropout.at_seconds, Dropped(name, True))
                self.at(dropout.at_seconds + dropout.for_seconds, Dropped(name, False))

    def at(self, seconds: float, event: ev.Event | Dropped) -> None:
        """Let the event happen at that virtual second (or now, if that is past)."""
        self._count += 1
        heapq.heappush(self._queue, (max(seconds, self.now), self._count, event))

    def run(self, until_seconds: float = 1e9) -> "World":
        """Let time pass until the run is over (closing accounts included) or the time is up."""
        while self.now < until_seconds and (self._queue or self.finished is None):
            self._wake()
            self.now, _, event = heapq.heappop(self._queue)
            if isinstance(event, Dropped):
                self._drop(event)
            elif not self._mute(event):
                self._carry_out(self.rounds.handle(event, self.now))
        return self

    def _wake(self) -> None:
        # A real coordinator looks at its deadlines twice a second; here where nothing else happens before.
        due = self._woken_at + (1.0 if self.rounds.state.phase == "gathering" else WAKE_SECONDS)
        if self.finished is None and (not self._queue or self._queue[0][0] > due):
            self._woken_at = max(due, self.now)
            self.at(self._woken_at, ev.Woken())

    def _mute(self, event: ev.Event) -> bool:
        # What a process would have said after it died is never said.
        if isinstance(event, ev.Reported):
            actor = self.actors[event.report.board]
            return not actor.alive or event.report.boot != actor.boot
        return False

    def _drop(self, event: Dropped) -> None:
        actor = self.actors[event.board]
        actor.alive = not event.down
        if event.down:
            actor.order = actor.report = None
            self.at(self.now, ev.Born(actor.birth(self.settings, self.pool_samples, "lost")))
        else:
            actor.boot_count += 1
            self.at(self.now, ev.Born(actor.birth(self.settings, self.pool_samples)))

    def _carry_out(self, effects: list[ev.Effect]) -> None:
        for effect in effects:
            match effect:
                case ev.Send():
                    self._deliver(effect.board, effect.message)
                case ev.Collect():
                    upload = self.actors[effect.board].spec.upload_seconds
                    self.at(self.now + upload, ev.Stored(effect.board, effect.order))
                case ev.Fold():
                    self.at(self.now, ev.Folded(effect.round, MODEL))
                case ev.Record():
                    self.rows.setdefault(effect.table, []).append(effect.row)
                case ev.Note():
                    self.notes.append(effect)
                case ev.Finished():
                    self.finished = effect

    def _deliver(self, board: str, message: Order) -> None:
        actor = self.actors.get(board)
        if actor is None or not actor.alive or isinstance(message, Accepted):
            return
        if (
            isinstance(message, Train | Attend)
            and actor.order is not None
            and actor.order.order == message.order
        ):
            self.at(self.now, ev.Heard(actor.state("training", message.term)))
            return
        if isinstance(message, Abort):
            return
        closed = actor.close(self.now)
        if closed is not None:
            self.at(self.now, ev.Reported(closed))
        if isinstance(message, Attend):
            actor.attend(message, self.now)
            self.at(self.now, ev.Heard(actor.state("waiting", message.term)))
        if isinstance(message, Train):
            self.orders[message.order] = message
            ready = actor.train(message, self.now)
            self.at(self.now, ev.Heard(actor.state("training", message.term)))
            assert actor.report is not None
            self.at(ready, ev.Reported(actor.report))
