"""One InfluxDB over HTTP: writes, InfluxQL queries, and which generation it is. It retries nothing."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final, Protocol
from urllib.parse import urlencode

import msgspec
from msgspec import Struct

from coordinator.telemetry import generations as wants
from coordinator.telemetry.generations import Generation, Verdict
from coordinator.telemetry.settings import (
    CREDENTIAL,
    TOKEN_VARIABLE,
    TelemetryError,
    TelemetryOptions,
)

CONNECT_SECONDS: Final = 5.0
ANSWER_SECONDS: Final = 20.0


class Answer(Struct, frozen=True):
    """What came back; header names in lower case."""

    status: int
    body: str
    headers: dict[str, str] = {}


class Http(Protocol):
    """Does one request; raises OSError where there is no answer."""

    def __call__(self, method: str, url: str, body: bytes | None, headers: dict[str, str], /) -> Answer: ...


def http() -> Http:
    """The real one, which keeps its connection."""
    import urllib3

    pool = urllib3.PoolManager(
        num_pools=2, retries=False, timeout=urllib3.Timeout(connect=CONNECT_SECONDS, read=ANSWER_SECONDS)
    )

    def request(method: str, url: str, body: bytes | None, headers: dict[str, str]) -> Answer:
        try:
            found = pool.request(method, url, body=body, headers=headers, redirect=False)
        except urllib3.exceptions.HTTPError as error:
            raise OSError(str(error).partition(": ")[2] or str(error)) from None
        lower = {name.lower(): value for name, value in found.headers.items()}
        return Answer(found.status, found.data.decode(errors="replace"), lower)

    return request


class InfluxServer:
    """The configured server. Which generation it is, is asked once it answers."""

    def __init__(self, options: TelemetryOptions, request: Http | None = None) -> None:
        self.options = options
        self._request = request or http()
        self._secret = secret(options)
        self._which: Generation | None = None if options.api == "auto" else options.api

    def which(self) -> Generation:
        """Raises OSError where it does not answer, TelemetryError where its answer tells nothing."""
        if self._which is None:
            found = self._ask("GET", "/ping", None, self._any_authorization())
            version = found.headers.get("x-influxdb-version", "")
            self._which = wants.generation(version)
            if self._which is None:
                raise TelemetryError(
                    f"{self.options.url}: cannot tell which InfluxDB answers (HTTP {found.status}, version "
                    f"{version or 'not said'!r}); set [telemetry] api to v1, v2 or v3"
                )
        return self._which

    def write(self, lines: list[str]) -> Verdict:
        """Send the lines as one batch; never raises."""
        try:
            which = self.which()
            head = {
                **wants.headers(which, self.options, self._secret),
                "Content-Type": "text/plain; charset=utf-8",
            }
            body = "\n".join(lines).encode()
            found = self._ask("POST", wants.write_target(which, self.options), body, head)
        except OSError as error:
            return Verdict("away", f"{self.options.url}: {error}")
        except TelemetryError as error:
            return Verdict("settings", str(error))
        return wants.judge(found.status, found.body, found.headers, self.options)

    def query(self, statement: str) -> list[dict[str, Any]]:
        """Series of an InfluxQL statement: name, tags, columns, values. Raises TelemetryError."""
        try:
            which = self.which()
            head = {
                **wants.headers(which, self.options, self._secret),
                "Content-Type": "application/x-www-form-urlencoded",
            }
            body = urlencode({"q": statement}).encode()
            found = self._ask("POST", wants.query_target(which, self.options), body, head)
        except OSError as error:
            raise TelemetryError(f"{self.options.url}: {error}") from None
        try:
            answer = msgspec.json.decode(found.body)
        except msgspec.DecodeError:
            raise TelemetryError(
                f"{self.options.url}: HTTP {found.status}: {found.body.strip()[:300]}"
            ) from None
        results = answer.get("results", []) if isinstance(answer, dict) else []
        # Errors of a statement come inside an HTTP 200.
        wrong = answer.get("error") or next((r["error"] for r in results if "error" in r), "")
        if wrong or found.status >= 400:
            raise TelemetryError(
                f"{self.options.url}: {wrong or f'HTTP {found.status}'} (asked: {statement[:200]})"
            )
        return [series for result in results for series in result.get("series", [])]

    def call(self, method: str, path: str, body: Any = None) -> Answer:
        """Any other request, its body as JSON. Raises TelemetryError where there is no answer."""
        try:
            head = {
                **wants.headers(self.which(), self.options, self._secret),
                "Content-Type": "application/json",
            }
            return self._ask(method, path, None if body is None else msgspec.json.encode(body), head)
        except OSError as error:
            raise TelemetryError(f"{self.options.url}: {error}") from None

    def _ask(
        self,
        method: str,
        target: str | tuple[str, dict[str, str]],
        body: bytes | None,
        headers: dict[str, str],
    ) -> Answer:
        path, query = (target, {}) if isinstance(target, str) else target
        url = self.options.url.rstrip("/") + path + (f"?{urlencode(query)}" if query else "")
        return self._request(method, url, body, headers)

    def _any_authorization(self) -> dict[str, str]:
        """3.x wants a token even for /ping, and takes either form."""
        which: Generation = "v1" if self.options.username else "v3"
        return wants.headers(which, self.options, self._secret)


def secret(options: TelemetryOptions, environment: Mapping[str, str] = os.environ) -> str:
    """Token or password: file, systemd's credential or variable, in this order. Raises TelemetryError."""
    path = options.password_file if options.username else options.token_file
    folder = environment.get("CREDENTIALS_DIRECTORY")
    if path is None and folder and (Path(folder) / CREDENTIAL).exists():
        path = str(Path(folder) / CREDENTIAL)
    if path is None:
        return environment.get(TOKEN_VARIABLE, "")
    try:
        return Path(path).expanduser().read_text().strip()
    except (OSError, UnicodeDecodeError) as error:
        key = "password_file" if options.username else "token_file"
        why = getattr(error, "strerror", None) or "not text"
        raise TelemetryError(f"[telemetry] {key} {path}: {why}") from None
