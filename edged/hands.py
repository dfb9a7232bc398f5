"""Carries out the state machine's effects: files, child, books and words of the orders.

It decides nothing; what it learns comes back to the agent as an event on the queue.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping
from queue import SimpleQueue

from msgspec import Struct
from msgspec.structs import replace

from edged import events, work
from edged.board import Board
from edged.books import Books, Metering
from edged.cargo import Cargo
from edged.child import Child
from edged.coach import Coach, Plan, Shelves
from edged.events import Act, Effect, Phase
from edged.idle import Idle
from edged.messages import Manifest, Report, Train
from edged.sizing import Sizing
from edged.state import Step
from edged.stock import Stock
from edged.transfers import TransferError
from edged.voice import Voice
from edged.waiting import EMULATED_SECONDS, WAITING_SECONDS, Waiting
from probes.emulated import Activity
from probes.meter import Live

log = logging.getLogger("edged")

_SPOKEN = frozenset({Act.SAY, Act.TRAINED, Act.BIRTH})


class UpdateReady(Struct, frozen=True):
    """The thread that hashes an update is done; without a manifest, `fault` says why."""

    order: str
    manifest: Manifest | None
    fault: str = ""


class Hands:
    """One board's. `queue` is the agent's."""

    def __init__(
        self,
        plan: Plan,
        *,
        voice: Voice,
        meter: Metering,
        cargo: Cargo,
        child: Child,
        activity: Activity,
        queue: SimpleQueue[object],
        max_packet_bytes: Callable[[], int],
        sizing: Sizing | None = None,
    ) -> None:
        self._voice = voice
        self._address = voice.birth.address
        self._meter = meter
        self._waiting = Waiting(meter, EMULATED_SECONDS if plan.emulate else WAITING_SECONDS)
        self._books = Books(meter, self._waiting)
        self._idle = Idle(meter)
        self._cargo = cargo
        self._coach = Coach(
            plan,
            child=child,
            cargo=cargo,
            activity=activity,
            waiting=self._waiting,
            address=lambda: self._address,
            sizing=sizing,
            failed=lambda order, reason: queue.put(events.Broke(order, reason)),
        )
        self._queue = queue
        self._max_packet_bytes = max_packet_bytes
        self._run = ""
        self._rival = ""
        self._finished: work.Finished | None = None
        self._manifest: Manifest | None = None
        self._closed: Report | None = None

    def carry_out(
        self, found: Step, counters: Mapping[str, int], now: float, at_seconds: float | None = None
    ) -> None:
        """A step's effects. `at_seconds` is the instant at which the part of the order's time changed."""
        board = found.board
        self._know_rival(board)
        for effect in found.effects:
            if effect.act not in _SPOKEN:
                self._do(effect, board, now)
        self._books.enter(board.part, now if at_seconds is None else at_seconds)
        if board.phase is not Phase.FETCHING:
            self._cargo.drop()
        # What is said comes last: books and files are then as it says.
        for effect in found.effects:
            if effect.act is Act.TRAINED:
                self._voice.say_report(self._report(board, "trained", effect.about, now))
        self._voice.say_birth(board, again=any(effect.act is Act.BIRTH for effect in found.effects))
        if any(effect.act is Act.SAY for effect in found.effects):
            self._voice.say_state(board, counters)

    def heard(self, word: work.Word, board: Board, now: float) -> None:
        """A word of the child, before the state machine hears it."""
        self._coach.heard(word, now)
        if isinstance(word, work.Finished):
            if _trains(board, word.order):
                self._finished = word
            else:
                self._cargo.discard(word.order)

    def died(self, order: str, now: float) -> None:
        """The child died while it had the order."""
        self._coach.rested(order, now)

    def reached(self, address: str) -> None:
        """The broker is reached from this address, which other boards may reach as well. A board that starts
        before its network has none until then, and with another lease another.
        """
        if address and address != self._address:
            self._address = address
            self._voice.change_birth(address=address)

    def take_chunk(self, version: str, number: int, payload: bytes) -> tuple[int | None, str | None]:
        """A model chunk. How many are held now (None: not a new one), and the hash once all are.

        Raises TransferError, OSError.
        """
        held = self._cargo.take(version, number, payload)
        return held, (self._cargo.finish() if held is not None else None)

    def settled(self, token: int) -> None:
        """The broker took or refused a message."""
        self._cargo.settled(token)

    def offer(self, order: str, manifest: Manifest, board: Board) -> bool:
        """An update is hashed; False, and deleted, when its order is not being trained any more."""
        if not _trains(board, order):
            self._cargo.discard(order)
            return False
        self._manifest = manifest
        self._cargo.offer(order, manifest)
        return True

    def move(self, shelves: Shelves) -> None:
        """Pools and tasks are elsewhere now."""
        self._coach.move(shelves)

    def stocked(self, stock: Stock) -> None:
        """What can be trained is known."""
        self._voice.change_birth(**stock.offer)

    def say_power(self, board: Board) -> Live:
        """One line of telemetry; what it says."""
        live = self._meter.live()
        self._idle.look(live.monotonic_seconds, idle=board.phase is Phase.IDLE)
        waits = board.can is not None and board.phase in {Phase.IDLE, Phase.WAITING}
        self._waiting.look(live.monotonic_seconds, waiting=waits or self._coach.holding)
        self._voice.say_power(board, live, self._books.order_joules())
        return live

    def tend(self, now: float) -> None:
        """Now and then."""
        self._coach.tend(now)

    def close(self) -> None:
        """The process ends."""
        self._coach.close()
        self._cargo.clear()

    def _do(self, effect: Effect, board: Board, now: float) -> None:
        acts: dict[Act, Callable[[], object]] = {
            Act.OPEN: lambda: self._open(board, now),
            Act.LOSE: self._books.lose,
            Act.CLOSE: lambda: self._close(board, effect.about, now),
            Act.CLOSED_AGAIN: self._closed_again,
            Act.FETCH: lambda: self._fetch(board),
            Act.WANT: lambda: self._want(board),
            Act.TRAIN: lambda: self._coach.train(_train(board)),
            Act.JOIN: lambda: self._join(board),
            Act.CANCEL: lambda: self._coach.cancel(effect.about),
            Act.KILL: lambda: self._coach.kill(now),
            Act.DESCRIBE: lambda: self._describe(effect.about),
            Act.UPLOAD: lambda: self._upload(effect),
            Act.DISCARD: lambda: self._cargo.discard(effect.about),
            Act.FORGET: lambda: self._cargo.forget(effect.about),
        }
        acts[effect.act]()

    def _open(self, board: Board, now: float) -> None:
        self._finished, self._manifest = None, None
        if board.order is not None and board.order.run != self._run:
            self._run = board.order.run
            self._meter.new_run()
        self._cargo.sweep(self._run)
        self._books.open(board.order_id, now)

    def _close(self, board: Board, order: str, now: float) -> None:
        self._closed = self._report(board, "closed", order, now)
        self._books.close()
        self._voice.say_report(self._closed)

    def _closed_again(self) -> None:
        if self._closed is not None:
            self._voice.say_report(self._closed)

    def _report(self, board: Board, stage: str, order: str, now: float) -> Report:
        done = self._finished
        split = done.split if done is not None else None
        bare = Report(
            board=board.board,
            boot=board.boot,
            order=order,
            stage=stage,
            term=board.term,
            parts=self._books.parts(now, split),
            energy=self._books.energy(split),
        )
        if done is None:
            return bare
        return replace(
            bare,
            samples=done.samples,
            steps=done.steps,
            steady=self._books.steady(done),
            loss_sum=done.loss_sum,
            metrics=done.metrics,
            peak_memory_bytes=done.peak_memory_bytes,
            behind_pace_steps=done.behind_pace_steps,
            manifest=self._manifest,
            synchronous=done.synchronous,
        )

    def _fetch(self, board: Board) -> None:
        order = _train(board)
        try:
            self._cargo.fetch(order.model, order.manifest)
        except (TransferError, OSError) as error:
            self._queue.put(events.ModelFailed(order.model, f"model {order.model}: {error}"))

    def _want(self, board: Board) -> None:
        self._voice.say_want(board, _train(board).model, self._cargo.missing())

    def _join(self, board: Board) -> None:
        if board.join is not None:
            self._coach.meet(board.join)

    def _describe(self, order: str) -> None:
        """Hashing takes a second for 100 MB; the loop goes on meanwhile."""

        def hash_it() -> None:
            try:
                manifest = self._cargo.describe(order, self._max_packet_bytes())
                self._queue.put(UpdateReady(order, manifest))
            except (TransferError, OSError) as error:
                self._queue.put(UpdateReady(order, None, str(error)))

        threading.Thread(target=hash_it, name="edged-hash", daemon=True).start()

    def _upload(self, effect: Effect) -> None:
        self._cargo.upload(effect.about, effect.ranges, effect.window)

    def _know_rival(self, board: Board) -> None:
        rival = f"{board.rival.host or '?'} at {board.rival.address or '?'}" if board.rival else ""
        if rival != self._rival:
            self._rival = rival
            self._voice.change_birth(rival=rival)


def _trains(board: Board, order: str) -> bool:
    """Whether the order is still wanted: it may have been called off between two words of the child."""
    return board.phase is Phase.TRAINING and board.order_id == order


def _train(board: Board) -> Train:
    """The active order, which the state machine has seen to be one to train."""
    assert isinstance(board.order, Train)
    return board.order
