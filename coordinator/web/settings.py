"""[web] of coordinator.toml: where the live page listens, and who may see it."""

import ipaddress
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Final

from msgspec import Struct

LISTEN: Final = "127.0.0.1:8765"
OFF: Final = "off"
CREDENTIAL: Final = "web-token"
TOKEN_VARIABLE: Final = "EDGED_WEB_TOKEN"
SHORTEST_TOKEN: Final = 16


class WebError(ValueError):
    """The page cannot listen; the text names the address, the cause and the way out."""


class WebOptions(Struct, frozen=True, forbid_unknown_fields=True):
    """`listen` is HOST:PORT or "off". Addresses that are not loopback want a token."""

    listen: str = LISTEN
    token_file: str | None = None

    def place(self) -> tuple[str, int] | None:
        """Host and port; None: no page. Raises WebError."""
        if self.listen in ("", OFF):
            return None
        host, colon, port = self.listen.rpartition(":")
        host = host.strip("[]")
        if not (colon and host and port.isdigit() and int(port) <= 65535):
            raise WebError(f"[web] listen {self.listen!r}: write it as host:port, or {OFF!r}")
        return host, int(port)

    def token(self, environment: Mapping[str, str] = os.environ) -> str:
        """What a reader must know; empty where none is needed. Raises WebError."""
        path, folder = self.token_file, environment.get("CREDENTIALS_DIRECTORY")
        if path is None and folder and (Path(folder) / CREDENTIAL).exists():
            path = str(Path(folder) / CREDENTIAL)
        try:
            token = (
                Path(path).expanduser().read_text().strip() if path else environment.get(TOKEN_VARIABLE, "")
            )
        except (OSError, UnicodeDecodeError) as error:
            why = getattr(error, "strerror", None) or "not text"
            raise WebError(f"[web] token_file {path}: {why}") from None
        if token and len(token) < SHORTEST_TOKEN:
            raise WebError(f"[web] the token has {len(token)} characters; give it {SHORTEST_TOKEN} at least")
        place = self.place()
        if place is not None and not token and not is_loopback(place[0]):
            raise WebError(
                f"[web] listen {self.listen}: others could reach it, so it needs a token: put one into a "
                f"file (openssl rand -hex 16) and name it in token_file, or in {TOKEN_VARIABLE}; "
                "or listen on 127.0.0.1"
            )
        return token


def is_loopback(host: str) -> bool:
    """True for addresses that only this machine reaches."""
    if host == "localhost":
        return True
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False
