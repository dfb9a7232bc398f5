"""The board's daemon: one loop over one queue; feeds events to the state machine, whose effects `hands`
carries out.

It decides nothing about orders (`state` does) and imports neither torch, numpy, typer nor rich.
"""

from __future__ import annotations

import logging
import time
from collections import Counter
from collections.abc import Callable
from queue import Empty
from typing import Any, cast, get_args

from msgspec import Struct

from edged import events, link, messages, orders, work
from edged.board import Board, Cue
from edged.child import Died, Said
from edged.coach import Plan, Shelves
from edged.hands import Hands, UpdateReady
from edged.messages import MessageError, decode
from edged.notify import Notify
from edged.state import ImpossibleError, step
from edged.stock import Stock
from edged.topics import Address, Topics
from edged.transfers import TransferError
from probes.meter import Live

log = logging.getLogger("edged")

TURN_SECONDS = 0.25
IDLE_SECONDS = 1.0
"""Of a board without an order nothing is due sooner: every turn is a wake-up of its processor."""
POWER_SECONDS = 1.0


class Stop(Struct, frozen=True):
    """Put on the queue to end the loop."""

    reason: str


class Agent:
    """`link.events` is the queue. The parts are given, so that tests and the daemon differ by them alone."""

    def __init__(
        self,
        plan: Plan,
        *,
        boot: str,
        link: link.Link,
        hands: Hands,
        notify: Notify,
        clock: Callable[[], float] = time.monotonic,
        note: str = "",
    ) -> None:
        """`note` is said behind every status line."""
        self.plan = plan
        self.board = Board(plan.board, boot)
        self.counters: Counter[str] = Counter()
        self._topics = Topics(plan.fleet)
        self._link = link
        self._hands = hands
        self._notify = notify
        self._clock = clock
        self._note = f"; {note}" if note else ""
        self._ticked = self._powered = clock()
        self._watts = "watts not known yet"
        self._troubles: dict[str, str] = {}
        self._routes = self._handlers()

    def run(self) -> None:
        """Serve until a Stop comes; then end the order, the child and the link."""
        self.begin()
        while True:
            try:
                event = self._link.events.get(timeout=TURN_SECONDS if self.board.order else IDLE_SECONDS)
            except Empty:
                event = None
            if isinstance(event, Stop):
                return self.end(event.reason)
            self.turn(event)

    def begin(self) -> None:
        """Connect, in the background. Being healthy does not depend on a broker."""
        self._link.subscribe(self._topics.filter("order", board=self.plan.board))
        self._link.subscribe(self._topics.filter("board_model", board=self.plan.board))
        self._link.subscribe(self._topics.filter("model"))
        self._link.start()
        self._notify.ready()

    def end(self, reason: str) -> None:
        """Close the order, end the child, say farewell: within five seconds."""
        log.info("ending: %s", reason)
        self._notify.stopping()
        self.feed(events.Leave(reason))
        self._hands.close()
        self._link.close()

    def turn(self, event: object | None) -> None:
        """One event, and what is due by the clock."""
        if event is not None:
            self._handle(event)
        now = self._clock()
        if now - self._ticked >= TURN_SECONDS:
            self._ticked = now
            self._hands.tend(now)
            self.feed(events.Tick())
            if now - self._powered >= POWER_SECONDS:
                self._powered = now
                self._watts = watts_in_words(self._hands.say_power(self.board))
            self._notify.status(self._status() + self._note)
            self._notify.alive()

    def feed(self, event: events.Event, at_seconds: float | None = None) -> None:
        """An event for the state machine, and its effects. `at_seconds` dates it for the books, default
        now.
        """
        now = self._clock()
        try:
            found = step(self.board, event, now)
        except ImpossibleError as error:
            self.counters["impossible_events"] += 1
            log.warning("ignored: %s", error)
            return
        if found.cue is Cue.STRAY:
            self.counters["stray_orders"] += 1
        if found.cue is Cue.STRAY or found.board.phase is not self.board.phase:
            level = logging.DEBUG if _short(found.board) and found.cue is not Cue.STRAY else logging.INFO
            log.log(level, "%s -> %s: %s", self.board.phase.value, found.board.phase.value, found.reason)
        if found.cue in {Cue.RIVAL, Cue.ALONE}:
            log.warning("%s", found.reason)
        self.board = found.board
        self._hands.carry_out(found, self.counters, now, at_seconds)

    def _handle(self, event: object) -> None:
        handler = self._routes.get(type(event))
        if handler is not None:
            handler(event)
        elif isinstance(event, _EVENTS):
            self.feed(event)
        else:
            self.counters["unknown_events"] += 1

    def _handlers(self) -> dict[type, Callable[[Any], None]]:
        return {
            link.Up: self._up,
            link.Down: self._down,
            link.Stage: lambda event: log.warning("link: %s", event.reason),
            link.Message: self._message,
            link.Delivered: lambda event: self._hands.settled(event.token),
            link.Refused: self._refused,
            Said: lambda event: self._child_said(event.word),
            Died: self._child_died,
            UpdateReady: self._update_ready,
            Stock: self._stocked,
            Shelves: self._hands.move,
        }

    def _up(self, event: link.Up) -> None:
        log.info("link: up, connection %d", event.connection)
        self._hands.reached(event.address)
        self.feed(events.LinkUp(event.connection))

    def _down(self, event: link.Down) -> None:
        log.warning("link: down: %s", event.reason)
        self.feed(events.LinkDown())

    def _refused(self, event: link.Refused) -> None:
        self.counters["refused_by_broker"] += 1
        log.error("%s was not sent: %s", event.topic, event.reason)
        if event.token is not None:
            self._hands.settled(event.token)

    def _message(self, event: link.Message) -> None:
        address = self._topics.parse(event.topic)
        if address is not None and address.route.message == "chunk":
            self._chunk(address, event.payload)
        elif address is not None and address.route.name in {"order", "birth"}:
            self._word(address, event)
        else:
            self.counters["stray_messages"] += 1

    def _word(self, address: Address, event: link.Message) -> None:
        birth = address.route.name == "birth"
        if event.retain and not birth:
            self.counters["retained_orders"] += 1  # orders are never retained: somebody's mistake
            return
        try:
            if birth:
                self.feed(_foreign(event))
            else:
                self._obey(_order(event.payload))
        except MessageError as error:
            self.counters["malformed_messages"] += 1
            log.warning("%s: not understood: %s", event.topic, error)
            if birth:
                self.feed(events.Foreign(None, event.retain))

    def _obey(self, order: messages.Order) -> None:
        """An order. One that comes after an accepted one says so: the acceptance may have been lost."""
        before = order.accepted if isinstance(order, messages.Train | messages.Attend) else None
        if before == self.board.order_id and self.board.phase is events.Phase.UPLOADING:
            self.feed(messages.Accepted(before, order.boot, order.term))
        self.feed(order)

    def _chunk(self, address: Address, payload: bytes) -> None:
        try:
            held, sha256 = self._hands.take_chunk(address.version, address.chunk, payload)
        except (TransferError, OSError) as error:
            self.feed(events.ModelFailed(address.version, f"model {address.version}: {error}"))
            return
        if held is not None:
            self.feed(events.Chunks(address.version, held))
        if sha256 is not None:
            self.feed(events.ModelReady(address.version, sha256))

    def _child_said(self, word: work.Word) -> None:
        now = self._clock()
        self._hands.heard(word, self.board, now)
        if isinstance(word, work.Ready):
            if self.board.order_id:
                self.feed(events.Alive(self.board.order_id))
        elif isinstance(word, work.Prepared):
            self.feed(events.Alive(word.order))
        elif isinstance(word, work.Mustered):
            self.feed(events.Mustered(word.order, word.readiness))
        elif isinstance(word, work.Met):
            self.feed(events.Met(word.order, word.group))
        elif isinstance(word, work.Begun):
            self.feed(events.Began(word.order, word.at_seconds), min(word.at_seconds, now))
        elif isinstance(word, work.Stepped):
            self.feed(events.Progress(word.order, word.samples))
        elif isinstance(word, work.Failed):
            self.feed(events.Broke(word.order, word.reason, word.blames))
        else:
            ended = events.Ended(word.order, word.at_seconds, word.samples)
            self.feed(ended, min(word.at_seconds, now))

    def _child_died(self, event: Died) -> None:
        log.error("order %s: %s", event.order, event.reason)
        self.counters["children_died"] += 1
        self._hands.died(event.order, self._clock())
        self.feed(events.Broke(event.order, event.reason))

    def _update_ready(self, event: UpdateReady) -> None:
        if event.manifest is None:
            self.feed(events.Broke(event.order, f"the update cannot be read: {event.fault}"))
        elif self._hands.offer(event.order, event.manifest, self.board):
            self.feed(events.Described(event.order, event.manifest))

    def _stocked(self, stock: Stock) -> None:
        before, self._troubles = self._troubles, stock.troubles
        for what, why in stock.troubles.items():
            if before.get(what) != why:
                log.warning("%s %s", what, why)
        for what in before.keys() - stock.troubles.keys():
            log.info("%s is as it should be now, or no longer asked for", what)
        self._hands.stocked(stock)
        self.feed(stock.can)

    def _status(self) -> str:
        now = self._link.status()
        if now.stage != "up":
            where = f"{now.host}:{now.port}"
            return f"waiting for broker {where} ({now.stage})" + (f": {now.reason}" if now.reason else "")
        order = self.board.order
        order_now = f", {orders.described(order)}" if order else ""
        reason = f": {self.board.reason}" if self.board.reason else ""
        return f"{self.board.phase.value}{order_now}{reason}; {self._watts}"


_EVENTS = get_args(events.Event)


def _short(board: Board) -> bool:
    """Whether its order is one of many a second: a line for each step of each would fill the journal."""
    return isinstance(board.order, messages.Train) and board.order.grain == "gradient"


def watts_in_words(live: Live) -> str:
    """The headline now: `4.2 W measured (powercap:package-0)`; why there is none, where there is none."""
    if live.headline_channel_id is None:
        return f"no watts: {live.reason}"
    watts = "watts not known" if live.watts is None else f"{live.watts:.1f} W"
    return f"{watts} {live.basis} ({live.headline_channel_id})"


def _foreign(event: link.Message) -> events.Foreign:
    # Without a payload somebody has cleared what the broker kept.
    birth = decode(messages.Birth, event.payload) if event.payload else None
    return events.Foreign(birth, event.retain)


def _order(payload: bytes) -> messages.Order:
    # A union is no `type` to mypy, and it is one to msgspec.
    return cast("messages.Order", decode(cast("Any", messages.Order), payload))
