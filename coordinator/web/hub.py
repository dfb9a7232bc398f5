"""Between the coordinator's loop and the page's: what happened goes out to readers, questions go in.

`see` is called on the coordinator's loop and returns at once. Everything else runs on the page's own loop. A
reader that does not read is dropped; nothing is kept for it.
"""

import asyncio
import contextlib
import time
from collections.abc import Callable
from typing import Any, Final

import msgspec

from coordinator.alerts import Alert
from coordinator.history import History
from coordinator.switchboard import Asked
from coordinator.web.series import Series
from edged.controls import Action, GetBoards, GetStatus, Reply, Request
from edged.messages import FleetState, Power

WATTS_SECONDS: Final = 0.1
ASK_SECONDS: Final = 1.0
BOARDS_A_SECOND: Final = 500
ANSWER_SECONDS: Final = 5.0
MOST_READERS: Final = 32
MOST_WAITING: Final = 200
"""Messages that a reader may be behind."""
TABLES: Final = ("decision", "board_round", "closed", "round", "evaluation", "control")


class Reader:
    """One open page."""

    def __init__(self) -> None:
        self.queue: asyncio.Queue[bytes] = asyncio.Queue(MOST_WAITING)
        self.dropped = False


class Hub:
    """`put` gives the coordinator's loop something; `history` opens its store for reading."""

    def __init__(self, put: Callable[[object], None], history: Callable[[], History]) -> None:
        self._put, self._history = put, history
        self.series = Series()
        self.readers: set[Reader] = set()
        self.dropped_readers = 0
        self._loop: asyncio.AbstractEventLoop | None = None
        self._watts: dict[str, Power] = {}
        self._fresh: dict[str, Power] = {}
        self._said: dict[str, bytes] = {}
        self._tasks: list[asyncio.Task[None]] = []
        self._number = 0

    def see(self, what: str, value: Any) -> None:
        """Something happened, as onlookers are told."""
        if isinstance(value, Power):
            self._fresh[value.board] = value
        elif self._loop is not None and what in (*TABLES, "begun", "finished", "failed", "state", "alert"):
            with contextlib.suppress(RuntimeError):  # the page's loop has just ended
                self._loop.call_soon_threadsafe(self._told, what, value)

    async def start(self) -> None:
        """On the page's loop: load the newest run and begin to tell."""
        self._loop = asyncio.get_running_loop()
        with contextlib.suppress(FileNotFoundError):
            self.series = await asyncio.to_thread(self.stored, None)
        self._tasks = [asyncio.create_task(self._tell_watts()), asyncio.create_task(self._ask_regularly())]

    async def stop(self) -> None:
        """Send the readers away."""
        self._loop = None
        for task in self._tasks:
            task.cancel()
        for reader in list(self.readers):
            self._drop(reader)

    async def ask(self, action: Action, who: str = "") -> Reply:
        """An operator's request to the coordinator. Raises TimeoutError where its loop does not answer."""
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[Reply] = loop.create_future()

        def tell(reply: Reply) -> None:
            def settle() -> None:
                if not answer.done():
                    answer.set_result(reply)

            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(settle)

        self._number += 1
        self._put(Asked(Request("page", f"p{self._number}", action, who), tell))
        try:
            return await asyncio.wait_for(answer, ANSWER_SECONDS)
        except asyncio.TimeoutError:
            raise TimeoutError("the coordinator's loop does not answer") from None

    def stored(self, run: str | None) -> Series:
        """A run out of the store (None: the newest); reads files, so it wants a thread. Raises KeyError."""
        history = self._history()
        try:
            rows = {row["run"]: row for row in history.runs()}
            if run is None:
                run = next(iter(rows), None)
            if run is None:
                return Series()
            series = Series(run, rows[run]["settings"])
            series.load({what: history.rows(what, run) for what in TABLES})
            return series
        finally:
            history.close()

    def watts(self) -> dict[str, Any]:
        """The newest watts of every board."""
        return {board: _watts(power) for board, power in list(self._watts.items())}

    def join(self) -> Reader | None:
        """One more reader; None where there are too many."""
        if len(self.readers) >= MOST_READERS:
            return None
        reader = Reader()
        self.readers.add(reader)
        return reader

    def leave(self, reader: Reader) -> None:
        """It is gone."""
        self.readers.discard(reader)

    def publish(self, event: str, value: Any) -> None:
        """To all readers."""
        if not self.readers:
            return
        text = b"event: " + event.encode() + b"\ndata: " + msgspec.json.encode(value) + b"\n\n"
        for reader in list(self.readers):
            try:
                reader.queue.put_nowait(text)
            except asyncio.QueueFull:
                self._drop(reader)

    def _drop(self, reader: Reader) -> None:
        reader.dropped = True
        self.dropped_readers += 1
        self.readers.discard(reader)
        # It is waiting for one message only; an empty one wakes it.
        with contextlib.suppress(asyncio.QueueEmpty):
            reader.queue.get_nowait()
        reader.queue.put_nowait(b"")

    def _told(self, what: str, value: Any) -> None:
        match what:
            case "begun":
                self.series = Series(value["run"], value["settings"])
                self.publish("begun", value)
            case "finished" | "failed":
                self.publish(what, value)
            case "state" if isinstance(value, FleetState):
                self.publish("state", value)
            case "alert":
                alert, begins = value
                if isinstance(alert, Alert):
                    self.publish("alert", {"alert": alert, "begins": begins})
            case _ if value.get("run") == self.series.run:
                added = self.series.add(what, {"at": time.time(), **value})
                if added is not None:
                    self.publish("rows", added)

    async def _tell_watts(self) -> None:
        while True:
            await asyncio.sleep(WATTS_SECONDS)
            fresh, self._fresh = self._fresh, {}
            self._watts.update(fresh)
            if fresh and self.readers:
                self.publish("watts", {board: _watts(power) for board, power in fresh.items()})

    async def _ask_regularly(self) -> None:
        """Boards and status while somebody looks; only what changed is told."""
        while True:
            # Rows of many boards take the coordinator's loop some milliseconds: then less often.
            await asyncio.sleep(max(ASK_SECONDS, len(self._watts) / BOARDS_A_SECOND))
            if not self.readers:
                self._said.clear()
                continue
            try:
                boards = (await self.ask(GetBoards())).data["boards"]
                status = (await self.ask(GetStatus())).data
            except (TimeoutError, KeyError) as error:
                self.publish("behind", str(error))
                continue
            self._publish_changed("board:", {row["board"]: board_row(row) for row in boards})
            self._publish_changed("", {"status": slim(status)})

    def _publish_changed(self, prefix: str, values: dict[str, Any]) -> None:
        changed = {}
        for name, value in values.items():
            text = msgspec.json.encode(value)
            if self._said.get(prefix + name) != text:
                self._said[prefix + name] = text
                changed[name] = value
        if changed:
            self.publish("boards" if prefix else "status", changed if prefix else changed["status"])


def board_row(row: dict[str, Any]) -> dict[str, Any]:
    """What the page shows of a board; what changes with every look is told otherwise."""
    left_out = ("heard_seconds_ago", "skew_seconds", "watts", "temperature_celsius", "tasks", "pools", "boot")
    return {name: value for name, value in row.items() if name not in left_out}


def slim(status: dict[str, Any]) -> dict[str, Any]:
    """Status without what the page has from elsewhere."""
    left_out = ("decisions", "boards", "fleet", "board_counters", "published_bytes", "received_bytes")
    return {name: value for name, value in status.items() if name not in left_out}


def _watts(power: Power) -> dict[str, Any]:
    return {
        "watts": power.watts.get(power.headline),
        "joules": power.joules.get(power.headline),
        "basis": power.basis,
        "celsius": power.temperature_celsius,
        "throttled": list(power.throttled),
        "channels": power.watts if len(power.watts) > 1 else {},
    }
