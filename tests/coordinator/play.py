"""A run and the hands that feed it, event by event, for the scenarios of `rounds`."""

import msgspec
from msgspec.structs import replace

from coordinator import events as ev
from coordinator.fleet import Fleet
from coordinator.rounds import Rounds
from coordinator.run import RunState, begin
from edged.controls import RunSettings
from edged.messages import (
    Birth,
    Energy,
    Manifest,
    Part,
    Parts,
    PoolOffer,
    Report,
    Steady,
)

MODEL = Manifest(1000, 1000, "a" * 64)
SPEEDS = {"a": 1000.0, "b": 500.0, "c": 250.0, "d": 250.0}
WATTS = {"a": 10.0, "b": 4.0, "c": 5.0, "d": 5.0}


def settings(**changes: object) -> RunSettings:
    plain = RunSettings(
        "digits", "digits", budget=1000, rounds=3, batch=10, learning_rate=0.1, evaluate=False
    )
    return replace(plain, **changes)


def birth(board: str, boot: str = "", link: str = "up", conn: int = 1) -> Birth:
    pools = {"digits": PoolOffer("f", 5000, ("digits",))}
    return Birth(board, boot or f"boot-{board}", conn, link, tasks={"digits": "h"}, pools=pools)


class Play:
    """A run and the hands that feed it; `said` is what went to each board, newest last."""

    def __init__(self, names: str = "abc", **changes: object) -> None:
        prepared = ev.Prepared("run1", settings(**changes), "h", MODEL, "f", 5000)
        self.rounds = Rounds(begin(prepared, 1, "coord"), Fleet(), "host")
        self.now = 0.0
        self.said: dict[str, list[object]] = {}
        self.effects: list[ev.Effect] = []
        for board in names:
            self.feed(ev.Born(birth(board)))
        self.wait(2.5)

    def feed(self, event: ev.Event) -> list[ev.Effect]:
        effects = self.rounds.handle(event, self.now)
        self.effects += effects
        for effect in effects:
            if isinstance(effect, ev.Send):
                self.said.setdefault(effect.board, []).append(effect.message)
        return effects

    def wait(self, seconds: float) -> list[ev.Effect]:
        self.now += seconds
        return self.feed(ev.Woken())

    @property
    def state(self) -> RunState:
        return self.rounds.state

    def report(self, board: str, **changes: object) -> Report:
        a = self.state.assignments[board]
        seconds = a.samples / SPEEDS[board]
        joules = seconds * WATTS[board]
        plain = Report(
            board,
            a.boot,
            a.order,
            "trained",
            self.state.term,
            a.samples,
            steps=1,
            parts=Parts(Part(seconds, joules)),
            energy=Energy(joules, basis="measured"),
            steady=Steady(a.samples, seconds, joules),
            loss_sum=1.0,
            manifest=MODEL,
        )
        return replace(plain, **changes)

    def train(self, board: str) -> None:
        self.feed(ev.Reported(self.report(board)))
        self.feed(ev.Stored(board, self.state.assignments[board].order))

    def end_round(self, boards: str = "abc") -> list[ev.Effect]:
        self.now += 10
        for board in boards:
            self.train(board)
        return self.feed(ev.Folded(self.state.round, MODEL)) if self.state.phase == "folding" else []

    def notes(self, counter: str) -> list[str]:
        return [e.text for e in self.effects if isinstance(e, ev.Note) and e.counter == counter]

    def rows(self, table: str) -> list[dict[str, object]]:
        return [e.row for e in self.effects if isinstance(e, ev.Record) and e.table == table]

    def shares(self) -> dict[str, int]:
        return {name: a.samples for name, a in self.state.assignments.items()}


def restored(play: Play) -> None:
    """The coordinator is killed and started again, with another clock."""
    state = msgspec.json.decode(msgspec.json.encode(play.state), type=RunState)
    play.rounds = Rounds(state, Fleet(), "host")
    play.now = 5.0
    play.feed(ev.Restored(2, "coord-2"))
