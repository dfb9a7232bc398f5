"""The page's routes: files, the JSON API, server-sent events, /metrics and /healthz. It decides nothing.

The API (docs/operate.md) answers with the same documents as the commands' `--json`.
"""

import asyncio
import hashlib
import importlib.util
from functools import cache
from pathlib import Path
from typing import Any, Final

import msgspec

from coordinator.web.access import COOKIE, Access, same
from coordinator.web.advising import Adviser
from coordinator.web.hub import Hub, board_row, slim
from coordinator.web.stream import Stream
from edged.controls import Action, GetBoards, GetRuns, GetStatus, PreviewWeights, SetWeights

STATIC: Final = Path(__file__).parent / "static"
KINDS: Final = {".html": "text/html; charset=utf-8", ".css": "text/css", ".js": "text/javascript"}
MOST_BODY_BYTES: Final = 4096


class Weights(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Body of POST /api/weights."""

    w_e: float
    w_t: float | None = None
    who: str = "page"


class Pages:
    """All routes over one hub."""

    def __init__(self, hub: Hub, adviser: Adviser, token: str) -> None:
        self._hub, self._adviser, self._token = hub, adviser, token

    def app(self) -> Any:
        """The ASGI application. Raises ImportError without starlette."""
        from starlette.applications import Starlette
        from starlette.routing import Route

        routes = [
            Route("/", self._page),
            Route("/login", self._login, methods=["GET", "POST"]),
            Route("/static/{name}", self._static),
            Route("/plotly.js", self._plotly),
            Route("/api/state", self._state),
            Route("/api/rounds", self._rounds),
            Route("/api/runs", self._runs),
            Route("/api/preview", self._preview),
            Route("/api/weights", self._weights, methods=["POST"]),
            Route("/api/advice", self._advice),
            Route("/api/events", self._events),
            Route("/metrics", self._metrics),
            Route("/healthz", self._healthz),
        ]
        return Access(Starlette(routes=routes), self._token)

    async def _page(self, request: Any) -> Any:
        text = (STATIC / "page.html").read_text()
        return _answer(text.replace("PLOTLY_VERSION", _plotly_file()[1]), "text/html; charset=utf-8")

    async def _static(self, request: Any) -> Any:
        path = STATIC / request.path_params["name"]
        if path.parent != STATIC or path.suffix not in KINDS or not path.is_file():
            return _error(404, "no such file")
        return _answer(path.read_bytes(), KINDS[path.suffix])

    async def _plotly(self, request: Any) -> Any:
        from starlette.responses import FileResponse

        path, _ = _plotly_file()
        if path is None:
            return _error(404, "plotly is not installed; pip install 'edged[coordinator]' brings it")
        return FileResponse(path, media_type="text/javascript", headers={"cache-control": "max-age=31536000"})

    async def _login(self, request: Any) -> Any:
        from starlette.responses import RedirectResponse

        if request.method == "GET":
            return _answer((STATIC / "login.html").read_bytes(), KINDS[".html"])
        body = await _body(request)
        given = dict(part.partition("=")[::2] for part in body.decode(errors="replace").split("&")).get(
            "token", ""
        )
        if not self._token or not same(given.strip(), self._token):
            await asyncio.sleep(0.5)  # guessing shall take its time
            return _error(401, "this is not the token")
        answer = RedirectResponse("/", status_code=303)
        answer.set_cookie(COOKIE, self._token, httponly=True, samesite="strict", max_age=30 * 86_400)
        return answer

    async def _state(self, request: Any) -> Any:
        status, boards = await self._asked(GetStatus()), await self._asked(GetBoards())
        if isinstance(status, str) or isinstance(boards, str):
            return _error(503, str(status if isinstance(status, str) else boards))
        rows = [board_row(row) for row in boards["boards"]]
        state = {"status": slim(status), "fleet": status["fleet"], "boards": rows, "watts": self._hub.watts()}
        return _json(state)

    async def _rounds(self, request: Any) -> Any:
        run, last = request.query_params.get("run"), request.query_params.get("last", "1000")
        if not last.isdigit() or not int(last):
            return _error(400, f"last={last}: a number of rounds, 1 at least")
        if run is None or run == self._hub.series.run:
            return _json(self._hub.series.data(int(last)))
        try:
            series = await asyncio.to_thread(self._hub.stored, run)
        except (KeyError, FileNotFoundError):
            return _error(404, f"the store has no run {run}; /api/runs lists them")
        return _json(series.data(int(last)))

    async def _runs(self, request: Any) -> Any:
        found = await self._asked(GetRuns())
        if isinstance(found, str):
            return _error(503, found)
        return _json([{k: v for k, v in row.items() if k != "task_source"} for row in found["runs"]])

    async def _preview(self, request: Any) -> Any:
        try:
            w_e = float(request.query_params.get("w_e", ""))
        except ValueError:
            return _error(400, "w_e: a number between 0 and 1 is needed")
        return await self._replied(PreviewWeights(w_e), "page")

    async def _weights(self, request: Any) -> Any:
        if request.headers.get("content-type", "").partition(";")[0] != "application/json":
            return _error(415, "send it as application/json")
        try:
            wanted = msgspec.json.decode(await _body(request), type=Weights)
        except (msgspec.DecodeError, ValueError) as error:
            return _error(400, str(error))
        client = request.client.host if request.client else "?"
        return await self._replied(SetWeights(wanted.w_e, wanted.w_t), f"{wanted.who[:60]} at {client}")

    async def _advice(self, request: Any) -> Any:
        run = self._hub.series.run
        if not run:
            return _error(409, "no run to advise on")
        try:
            return _answer(await self._adviser.advise(run, self._hub.series.newest), "application/json")
        except RuntimeError as error:
            return _error(409, str(error))

    async def _events(self, request: Any) -> Any:
        reader = self._hub.join()
        if reader is None:
            return _error(503, "too many pages are open")
        return Stream(self._hub, reader)

    async def _metrics(self, request: Any) -> Any:
        from coordinator.web.metrics import exposition

        status, boards = await self._asked(GetStatus()), await self._asked(GetBoards())
        if isinstance(status, str) or isinstance(boards, str):
            return _error(503, "the coordinator's loop does not answer")
        text = exposition(status, boards["boards"], self._hub.watts())
        return _answer(text, "text/plain; version=0.0.4; charset=utf-8")

    async def _healthz(self, request: Any) -> Any:
        status = await self._asked(GetStatus())
        wrong = [status] if isinstance(status, str) else []
        if isinstance(status, dict):
            stage = status["link"]["stage"]
            wrong += [f"broker: {stage}"] if stage != "up" else []
            wrong += [status["problem"]] if status["problem"] else []
        return _json({"ok": not wrong, "wrong": wrong}, 503 if wrong else 200)

    async def _asked(self, action: Action) -> dict[str, Any] | str:
        """The answer's data, or why there is none."""
        try:
            reply = await self._hub.ask(action)
        except TimeoutError as error:
            return str(error)
        return reply.data if reply.ok else reply.text

    async def _replied(self, action: Action, who: str) -> Any:
        try:
            reply = await self._hub.ask(action, who)
        except TimeoutError as error:
            return _error(503, str(error))
        if not reply.ok:
            return _error(409, reply.text)
        return _json({"text": reply.text, "from_round": reply.from_round, **reply.data})


async def _body(request: Any) -> bytes:
    """Raises ValueError for one that is too long."""
    body = b""
    async for chunk in request.stream():
        body += chunk
        if len(body) > MOST_BODY_BYTES:
            raise ValueError("the body is too long")
    return body


def _json(value: Any, status: int = 200) -> Any:
    return _answer(msgspec.json.encode(value), "application/json", status)


def _error(status: int, text: str) -> Any:
    return _json({"error": text}, status)


def _answer(body: str | bytes, kind: str, status: int = 200) -> Any:
    from starlette.responses import Response

    return Response(body, status, {"cache-control": "no-store"}, kind)


@cache
def _plotly_file() -> tuple[Path | None, str]:
    """The script out of the installed wheel, and a mark that changes with it."""
    found = importlib.util.find_spec("plotly")
    for folder in (found.submodule_search_locations or ()) if found else ():
        path = Path(folder) / "package_data" / "plotly.min.js"
        if path.is_file():
            return path, hashlib.sha256(path.read_bytes()).hexdigest()[:12]
    return None, "none"
