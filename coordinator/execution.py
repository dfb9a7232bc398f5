"""Carries out what `rounds` says is to be done, in its order; a save that fails holds up everything after it.

It decides nothing. Rows and state go to the store together; what needs the run's durable state waits for it.
"""

import logging
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

import msgspec

from coordinator import aggregate, applying
from coordinator import events as ev
from coordinator.store import Row, StoreError
from edged.link import OutboxFullError
from edged.messages import Manifest, encode

if TYPE_CHECKING:
    from coordinator.server import Server

LOG = logging.getLogger(__name__)
RETRY_SECONDS: Final = 1.0


class Execution:
    """The effects of one coordinator; all calls from its loop."""

    def __init__(self, server: "Server") -> None:
        self._server = server
        self._pending: deque[ev.Effect] = deque()
        self._rows: list[Row] = []
        self._merged_orders: list[str] = []
        self._applied: list[ev.Apply] = []
        self.problem = ""
        """Why the store does not take what is to be saved; empty when it does."""
        self._retry_seconds = 0.0

    def carry_out(self, effects: Sequence[ev.Effect], now: float) -> None:
        """Do all of it, or up to a save that fails; the rest follows when saving works again."""
        self._pending.extend(effects)
        if not self.problem:
            self._go_on(now)

    def keep(self, row: Row) -> None:
        """A row of the shell's own, to be saved with the next ones."""
        self._rows.append(row)

    def due(self) -> float | None:
        """When `tick` has something to do."""
        return self._retry_seconds if self.problem else None

    def tick(self, now: float) -> None:
        """Try again what could not be saved."""
        if self.problem and now >= self._retry_seconds:
            self._go_on(now)

    def flush(self, now: float) -> None:
        """Save rows and counters that no save of the run took along."""
        if not self.problem:
            self._saved(now, None)

    def _go_on(self, now: float) -> None:
        while self._pending:
            effect = self._pending[0]
            try:
                if not self._carry_out(effect, now):
                    return
            except Exception as error:
                # One effect that cannot be carried out must not stop the others: rounds repeats what matters.
                LOG.exception("%s could not be carried out", type(effect).__name__)
                text = f"{type(effect).__name__}: {type(error).__name__}: {error}"
                self._server.note(ev.Note("-", "internal_errors", text))
            self._pending.popleft()
        if self._rows:
            self._saved(now, None)

    def _carry_out(self, effect: ev.Effect, now: float) -> bool:
        server = self._server
        match effect:
            case ev.Save():
                return self._save(now)
            case ev.Finished():
                return self._finish(effect, now)
            case ev.Send():
                self._send(effect)
            case ev.Distribute():
                server.distribution.begin(effect.version, effect.boards, now)
            case ev.Deliver() | ev.Apply():
                self._alone(effect, now)
            case ev.Collect():
                server.collection.collect(effect, self._model(effect.model), now)
            case ev.Discard():
                server.collection.discard(effect.order, now)
            case ev.Fold():
                self._fold(effect)
            case ev.Record():
                self._record(effect)
            case ev.Evaluate():
                self._rows.extend(server.runs.measure(effect))
            case ev.Announce():
                server.herald.change()
            case ev.Note():
                server.note(effect)
        return True

    def _alone(self, effect: ev.Deliver | ev.Apply, now: float) -> None:
        """What is of one board: the model it gets, the update it gave."""
        if isinstance(effect, ev.Deliver):
            self._server.distribution.deliver(effect.version, effect.board, now)
        else:
            applying.apply(self._server, effect, self._applied.append)

    def _record(self, effect: ev.Record) -> None:
        self._rows.append(Row(str(effect.row["run"]), effect.table, effect.row))
        self._server.tell(effect.table, effect.row)
        if effect.table == "closed":
            self._server.runs.closed(effect.row["order"])

    def _send(self, effect: ev.Send) -> None:
        topic = self._server.topics.of("order", board=effect.board)
        try:
            self._server.link.publish(topic, encode(effect.message))
        except OutboxFullError as error:
            self._server.note(ev.Note(effect.board, "unsent_orders", str(error)))

    def _save(self, now: float) -> bool:
        rounds = self._server.rounds
        if rounds is None:
            return True
        state = (rounds.state.run, msgspec.json.encode(rounds.state))
        if not self._saved(now, state):
            return False
        if self._merged_orders and rounds.state.phase != "folding":
            # The merge that these went into is durable now.
            for order in self._merged_orders:
                self._server.store.checkpoints.update(order).unlink(missing_ok=True)
            self._merged_orders.clear()
            self._server.runs.prune()
        durable = [done for done in self._applied if applying.number(done.version) <= rounds.state.merges]
        for done in durable:
            self._server.store.checkpoints.update(done.order).unlink(missing_ok=True)
            self._applied.remove(done)
        if durable:
            self._server.runs.prune()
        return True

    def _saved(self, now: float, state: tuple[str, bytes] | None) -> bool:
        counts = self._server.counters.changed()
        if not (self._rows or counts or state):
            return True
        try:
            self._server.store.save(self._rows, counts, state)
        except StoreError as error:
            return self._failed(error, now)
        self._rows.clear()
        self._server.counters.saved()
        self._works_again()
        return True

    def _finish(self, effect: ev.Finished, now: float) -> bool:
        try:
            self._server.store.end_run(effect.run, effect.reason, effect.complete)
        except StoreError as error:
            return self._failed(error, now)
        self._works_again()
        self._server.store.checkpoints.drop_updates(effect.run)
        self._server.runs.prune()
        self._server.runs.finished(now)
        self._server.tell("finished", msgspec.to_builtins(effect))
        return True

    def _failed(self, error: StoreError, now: float) -> bool:
        if not self.problem:
            LOG.error("%s", error)
        self.problem, self._retry_seconds = str(error), now + RETRY_SECONDS
        self._server.herald.change()
        return False

    def _works_again(self) -> None:
        if self.problem:
            LOG.warning("the store takes what is saved again")
            self.problem = ""
            self._server.herald.change()

    def _model(self, version: str) -> Path:
        rounds = self._server.rounds
        assert rounds is not None
        return self._server.store.checkpoints.model(version or rounds.state.version)

    def _fold(self, effect: ev.Fold) -> None:
        server, checkpoints = self._server, self._server.store.checkpoints
        assert server.rounds is not None
        chunk_bytes = server.rounds.state.manifest.chunk_bytes
        updates = [(checkpoints.update(order), samples) for _, order, samples in effect.items]
        target = checkpoints.model(effect.version)
        orders = [order for _, order, _ in effect.items]

        def merged(result: object) -> None:
            if isinstance(result, Manifest):
                self._merged_orders.extend(orders)
                server.feed(ev.Folded(effect.round, result))
            else:
                text = result.strerror if isinstance(result, OSError) else str(result)
                server.feed(ev.FoldFailed(effect.round, f"{text or type(result).__name__}"))

        server.work(lambda: aggregate.fold(updates, target, chunk_bytes), merged)
