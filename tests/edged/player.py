"""A board's state machine that is fed one event after another, and the situations it can be in."""

from msgspec.structs import replace

from edged import events as e
from edged.board import Board
from edged.events import Act
from edged.messages import (
    Accepted,
    Attend,
    Birth,
    Manifest,
    Piece,
    Train,
)
from edged.state import Step, step

SHA = "ab" * 32
CAN = e.Inventory(tasks={"digits": "hash"}, pools={"digits": "print"}, regimes=("pma",))
MODEL = Manifest(length_bytes=1000, chunk_bytes=100, sha256=SHA)
UPDATE = Manifest(length_bytes=1000, chunk_bytes=100, sha256="cd" * 32)


def order(round_number: int = 1, attempt: int = 1, board: str = "pi4", **changes: object) -> Train:
    made = Train(
        order=f"r.{round_number}.{board}.{attempt}",
        run="r",
        round=round_number,
        attempt=attempt,
        boot="coord",
        term=1,
        regime="pma",
        task="digits",
        task_hash="hash",
        pool="digits",
        fingerprint="print",
        pieces=(Piece(0, 0, 40),),
        samples=40,
        batch=8,
        learning_rate=0.1,
        model=f"r.{round_number - 1}",
        manifest=MODEL,
        seed=1,
        pool_samples=100,
        deadline_seconds=60.0,
    )
    return replace(made, **changes)


def attend(round_number: int = 1, attempt: int = 1, board: str = "pi4") -> Attend:
    return Attend(
        f"r.{round_number}.{board}.{attempt}",
        run="r",
        round=round_number,
        boot="coord",
        term=1,
        reason="rest",
    )


def birth(boot: str = "other", link: str = "up") -> Birth:
    return Birth(board="pi4", boot=boot, conn=1, link=link, host="attic", address="192.0.2.9")


class Player:
    """A board that is fed one event after another."""

    def __init__(self, *played: e.Event) -> None:
        self.board = Board("pi4", "mine")
        self.now = 0.0
        self.last: Step
        for event in (e.LinkUp(1), CAN, *played):
            self.feed(event)

    def feed(self, event: e.Event, seconds: float = 0.1) -> Step:
        self.now += seconds
        self.last = step(self.board, event, self.now)
        self.board = self.last.board
        return self.last

    def acts(self, event: e.Event, seconds: float = 0.1) -> list[Act]:
        return [effect.act for effect in self.feed(event, seconds).effects]


def fetching() -> Player:
    return Player(order())


def training() -> Player:
    return Player(order(), e.ModelReady("r.0", SHA))


def computing() -> Player:
    return Player(order(), e.ModelReady("r.0", SHA), e.Began(order().order, 1.0))


def uploading() -> Player:
    first = order().order
    return Player(
        order(),
        e.ModelReady("r.0", SHA),
        e.Began(first, 1.0),
        e.Ended(first, 2.0, 40),
        e.Described(first, UPDATE),
    )


def waiting() -> Player:
    player = uploading()
    player.feed(Accepted(order().order, "coord", 1))
    return player
