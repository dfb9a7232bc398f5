"""Who may see and change: loopback by its own name only, others by token; no page of another site.

A foreign page in the operator's browser can reach 127.0.0.1; the Host and Origin headers tell it apart.
"""

import hmac
from typing import Any, Final

from coordinator.web.settings import is_loopback

COOKIE: Final = "edged_token"
OPEN_PATHS: Final = ("/healthz", "/login")
HEADERS: Final = {
    "Content-Security-Policy": (
        "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; "
        "img-src 'self' data: blob:; connect-src 'self'; form-action 'self'; base-uri 'none'; "
        "frame-ancestors 'none'"
    ),
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
}


class Access:
    """An ASGI application around another one."""

    def __init__(self, app: Any, token: str) -> None:
        self._app, self._token = app, token

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        """Let it through, or answer in one line why not."""
        if scope["type"] != "http":
            return
        headers = {name.decode().lower(): value.decode("latin-1") for name, value in scope["headers"]}
        refusal = self._refusal(scope["method"], scope["path"], headers)
        if refusal is None:
            await self._app(scope, receive, _with_headers(send))
            return
        status, text = refusal
        kind = [(b"content-type", b"text/plain; charset=utf-8"), (b"cache-control", b"no-store")]
        if status == 401:
            kind.append((b"www-authenticate", b'Bearer realm="edged"'))
        await _with_headers(send)({"type": "http.response.start", "status": status, "headers": kind})
        await send({"type": "http.response.body", "body": f"{text}\n".encode()})

    def _refusal(self, method: str, path: str, headers: dict[str, str]) -> tuple[int, str] | None:
        host = headers.get("host", "")
        if not self._token and not is_loopback(_name(host)):
            # A name that somebody else's DNS points here must not open the page.
            return 403, f"this page answers to 127.0.0.1 and localhost, not to {host!r}"
        origin = headers.get("origin")
        if method not in ("GET", "HEAD") and origin is not None and origin.partition("://")[2] != host:
            return 403, f"a page of {origin!r} may change nothing here"
        if headers.get("sec-fetch-site") == "cross-site" and path.startswith("/api/"):
            return 403, "a page of another site may ask nothing here"
        if self._token and path not in OPEN_PATHS and not self._known(headers):
            return 401, "a token is needed: open /login, or send it as `Authorization: Bearer TOKEN`"
        return None

    def _known(self, headers: dict[str, str]) -> bool:
        bearer = headers.get("authorization", "").removeprefix("Bearer ")
        cookies = dict(
            part.strip().partition("=")[::2] for part in headers.get("cookie", "").split(";") if "=" in part
        )
        return any(same(given, self._token) for given in (bearer, cookies.get(COOKIE, "")))


def same(given: str, token: str) -> bool:
    """Compare in constant time."""
    return hmac.compare_digest(given.encode(), token.encode())


def _name(host: str) -> str:
    return host[1:].partition("]")[0] if host.startswith("[") else host.partition(":")[0]


def _with_headers(send: Any) -> Any:
    async def sending(message: Any) -> None:
        if message["type"] == "http.response.start":
            extra = [(name.lower().encode(), value.encode()) for name, value in HEADERS.items()]
            message = {**message, "headers": [*message.get("headers", []), *extra]}
        await send(message)

    return sending
