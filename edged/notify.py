"""Words to the service manager by its socket (sd_notify): READY, STATUS, WATCHDOG, STOPPING.

Outside a service nothing is sent. The watchdog is fed by whoever makes progress, never by a timer of its own.
"""

import os
import socket
import time
from collections.abc import Callable, Mapping

STATUS_SECONDS = 1.0


class Notify:
    """`environment` and `clock` stand for the process's own."""

    def __init__(
        self,
        environment: Mapping[str, str] | None = None,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        found = os.environ if environment is None else environment
        self._clock = clock
        self._address = found.get("NOTIFY_SOCKET", "")
        self._status = ""
        self._fed = -1.0
        self._described = float("-inf")
        # A pid means that the watchdog is that process's; a service without one leaves it out.
        mine = found.get("WATCHDOG_PID", str(os.getpid())) == str(os.getpid())
        limit = float(found.get("WATCHDOG_USEC", "0") or 0) / 1e6 if mine else 0.0
        self.watchdog_seconds = limit / 2 if limit else None

    def ready(self) -> None:
        """Locally healthy: sensors looked at, link trying. A broker that is away does not hold this up."""
        self._send("READY=1")

    def status(self, text: str) -> None:
        """One line for `systemctl status`, sent when it changes."""
        line = " ".join(text.split())
        if line != self._status:
            self._status = line
            self._send(f"STATUS={line}")

    def status_of(self, describe: Callable[[], str]) -> None:
        """As `status`, looked for once a second at most, and only where somebody reads it."""
        now = self._clock()
        if self._address and now - self._described >= STATUS_SECONDS:
            self._described = now
            self.status(describe())

    def alive(self) -> None:
        """The loop has made a turn; sent every half watchdog time at most, and never more than once a
        second.
        """
        if self.watchdog_seconds is None:
            return
        now = self._clock()
        if self._fed < 0 or now - self._fed >= max(1.0, self.watchdog_seconds * 0.5):
            self._fed = now
            self._send("WATCHDOG=1")

    def stopping(self) -> None:
        """The end has begun."""
        self._send("STOPPING=1")

    def _send(self, text: str) -> None:
        if not self._address:
            return
        address = "\0" + self._address[1:] if self._address.startswith("@") else self._address
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC) as out:
                out.sendto(text.encode(), address)
        except OSError:
            pass  # the manager is gone or restarting; the work matters more than telling it
