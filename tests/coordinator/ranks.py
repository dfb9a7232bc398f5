"""A run of synchronous ranks and the hands that feed it: boards get ready, join, train, die, come back."""

from msgspec.structs import replace

from coordinator import events as ev
from coordinator.assignments import Assignment
from coordinator.group import Group
from edged.groups import Readiness, Synchronous
from edged.messages import Abort, Birth, Join, PoolOffer, State, Train
from tests.coordinator.play import MODEL, Play, birth


def rank_birth(board: str, number: int = 0, silo: str = "", samples: int = 5000, **changes: object) -> Birth:
    """A board with an address of its own; `number` counts its processes."""
    pools = {"digits": PoolOffer(f"f-{silo}" if silo else "f", samples, ("digits",))}
    place = {"host": board, "address": f"10.0.0.{ord(board[0]) - 96}"}
    return replace(birth(board, f"boot-{board}-{number}"), pools=pools, silo=silo, **{**place, **changes})


class Ranks(Play):
    """`ddp` unless told otherwise; `starts` counts each board's processes."""

    def __init__(self, names: str = "abc", births: tuple[Birth, ...] = (), **changes: object) -> None:
        self.starts = dict.fromkeys(names, 0)
        super().__init__("", **{"regime": "ddp", "batch": 100, **changes})
        for one in births or [rank_birth(board) for board in names]:
            self.feed(ev.Born(one))
        self.wait(2.5)

    def group(self, silo: str = "all") -> Group:
        return self.state.groups[silo]

    def order(self, board: str) -> Train:
        """The newest order to train that it was given."""
        return [m for m in self.said[board] if isinstance(m, Train)][-1]

    def joined(self, board: str) -> Join:
        return [m for m in self.said[board] if isinstance(m, Join)][-1]

    def a(self, board: str) -> Assignment:
        return self.state.assignments[board]

    def say(self, board: str, **changes: object) -> None:
        a = self.a(board)
        plain = State(board, a.boot, 1, "training", a.order, term=self.state.term)
        self.feed(ev.Heard(replace(plain, **changes)))

    def ready(self, boards: str = "abc", holds: str = "", **changes: object) -> None:
        for board in boards:
            order = self.order(board)
            assert order.rendezvous is not None
            address = self.rounds.fleet.boards[board].birth.address
            said = Readiness(order.order, order.rendezvous.plan, "d" * 64, "2.6.0", address, 4000, holds)
            self.say(board, ready=replace(said, **changes))

    def meet(self, boards: str = "abc", holds: str = "") -> None:
        self.ready(boards, holds)
        for board in boards:
            self.say(board, joined=(self.a(board).join and self.joined(board).group) or "")

    def trained(self, board: str, silo: str = "all", window: float = 2.0, **changes: object) -> None:
        group = self.group(silo)
        said = Synchronous(group.name, 0, len(group.boards), group.samples, 1.0, window, 0.5, 0.0, "sum")
        self.feed(ev.Reported(replace(self.report(board), synchronous=said, steps=group.steps, **changes)))

    def stored(self, board: str, error: str | None = None) -> None:
        self.feed(ev.Stored(board, self.a(board).order, error))

    def whole_round(self, boards: str = "abc", holds: str = "", window: float = 2.0) -> None:
        self.meet(boards, holds)
        self.now += 10
        for board in boards:
            self.trained(board, window=window)
        self.stored(self.group().uploader)
        if self.state.phase == "folding":
            self.feed(ev.Folded(self.state.round, MODEL))

    def die(self, board: str) -> None:
        """Its process is replaced by another."""
        self.starts[board] += 1
        self.feed(ev.Born(rank_birth(board, self.starts[board])))

    def stop(self, boards: str, **changes: object) -> None:
        """They obey an abort."""
        for board in boards:
            self.say(board, phase="waiting", reason="aborted", **changes)

    def aborted(self, board: str) -> list[Abort]:
        return [m for m in self.said[board] if isinstance(m, Abort)]

    def collected(self) -> list[str]:
        return [e.board for e in self.effects if isinstance(e, ev.Collect)]
