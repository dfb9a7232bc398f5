"""An asynchronous run and all around it that can go wrong: messages lost or doubled, kills of any side."""

from collections import Counter
from typing import Any

import msgspec
from msgspec.structs import replace

from coordinator import events as ev
from coordinator.fleet import Fleet
from coordinator.rounds import Rounds
from coordinator.run import RunState, begin
from edged.controls import AsynchronousSettings
from edged.messages import (
    Accepted,
    Attend,
    Energy,
    Part,
    Parts,
    Refused,
    Report,
    StandBy,
    State,
    Steady,
    Train,
)
from tests.coordinator.play import MODEL, birth, settings

SPEEDS = {"a": 400.0, "b": 200.0, "c": 100.0, "d": 50.0}


class Worker:
    """A board as the coordinator sees it: it obeys the newest order, and says again what it said."""

    def __init__(self, name: str) -> None:
        self.name, self.count = name, 1
        self.order: Train | Attend | None = None
        self.done = False
        self.since = 0.0
        self.accepted: list[str] = []
        self.refused: list[str] = []

    @property
    def boot(self) -> str:
        return f"{self.name}-{self.count}"

    def hear(self, message: object, now: float) -> None:
        if isinstance(message, Train | Attend):
            if self.order is None or self.order.order != message.order:
                self.order, self.done, self.since = message, False, now
        elif isinstance(message, Accepted):
            self.accepted.append(message.order)
        elif isinstance(message, Refused):
            self.refused.append(message.order)
        elif isinstance(message, StandBy):
            self.order = None

    def state(self, term: int) -> State:
        order = self.order.order if self.order else None
        return State(self.name, self.boot, 1, "training" if order else "idle", order, term=term)

    def report(self, seconds: float | None = None) -> Report:
        assert isinstance(self.order, Train)
        self.done = True
        spent = self.order.samples / SPEEDS[self.name] if seconds is None else seconds
        return Report(
            self.name,
            self.boot,
            self.order.order,
            "trained",
            self.order.term,
            self.order.samples,
            steps=1,
            parts=Parts(Part(spent, 2 * spent)),
            energy=Energy(2 * spent, basis="measured"),
            steady=Steady(self.order.samples, spent, 2 * spent),
            loss_sum=float(self.order.samples),
            manifest=MODEL,
        )


class Pushers:
    """Carries out effects as the coordinator's shell does: what stands after a save is done once it is saved.

    `rows` are what the store has; `made` says by which order each version file on the disk was made.
    """

    def __init__(self, names: str = "abc", *, period: int = 100, periods: int = 3, **changes: Any) -> None:
        asynchronous = AsynchronousSettings(**changes.pop("asynchronous", {}))
        plain = {"budget": period, "rounds": periods, "regime": "asp", "policy": "equal"}
        self.settings = settings(**{**plain, "asynchronous": asynchronous, **changes})
        prepared = ev.Prepared("run1", self.settings, "h", MODEL, "f", 5000)
        self.now, self.term = 0.0, 1
        self.rounds = Rounds(begin(prepared, 1, "coord-1"), Fleet(), "host")
        self.workers = {name: Worker(name) for name in names}
        self.durable = b""
        self.rows: dict[str, list[dict[str, Any]]] = {}
        self.unsaved: list[ev.Record] = []
        self.collects: dict[str, ev.Collect] = {}
        self.applies: list[ev.Apply] = []
        self.made: dict[str, str] = {}
        self.notes: Counter[str] = Counter()
        self.mail: list[tuple[str, object]] = []
        self.deliveries: list[ev.Deliver] = []
        self.finished: ev.Finished | None = None
        self.ever: list[ev.Apply] = []
        self.feed(prepared)
        for name in names:
            self.feed(ev.Born(birth(name, self.workers[name].boot)))
        self.wait(2.5)

    @property
    def state(self) -> RunState:
        return self.rounds.state

    def feed(self, event: ev.Event) -> None:
        for effect in self.rounds.handle(event, self.now):
            self._do(effect)
        if self.unsaved:
            self._save_rows()

    def wait(self, seconds: float) -> None:
        self.now += seconds
        self.feed(ev.Woken())

    def _do(self, effect: ev.Effect) -> None:
        match effect:
            case ev.Save():
                self.durable = msgspec.json.encode(self.state)
                self._save_rows()
            case ev.Record():
                self.unsaved.append(effect)
            case ev.Send():
                self.mail.append((effect.board, effect.message))
            case ev.Deliver():
                self.deliveries.append(effect)
            case ev.Collect():
                self.collects[effect.order] = effect
            case ev.Discard():
                self.collects.pop(effect.order, None)
            case ev.Apply():
                self.applies.append(effect)
                self.ever.append(effect)
            case ev.Note():
                self.notes[effect.counter] += 1
            case ev.Finished():
                self.finished = effect

    def _save_rows(self) -> None:
        for record in self.unsaved:
            self.rows.setdefault(record.table, []).append(record.row)
        self.unsaved.clear()

    def post(self, lose: bool = False) -> None:
        """The mail of the moment is delivered, or lost; boards that heard an order say so."""
        mail, self.mail = self.mail, []
        for board, message in mail:
            if not lose:
                self.workers[board].hear(message, self.now)
        for board in dict.fromkeys(board for board, _ in mail) if not lose else ():
            self.say(board)

    def say(self, board: str) -> None:
        self.feed(ev.Heard(self.workers[board].state(self.term)))

    def report(self, board: str) -> None:
        worker = self.workers[board]
        if isinstance(worker.order, Train):
            self.feed(ev.Reported(replace(worker.report(), term=self.term)))

    def abandon(self, board: str, reason: str = "no memory") -> None:
        """The board says that it cannot do its order."""
        worker = self.workers[board]
        if worker.order is not None:
            said = replace(worker.state(self.term), abandoned=worker.order.order, reason=reason)
            self.feed(ev.Heard(said))

    def close(self, board: str, order: str, **parts: Part) -> None:
        """The board closes the account of an order."""
        report = Report(board, self.workers[board].boot, order, "closed", self.term, 1, parts=Parts(**parts))
        self.feed(ev.Reported(report))

    def upload(self, order: str | None = None, error: str | None = None) -> None:
        """The oldest update that is being fetched is there."""
        order = order or next(iter(self.collects), None)
        if order is not None:
            effect = self.collects.pop(order)
            self.feed(ev.Stored(effect.board, effect.order, error))

    def apply(self) -> None:
        """The worker has made the next version."""
        if self.applies:
            effect = self.applies.pop(0)
            self.made[effect.version] = effect.order
            self.feed(ev.Applied(effect.version, MODEL))

    def push(self, board: str, seconds: float = 1.0) -> None:
        """One push from its order to the next."""
        self.now += seconds
        self.post()
        self.report(board)
        self.upload()
        self.apply()
        self.post()

    def restart_board(self, board: str) -> None:
        worker = self.workers[board]
        worker.count += 1
        worker.order, worker.done = None, False
        self.feed(ev.Born(birth(board, worker.boot)))

    def kill_coordinator(self) -> None:
        """Only what was saved is left; files of versions stay as they are, the boards stay as they are."""
        state = msgspec.json.decode(self.durable, type=RunState)
        self.rounds = Rounds(state, Fleet(), "host")
        self.mail, self.unsaved, self.applies = [], [], []
        self.collects = {}
        self.term += 1
        self.now += 1.0
        self.feed(ev.Restored(self.term, f"coord-{self.term}"))
        for name, worker in self.workers.items():
            self.feed(ev.Born(birth(name, worker.boot)))
            self.say(name)

    def places(self) -> list[tuple[int, int]]:
        """(epoch, place) of every accepted sample."""
        return [
            (epoch, place)
            for row in self.rows.get("push", ())
            if row["status"] == "accepted"
            for epoch, start, stop in row["pieces"]
            for place in range(start, stop)
        ]

    def settle(self, most: int = 2000) -> None:
        """Whatever happened: from here on everything works, until the run is over."""
        for _ in range(most):
            if self.finished is not None:
                return
            self.now += 1.0
            self.post()
            for board in self.workers:
                self.say(board)
                self.post()
                self.report(board)
                self.upload()
                self.apply()
            self.feed(ev.Woken())
        raise AssertionError(f"the run does not end: {self.state.reason}, {self.state.phase}")
