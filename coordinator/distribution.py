"""Publishes model versions in chunks: once for all who are present, and again what boards say they lack.

Rules: few chunks in flight, counted by the broker's acknowledgements; never far ahead of the slowest board
that still moves; several wants for one version inside a second are one answer. Nothing is decoded.
"""

from collections.abc import Callable, Collection
from pathlib import Path
from typing import Final

from coordinator.events import Note
from edged.link import OutboxFullError, PacketTooLargeError
from edged.messages import Manifest, State, Want
from edged.ranges import Range, clip, merge, size, subtract
from edged.transfers import Outgoing, TransferError

IN_FLIGHT: Final = 8
CHUNKS_AHEAD: Final = 48
"""With those in flight and some orders, fewer than 64 messages wait for a board at the broker."""
PATIENCE_SECONDS: Final = 2.0
WANTS_SECONDS: Final = 1.0

Publish = Callable[[str | None, str, int, bytes], int]
"""`publish(board, version, number, payload)`: None is the shared topic; returns the link's token."""
Find = Callable[[str], tuple[Path, Manifest] | None]
"""The file of a version that boards may have now, None for any other."""


class Pace:
    """How far one board has come since a publication began, as its state messages tell."""

    def __init__(self, held: int, now: float) -> None:
        self.base = self.held = held
        self.moved_seconds = now
        self.patience_seconds = PATIENCE_SECONDS

    def hear(self, held: int, now: float) -> None:
        """The board tells how many chunks it holds. One that moves slowly is given longer to move again."""
        if held > self.held:
            self.patience_seconds = max(PATIENCE_SECONDS, 2 * (now - self.moved_seconds))
            self.held, self.moved_seconds = held, now

    def waited_for(self, now: float) -> bool:
        """False once the board has not moved for too long; moving brings it back."""
        return now - self.moved_seconds < self.patience_seconds


class Publication:
    """Chunks of one version on their way to the boards of `paces`."""

    def __init__(
        self, version: str, outgoing: Outgoing, board: str | None, todo: list[Range], paces: dict[str, Pace]
    ) -> None:
        self.version, self.outgoing, self.board = version, outgoing, board
        self.todo, self.paces = todo, paces
        self.sent = 0
        self.unacknowledged: set[int] = set()

    @property
    def over(self) -> bool:
        """All of it is with the broker."""
        return not self.todo and not self.unacknowledged

    def may_send(self, now: float) -> bool:
        """True while the slowest board that moves is not too far behind."""
        waited = (pace.held - pace.base for pace in self.paces.values() if pace.waited_for(now))
        return bool(self.todo) and self.sent - min(waited, default=self.sent) < CHUNKS_AHEAD

    def next_chunk(self) -> int:
        """Take the next number off the list."""
        start, stop = self.todo[0]
        self.todo[:1] = [(start + 1, stop)] if start + 1 < stop else []
        return start


class Distribution:
    """One for a coordinator; all calls from its loop."""

    def __init__(
        self,
        publish: Publish,
        find: Find,
        note: Callable[[Note], None],
        apart: Callable[[], bool] = lambda: False,
    ) -> None:
        """`apart`: every board gets its versions alone (asynchronous updates)."""
        self._publish, self._find, self._note, self._apart = publish, find, note, apart
        self._publications: list[Publication] = []
        self._wants: dict[str, dict[str, list[Range]]] = {}
        self._answer_seconds: dict[str, float] = {}
        self.published_bytes: dict[str, int] = {}
        """Bytes of chunks handed to the link, by version of the newest run; under the run's own name those
        that boards got alone, where every update makes a version."""

    def begin(self, version: str, boards: Collection[str], now: float) -> None:
        """Publish the version once on the shared topic. Older versions are given up."""
        run = version.rpartition(".")[0]
        self._give_up(lambda other: other != version)
        self.published_bytes = {v: n for v, n in self.published_bytes.items() if v.rpartition(".")[0] == run}
        if any(p.version == version and p.board is None for p in self._publications):
            return
        found = self._find(version)
        if found is not None and (outgoing := self._opened(version, found)):
            paces = {board: Pace(0, now) for board in boards}
            todo = [(0, found[1].chunks)]
            self._publications.append(Publication(version, outgoing, None, todo, paces))
        self.tick(now)

    def deliver(self, version: str, board: str, now: float) -> None:
        """Publish the version to one board alone. What it was sent before is given up."""
        run = version.rpartition(".")[0]
        self.published_bytes = {v: n for v, n in self.published_bytes.items() if v == run}
        self._drop([p for p in self._publications if p.board == board])
        found = self._find(version)
        if found is not None and (outgoing := self._opened(version, found)):
            todo = [(0, found[1].chunks)]
            self._publications.append(Publication(version, outgoing, board, todo, {board: Pace(0, now)}))
        self.tick(now)

    def want(self, want: Want, now: float) -> None:
        """A board lacks chunks: answered within a second, together with others."""
        found = self._find(want.version)
        if found is None:
            text = f"wants model {want.version}, which is not the present one"
            return self._note(Note(want.board, "unknown_models", text))
        ranges = clip(want.ranges, found[1].chunks)
        if not ranges or size(ranges) < sum(stop - start for start, stop in want.ranges):
            text = f"wants chunks of model {want.version} that it does not have (it has {found[1].chunks})"
            self._note(Note(want.board, "refused_wants", text))
        if ranges:
            self._wants.setdefault(want.version, {})[want.board] = ranges
            self._answer_seconds.setdefault(want.version, now + WANTS_SECONDS)
        return None

    def heard(self, state: State, now: float) -> None:
        """A board's progress sets the pace; a board with another thing to do is no longer waited for."""
        for publication in self._publications:
            pace = publication.paces.get(state.board)
            if pace is None:
                continue
            if state.phase == "fetching":
                pace.hear(state.chunks_held, now)
            elif state.model == publication.version:
                del publication.paces[state.board]
        self.tick(now)

    def settled(self, token: int, now: float) -> bool:
        """A chunk was delivered to the broker or refused; False if the token is not one of ours."""
        for publication in self._publications:
            if token in publication.unacknowledged:
                publication.unacknowledged.remove(token)
                self.tick(now)
                return True
        return False

    def tick(self, now: float) -> None:
        """Answer wants that are due and send what may be sent."""
        for version in [v for v, due in self._answer_seconds.items() if now >= due]:
            del self._answer_seconds[version]
            self._answer(version, self._wants.pop(version), now)
        while sum(len(p.unacknowledged) for p in self._publications) < IN_FLIGHT:
            ready = [p for p in self._publications if p.may_send(now)]
            if not ready or not self._send(min(ready, key=lambda p: p.sent)):
                break
        self._drop([p for p in self._publications if p.over])

    def due(self, now: float) -> float | None:
        """When `tick` has something to do that no message brings about."""
        times = list(self._answer_seconds.values())
        for publication in self._publications:
            if publication.todo:
                paces = publication.paces.values()
                times += [p.moved_seconds + p.patience_seconds for p in paces if p.waited_for(now)]
        return min(times, default=None)

    def close(self) -> None:
        """Give everything up."""
        self._give_up(lambda _: True)

    def _answer(self, version: str, wants: dict[str, list[Range]], now: float) -> None:
        found = self._find(version)
        if found is None:
            return
        if self._apart():
            for asking, ranges in wants.items():
                self._answer_one(version, asking, ranges, found, now)
            return
        coming = merge(*(p.todo for p in self._publications if p.version == version and p.board is None))
        wants = {board: left for board, ranges in wants.items() if (left := subtract(ranges, coming))}
        paces = {board: Pace(found[1].chunks - size(ranges), now) for board, ranges in wants.items()}
        if wants and (outgoing := self._opened(version, found)):
            board = next(iter(wants)) if len(wants) == 1 else None
            self._publications.append(Publication(version, outgoing, board, merge(*wants.values()), paces))

    def _answer_one(
        self, version: str, board: str, ranges: list[Range], found: tuple[Path, Manifest], now: float
    ) -> None:
        sending = [p for p in self._publications if p.board == board]
        left = subtract(ranges, merge(*(p.todo for p in sending if p.version == version)))
        if left and (outgoing := self._opened(version, found)):
            paces = {board: Pace(found[1].chunks - size(left), now)}
            self._publications.append(Publication(version, outgoing, board, left, paces))

    def _opened(self, version: str, found: tuple[Path, Manifest]) -> Outgoing | None:
        try:
            return Outgoing(*found)
        except OSError as error:
            self._note(Note("-", "unreadable_models", f"model {version}: {error}"))
            return None

    def _send(self, publication: Publication) -> bool:
        number = publication.next_chunk()
        try:
            payload = publication.outgoing.chunk(number)
            token = self._publish(publication.board, publication.version, number, payload)
        except OutboxFullError:
            publication.todo = merge(publication.todo, [(number, number + 1)])
            return False
        except (PacketTooLargeError, TransferError, OSError) as error:
            self._note(Note("-", "unsent_models", f"model {publication.version}: {error}"))
            publication.todo = []
            return True
        publication.sent += 1
        publication.unacknowledged.add(token)
        key = publication.version.rpartition(".")[0] if self._apart() else publication.version
        self.published_bytes[key] = self.published_bytes.get(key, 0) + len(payload)
        return True

    def _give_up(self, which: Callable[[str], bool]) -> None:
        self._drop([p for p in self._publications if which(p.version)])
        for version in [v for v in self._wants if which(v)]:
            del self._wants[version], self._answer_seconds[version]

    def _drop(self, publications: list[Publication]) -> None:
        for publication in publications:
            publication.outgoing.close()
            self._publications.remove(publication)
