"""Server-sent events to one reader; one that takes nothing for a while is let go, with what waited for it."""

import asyncio
from typing import Any, Final

from coordinator.web.hub import Hub, Reader

STALLED_SECONDS: Final = 10.0
HEARTBEAT_SECONDS: Final = 15.0
HEAD: Final = [(b"content-type", b"text/event-stream"), (b"cache-control", b"no-store")]


class Stream:
    """An answer as starlette takes one."""

    def __init__(self, hub: Hub, reader: Reader) -> None:
        self._hub, self._reader = hub, reader

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Until the reader is gone, dropped, or stalls."""
        gone = asyncio.create_task(_until_gone(receive))
        try:
            await send({"type": "http.response.start", "status": 200, "headers": HEAD})
            while not (self._reader.dropped or gone.done()):
                text = await _next(self._reader.queue, gone)
                if text:
                    await _sent(send, text, True)
            await _sent(send, b"", False)
        except (asyncio.TimeoutError, OSError):
            self._hub.dropped_readers += 1
        finally:
            gone.cancel()
            self._hub.leave(self._reader)


async def _sent(send: Any, text: bytes, more: bool) -> None:
    message = {"type": "http.response.body", "body": text, "more_body": more}
    await asyncio.wait_for(send(message), STALLED_SECONDS)


async def _next(queue: "asyncio.Queue[bytes]", gone: "asyncio.Task[None]") -> bytes:
    """The next messages; a heartbeat where none comes; nothing where the reader is gone."""
    getting = asyncio.ensure_future(queue.get())
    await asyncio.wait({getting, gone}, timeout=HEARTBEAT_SECONDS, return_when=asyncio.FIRST_COMPLETED)
    if not getting.done():
        getting.cancel()
        return b"" if gone.done() else b": still here\n\n"
    text = getting.result()
    while not queue.empty():
        text += queue.get_nowait()
    return text


async def _until_gone(receive: Any) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
