"""Virtual time: carries out the effects of `rounds` on virtual boards and feeds back what they would say.

No sockets, files or threads, and one seed: the same fleet and settings give the same rows every time.
"""

import heapq
import random
from collections.abc import Callable, Iterable
from typing import Any

from msgspec import Struct, structs

from coordinator import events as ev
from coordinator.controller.batches import steps_for
from coordinator.fleet import Fleet
from coordinator.rounds import Rounds
from coordinator.run import begin
from coordinator.silos import SYNCHRONOUS
from coordinator.simulator.actor import HASH, MODEL, Actor
from coordinator.simulator.boards import VirtualBoard
from coordinator.simulator.learning import Training
from coordinator.simulator.steps import together
from edged.ceilings import State
from edged.controls import RunSettings
from edged.messages import Abort, Accepted, Attend, Join, Order, Train
from edged.orders import board_of

REGIMES = ("pma", "asp", *SYNCHRONOUS)
WAKE_SECONDS = 15.0
COLLECTIVE_SECONDS = 30.0
"""So long the other ranks wait in a collective for one that died, before they give the round up."""


class Dropped(Struct, frozen=True):
    """A board's process dies, or is back."""

    board: str
    down: bool


class GivenUp(Struct, frozen=True):
    """The ranks of a synchronous round notice that one of them is gone."""

    orders: tuple[str, ...]


class World:
    """A fleet, a run, and the time that passes for them.

    `told` hears every recorded row at once. With synchronous gradients each step is followed by
    `step_communication_seconds` of exchange. `idle_seen`: telemetry told the watts of boards without an
    order before the run. Raises ValueError for a regime that is not simulated.
    """

    def __init__(
        self,
        boards: Iterable[VirtualBoard],
        settings: RunSettings,
        pool_samples: int,
        seed: int = 1,
        *,
        step_communication_seconds: float = 0.0,
        idle_seen: bool = False,
        training: Training | None = None,
        told: Callable[[str, dict[str, Any]], None] | None = None,
    ) -> None:
        if settings.regime not in REGIMES:
            raise ValueError(f"regime {settings.regime} is not simulated: only {', '.join(REGIMES)}")
        self._training, self._told = training, told
        self._step_communication_seconds = step_communication_seconds
        self._ranks: list[Train] = []
        self._learnt_steps: dict[str, State] = {}
        self.settings, self.pool_samples, self.now = settings, pool_samples, 0.0
        self.actors = {b.id: Actor(b, random.Random(f"{seed}/{b.id}")) for b in boards}
        prepared = ev.Prepared("simulated", settings, HASH, MODEL, HASH, pool_samples)
        self.rounds = Rounds(begin(prepared, 1, "virtual"), Fleet())
        if idle_seen:
            self.rounds.state.control.idle_watts = {
                name: actor.spec.waiting_watts for name, actor in self.actors.items() if actor.spec.metered
            }
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.orders: dict[str, Train] = {}
        self.notes: list[ev.Note] = []
        self.finished: ev.Finished | None = None
        self._queue: list[tuple[float, int, ev.Event | Dropped | GivenUp]] = []
        self._count = 0
        self._woken_at = 0.0
        for name, actor in sorted(self.actors.items()):
            self.at(0.0, ev.Born(actor.birth(settings, pool_samples)))
            for dropout in actor.spec.dropouts:
                self.at(dropout.at_seconds, Dropped(name, True))
                self.at(dropout.at_seconds + dropout.for_seconds, Dropped(name, False))

    def at(self, seconds: float, event: ev.Event | Dropped | GivenUp) -> None:
        """Let the event happen at that virtual second (or now, if that is past)."""
        self._count += 1
        heapq.heappush(self._queue, (max(seconds, self.now), self._count, event))

    def run(self, until_seconds: float = 1e9) -> "World":
        """Let time pass until the run is over (closing accounts included), pauses, or the time is up."""
        while self.now < until_seconds and (self._queue or self.finished is None):
            if self.rounds.state.paused and self.finished is None:
                break
            self._wake()
            self.now, _, event = heapq.heappop(self._queue)
            if isinstance(event, Dropped):
                self._drop(event)
            elif isinstance(event, GivenUp):
                self._give_up(event)
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
            actor, report = self.actors[event.report.board], event.report
            stale = report.stage == "trained" and actor.report is not report
            return not actor.alive or report.boot != actor.boot or stale
        return False

    def _drop(self, event: Dropped) -> None:
        actor = self.actors[event.board]
        actor.alive = not event.down
        if event.down:
            if isinstance(actor.order, Train) and self.settings.regime in SYNCHRONOUS:
                hung = [a for a in self.actors.values() if a is not actor and a.steps_with(actor, self.now)]
                for other in hung:
                    other.report = None  # its next collective does not end
                lost = tuple(a.order.order for a in hung if a.order is not None)
                self.at(self.now + COLLECTIVE_SECONDS, GivenUp(lost))
            actor.order = actor.report = None
            self.at(self.now, ev.Born(actor.birth(self.settings, self.pool_samples, "lost")))
        else:
            actor.boot_count += 1
            actor.group, actor.stepping = "", False
            self.at(self.now, ev.Born(actor.birth(self.settings, self.pool_samples)))

    def _give_up(self, event: GivenUp) -> None:
        for actor in self.actors.values():
            if actor.alive and actor.order is not None and actor.order.order in event.orders:
                actor.give_up(self.now)
                state = actor.state("waiting", self.rounds.state.term)
                self.at(self.now, ev.Heard(structs.replace(state, abandoned=actor.order.order, blames=())))

    def _carry_out(self, effects: list[ev.Effect]) -> None:
        for effect in effects:
            match effect:
                case ev.Send():
                    self._deliver(effect.board, effect.message)
                case ev.Collect():
                    self.at(self._uploaded(self.actors[effect.board]), ev.Stored(effect.board, effect.order))
                case ev.Fold() | ev.Apply():
                    self._merge(effect)
                case ev.Evaluate():
                    self._measure(effect)
                case ev.Record():
                    self._record(effect.table, effect.row)
                case ev.Note():
                    self.notes.append(effect)
                case ev.Finished():
                    self.finished = effect
        by_silo: dict[str, list[Train]] = {}
        for order in self._ranks:
            by_silo.setdefault(order.rendezvous.silo if order.rendezvous else "", []).append(order)
        self._ranks = []
        for orders in by_silo.values():
            self._step_together(orders)

    def _merge(self, effect: ev.Fold | ev.Apply) -> None:
        if isinstance(effect, ev.Fold):
            if self._training is not None:
                self._training.fold(effect)
            self.at(self.now, ev.Folded(effect.round, MODEL))
            return
        if self._training is not None:
            self._training.apply(effect)
        self.at(self.now, ev.Applied(effect.version, MODEL))

    def _uploaded(self, actor: Actor) -> float:
        """When the update is there. Of ranks the slowest link counts: any may be the one to send it."""
        ranks = actor.order.rendezvous if isinstance(actor.order, Train) else None
        if ranks is None:
            return self.now + actor.spec.upload_seconds
        return max(self.actors[board].idle_seconds for board in ranks.boards)

    def _record(self, table: str, row: dict[str, Any]) -> None:
        row = {**row, "at_seconds": self.now}
        self.rows.setdefault(table, []).append(row)
        if self._told is not None:
            self._told(table, row)

    def _measure(self, effect: ev.Evaluate) -> None:
        if self._training is not None:
            figures = self._training.measure(effect.version)
            self._record("evaluation", {"run": effect.run, "round": effect.round, **figures})

    def _deliver(self, board: str, message: Order) -> None:
        actor = self.actors.get(board)
        if actor is None or not actor.alive or isinstance(message, Accepted):
            return
        if isinstance(message, Abort | Join):
            self._lead(actor, message)
            return
        same = actor.order is not None and actor.order.order == getattr(message, "order", "")
        if isinstance(message, Train | Attend) and same:
            self.at(self.now, ev.Heard(actor.state("training", message.term)))
            return
        closed = actor.close(self.now)
        if closed is not None:
            self.at(self.now, ev.Reported(closed))
        if isinstance(message, Attend):
            actor.attend(message, self.now)
            self.at(self.now, ev.Heard(actor.state("waiting", message.term)))
        if isinstance(message, Train):
            self.orders[message.order] = message
            if message.rendezvous is not None:
                actor.take(message, self.now)
                self.at(self.now, ev.Heard(actor.ready(message.rendezvous)))
                return
            ready = actor.train(message, self.now)
            if self._training is not None:
                learnt = self._training.train(message)
                actor.learnt(learnt.loss_sum, learnt.sums)
            self._answer(actor, message, ready)

    def _lead(self, actor: Actor, message: Abort | Join) -> None:
        """What a rank is told beside its order: to step with the others, or to stop."""
        order = actor.order
        if not isinstance(order, Train) or order.order != message.order or order.rendezvous is None:
            return
        if isinstance(message, Join):
            if actor.group != message.group or not actor.stepping:
                actor.group, actor.stepping = message.group, True
                self._ranks.append(order)
            return
        actor.give_up(self.now)
        self.at(self.now, ev.Heard(actor.state("waiting", message.term)))

    def _answer(self, actor: Actor, order: Train, ready: float) -> None:
        self.at(self.now, ev.Heard(actor.state("training", order.term)))
        assert actor.report is not None
        self.at(ready, ev.Reported(actor.report))

    def _step_together(self, orders: list[Train]) -> None:
        actors = [self.actors[board_of(order.order)] for order in orders]
        drawn = [a.spec.draw(a.rng, self.now, order.samples) for a, order in zip(actors, orders, strict=True)]
        steps = steps_for(sum(order.samples for order in orders), orders[0].batch)
        ranks = orders[0].rendezvous
        silo = ranks.silo if ranks is not None else ""
        found = together(
            [order.samples for order in orders],
            [seconds / order.samples for (seconds, _), order in zip(drawn, orders, strict=True)],
            steps,
            step_communication_seconds=self._step_communication_seconds,
            stepwise=ranks.stepwise if ranks is not None else None,
            boards=[actor.spec.id for actor in actors],
            learnt=self._learnt_steps.get(silo),
        )
        self._learnt_steps[silo] = found.learnt
        learnt = self._training.train_together(orders) if self._training is not None else {}
        for i, (actor, order) in enumerate(zip(actors, orders, strict=True)):
            ready = actor.spend(
                order,
                self.now,
                (found.compute_seconds[i], drawn[i][1]),
                wait=found.wait_seconds[i],
                communication=found.communication_seconds,
                steps=steps,
                samples=found.samples[i],
            )
            if order.order in learnt:
                actor.learnt(learnt[order.order].loss_sum, learnt[order.order].sums)
            self._answer(actor, order, ready)
