"""Several rank processes (`rank.py`), led as a coordinator leads: ready, meet, train."""

import os
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import IO, Any

import msgspec
from msgspec.structs import replace

from edged.dealing import with_plan
from edged.groups import Peer, Readiness, Rendezvous, Stepwise
from edged.messages import Manifest, Piece, Train
from edged.work import Meet
from tests.edged.rank import SAMPLES, Answer, Ask

ROOT = Path(__file__).resolve().parents[2]
NAMES = "abcdefgh"
PLAIN = Train(
    "r.1.a.1",
    "r",
    1,
    1,
    "coord",
    1,
    "ddp",
    "toy",
    "h",
    "toy",
    "f",
    (),
    1,
    8,
    0.05,
    "r.0",
    Manifest(1, 1, "0" * 64),
    7,
    SAMPLES,
    optimizer_state="average",
)


class Nursery:
    """The process that ranks are forked from: torch is imported once."""

    def __init__(self) -> None:
        environment = {**os.environ, "PYTHONPATH": str(ROOT), "OMP_NUM_THREADS": "1"}
        self._asks, theirs = socket.socketpair()
        self._process = subprocess.Popen(
            [sys.executable, str(ROOT / "tests/edged/rank.py")], stdin=theirs.fileno(), env=environment
        )
        theirs.close()

    def rank(self) -> tuple[int, IO[bytes], IO[bytes]]:
        """A new rank's process id, where it reads and where it writes."""
        (inward, ask), (answer, outward) = os.pipe(), os.pipe()
        socket.send_fds(self._asks, [b"r"], [inward, outward])
        os.close(inward)
        os.close(outward)
        pid = int.from_bytes(self._asks.recv(8, socket.MSG_WAITALL), "little")
        return pid, os.fdopen(ask, "wb"), os.fdopen(answer, "rb")

    def end(self) -> None:
        self._asks.close()
        self._process.wait()


class Process:
    """One rank process."""

    def __init__(self, board: str, nursery: Nursery) -> None:
        self.board = board
        self._pid, self._in, self._out = nursery.rank()

    @property
    def alive(self) -> bool:
        try:
            os.kill(self._pid, 0)
        except ProcessLookupError:
            return False
        return True

    def ask(self, ask: Ask) -> None:
        self._in.write(msgspec.json.encode(replace(ask, board=self.board)) + b"\n")
        self._in.flush()

    def hear(self) -> Answer:
        line = self._out.readline()
        return msgspec.json.decode(line, type=Answer) if line else Answer(error="died")

    def end(self) -> None:
        with suppress(ProcessLookupError):
            os.kill(self._pid, signal.SIGKILL)
        while self.alive:
            time.sleep(0.01)
        with suppress(OSError):
            self._in.close()
        self._out.close()


class Ranks:
    """Processes that are kept; `train` uses the first few, and remembers the group they are in."""

    def __init__(self, count: int) -> None:
        self._nursery = Nursery()
        self.processes = [Process(NAMES[i], self._nursery) for i in range(count)]
        self.group, self.formed = "", 0
        self.readiness: list[Readiness] = []
        self.boards: tuple[str, ...] = ()

    def end(self) -> None:
        for process in self.processes:
            process.end()
        self._nursery.end()

    def replace(self, index: int) -> None:
        self.processes[index].end()
        self.processes[index] = Process(NAMES[index], self._nursery)

    def orders(
        self,
        shares: list[int],
        steps: int,
        stepwise: Stepwise | None = None,
        seconds: float = 30.0,
        **more: Any,
    ) -> list[Train]:
        boards = tuple(process.board for process in self.processes[: len(shares)])
        pieces = [Piece(0, 0, min(SAMPLES, sum(shares)))]
        while sum(piece.samples for piece in pieces) < sum(shares):
            left = sum(shares) - sum(piece.samples for piece in pieces)
            pieces.append(Piece(len(pieces), 0, min(SAMPLES, left)))
        made = []
        for rank, board in enumerate(boards):
            number = more.get("round", 1)
            order = replace(
                PLAIN, order=f"r.{number}.{board}.1", pieces=tuple(pieces), samples=shares[rank], **more
            )
            group = Rendezvous("all", boards, rank, tuple(shares), steps, "0" * 64, seconds, stepwise)
            made.append(with_plan(order, group))
        return made

    def train(
        self,
        orders: list[Train],
        asks: dict[int, dict[str, Any]] | None = None,
        unheard: tuple[int, ...] = (),
        wrong: dict[int, Peer] | None = None,
        **ask: Any,
    ) -> list[Answer]:
        """The answers but of those left unheard. `ask` is for all ranks, `asks` for single ones; `wrong` are
        places of ranks that are not theirs."""
        processes = self.processes[: len(orders)]
        for rank, (process, order) in enumerate(zip(processes, orders, strict=True)):
            process.ask(Ask("train", order, **{**ask, **(asks or {}).get(rank, {})}))
        first = [process.hear() for process in processes]
        if any(answer.readiness is None for answer in first):
            return first
        self.readiness = [answer.readiness for answer in first if answer.readiness is not None]
        boards = tuple(process.board for process in processes)
        keep = self.boards == boards and all(r.holds == self.group for r in self.readiness) and self.group
        if not keep:
            self.formed += 1
            self.group, self.boards = f"g{self.formed}", boards
        places = [(wrong or {}).get(i, Peer(r.address, r.port)) for i, r in enumerate(self.readiness)]
        peers = () if keep else tuple(places)
        for process, order in zip(processes, orders, strict=True):
            process.ask(Ask("meet", meet=Meet(order.order, self.group, peers, 60.0)))
        return [process.hear() for rank, process in enumerate(processes) if rank not in unheard]

    def step(self, sizes: tuple[int, ...], **ask: Any) -> list[Answer]:
        """One gradient in the present group."""
        processes = self.processes[: len(sizes)]
        for process in processes:
            process.ask(Ask("step", sizes=sizes, **ask))
        return [process.hear() for process in processes]
