"""A coordinator for the board's tests: gives orders, offers a model, takes updates. It decides nothing
by itself.
"""

import hashlib
import time
from collections import defaultdict
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from queue import Empty
from typing import Any

from msgspec.structs import replace

from edged import messages as m
from edged.link import Link, Message
from edged.topics import Topics
from edged.transfers import Outgoing, describe

BOOT = "coord"


class StandIn:
    """Over any link. `turn` moves what else there is to move (a board in memory); with a broker nothing
    is.
    """

    def __init__(self, link: Link, fleet: str = "main", turn: Callable[[], None] = lambda: None) -> None:
        self.link = link
        self.topics = Topics(fleet)
        self.births: list[m.Birth] = []
        self.states: list[m.State] = []
        self.reports: list[m.Report] = []
        self.powers: list[m.Power] = []
        self.wants: list[m.Want] = []
        self.chunks: dict[str, dict[int, bytes]] = defaultdict(dict)
        self.grants = True  # answer each `trained` report with a grant of everything
        self.accepts = True  # answer each whole update with `accepted`
        self.repeats: m.Order | None = None  # say this again at each birth, as a coordinator does
        self._turn = turn
        self._manifests: dict[str, m.Manifest] = {}
        for name in ("birth", "state", "report", "power", "want", "update"):
            link.subscribe(self.topics.filter(name))
        link.start()

    def send(self, order: m.Order, board: str = "pi4") -> None:
        self.link.publish(self.topics.of("order", board=board), m.encode(order))

    def stand_by(self, board: str = "pi4", reason: str = "the run is over") -> None:
        self.send(m.StandBy(boot=BOOT, term=1, reason=reason), board)

    def accept(self, order: str, board: str = "pi4") -> None:
        self.send(m.Accepted(order=order, boot=BOOT, term=1), board)

    def grant(self, order: str, ranges: Sequence[tuple[int, int]], board: str = "pi4") -> None:
        self.send(m.Grant(order=order, boot=BOOT, term=1, ranges=tuple(ranges)), board)

    def offer(
        self, path: Path, manifest: m.Manifest, version: str, numbers: Sequence[int] | None = None
    ) -> None:
        """Publish chunks of a model on the shared topic, all unless some are named."""
        outgoing = Outgoing(path, manifest)
        for number in range(manifest.chunks) if numbers is None else numbers:
            topic = self.topics.of("model", version=version, chunk=number)
            self.link.publish(topic, outgoing.chunk(number), priority="chunk")
        outgoing.close()

    def offer_paced(self, path: Path, manifest: m.Manifest, version: str, window: int = 24) -> None:
        """The same for a large model: no more than a window ahead of what the boards say they hold."""
        for start in range(0, manifest.chunks, window):
            stop = min(start + window, manifest.chunks)
            self.offer(path, manifest, version, range(start, stop))
            held = stop // 16 * 16
            self.until(lambda held=held: self.states[-1].chunks_held >= held, f"{held} chunks held")  # type: ignore[misc]

    def hear(self) -> None:
        """Take in everything that has come."""
        while True:
            try:
                event = self.link.events.get(block=False)
            except Empty:
                return
            if isinstance(event, Message):
                self._message(event)

    def until(self, predicate: Callable[[], Any], what: str, seconds: float = 60.0) -> None:
        """Go on until it holds; the limit is for a test that fails, not for a slow machine."""
        end = time.monotonic() + seconds
        while not predicate():
            if time.monotonic() > end:
                raise AssertionError(f"not within {seconds} s: {what}; last state {self.states[-1:]}")
            self._turn()
            self.hear()
            time.sleep(0.002)

    def until_phase(self, phase: str, order: str | None = None) -> None:
        """Until the board says this phase (of this order)."""
        self.until(
            lambda: self.states and self.states[-1].phase == phase and order in {None, self.states[-1].order},
            f"phase {phase} of {order}",
        )

    def until_ready(self) -> None:
        """Until a birth says what the board can train."""
        self.until(lambda: self.births and self.births[-1].tasks, "an inventory")

    def until_report(self, stage: str, order: str) -> m.Report:
        """The first report of that stage of the order."""

        def found() -> list[m.Report]:
            return [one for one in self.reports if (one.stage, one.order) == (stage, order)]

        self.until(found, f"report {stage} of {order}")
        return found()[0]

    def update(self, order: str) -> bytes:
        """The update as it came."""
        return b"".join(self.chunks[order][number] for number in sorted(self.chunks[order]))

    def _message(self, event: Message) -> None:
        address = self.topics.parse(event.topic)
        assert address is not None, event.topic
        name = address.route.name
        if name == "birth":
            with suppress(m.MessageError):  # a test may have written something else there
                self.births.append(m.decode(m.Birth, event.payload))
                if self.repeats is not None and self.births[-1].link == "up":
                    self.send(self.repeats, address.board)
        elif name == "state":
            self.states.append(m.decode(m.State, event.payload))
        elif name == "power":
            self.powers.append(m.decode(m.Power, event.payload))
        elif name == "want":
            self.wants.append(m.decode(m.Want, event.payload))
        elif name == "report":
            self._report(m.decode(m.Report, event.payload))
        elif name == "update":
            self.chunks[address.order][address.chunk] = event.payload
            self._perhaps_accept(address.order, address.board)

    def _report(self, report: m.Report) -> None:
        self.reports.append(report)
        if report.stage == "trained" and report.manifest is not None:
            self._manifests[report.order] = report.manifest
            if self.grants:
                self.grant(report.order, [(0, report.manifest.chunks)], report.board)

    def _perhaps_accept(self, order: str, board: str) -> None:
        manifest = self._manifests[order]
        if self.accepts and len(self.chunks[order]) == manifest.chunks:
            assert hashlib.sha256(self.update(order)).hexdigest() == manifest.sha256
            self.accept(order, board)


def train_order(path: Path, number: int = 1, /, *, chunk_bytes: int = 256 * 1024, **changes: Any) -> m.Train:
    """An order over 40 samples of the digits from the model in that file; `changes` replace fields."""
    made = m.Train(
        order=f"r.{number}.pi4.1",
        run="r",
        round=number,
        attempt=1,
        boot=BOOT,
        term=1,
        regime="pma",
        task="digits",
        task_hash="hash",
        pool="digits",
        fingerprint="print",
        pieces=(m.Piece(0, 40 * number - 40, 40 * number),),
        samples=40,
        batch=8,
        learning_rate=0.1,
        model="r.0",
        manifest=describe(path, chunk_bytes),
        seed=1,
        pool_samples=1437,
    )
    return replace(made, **changes)
