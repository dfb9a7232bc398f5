"""Runs the page on a thread with a loop of its own: bound before it begins, ended within a second."""

import asyncio
import contextlib
import logging
import socket
import threading
from collections.abc import Callable
from typing import Any, Final

from coordinator.history import History
from coordinator.web.advising import Adviser
from coordinator.web.app import Pages
from coordinator.web.hub import Hub
from coordinator.web.settings import WebError, WebOptions

LOG = logging.getLogger(__name__)
STOP_SECONDS: Final = 5.0


class Host:
    """`put` gives the coordinator's loop something; `history` opens its store."""

    def __init__(
        self, options: WebOptions, put: Callable[[object], None], history: Callable[[], History], store: Any
    ) -> None:
        place = options.place()
        assert place is not None
        self._token, self._place, self._store = options.token(), place, store
        self.hub = Hub(put, history)
        self._socket = _bound(*place)
        self.url = _url(place[0], self._socket.getsockname()[1])
        self._server: Any = None
        self._thread = threading.Thread(target=self._run, name="page", daemon=True)

    def start(self) -> None:
        """Serve, in the background. Raises ImportError without uvicorn or starlette."""
        import uvicorn

        app = Pages(self.hub, Adviser(self._store), self._token).app()
        config = uvicorn.Config(
            app,
            log_config=None,
            log_level="critical",
            access_log=False,
            lifespan="off",
            server_header=False,
            http="h11",
            loop="asyncio",
            timeout_graceful_shutdown=1,
        )
        self._server = uvicorn.Server(config)
        self._thread.start()
        LOG.info("the live page is at %s", self.url)

    def close(self) -> None:
        """End it; open pages are sent away."""
        if self._server is not None:
            self._server.should_exit = True
        if self._thread.is_alive():
            self._thread.join(STOP_SECONDS)
        self._socket.close()

    def _run(self) -> None:
        try:
            asyncio.run(self._serve())
        except Exception:
            LOG.exception("the live page ended")

    async def _serve(self) -> None:
        await self.hub.start()
        serving = asyncio.create_task(self._server.serve(sockets=[self._socket]))
        while not (self._server.should_exit or serving.done()):
            await asyncio.sleep(0.1)
        await self.hub.stop()
        with contextlib.suppress(asyncio.CancelledError):
            await serving


def _bound(host: str, port: int) -> socket.socket:
    """Raises WebError."""
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
        made = socket.socket(family, kind, protocol)
    except OSError as error:
        raise WebError(f"[web] listen {host}:{port}: {error.strerror or error}") from None
    try:
        made.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        made.bind(address)
        made.listen(128)
    except OSError as error:
        made.close()
        raise WebError(
            f"[web] listen {host}:{port}: {error.strerror}; another coordinator's page may be there: "
            "give another port (--web 127.0.0.1:0 takes any), or off"
        ) from None
    return made


def _url(host: str, port: int) -> str:
    shown = f"[{host}]" if ":" in host else host
    return f"http://{shown}:{port}/"
