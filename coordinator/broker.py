"""A broker of one's own on loopback, for the demo and a single machine: mosquitto if installed, else amqtt.

A child process with a private configuration and a free port that ends with the process that started it. The
installed service never starts one, and a fleet has a broker of its own.
"""

import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec
from pathlib import Path
from typing import Literal, TypeAlias

BrokerKind: TypeAlias = Literal["mosquitto", "amqtt"]
HOST = "127.0.0.1"
START_SECONDS = 10.0
ADMIN_FOLDERS = "/usr/local/sbin:/usr/sbin"
"""Debian puts mosquitto where an ordinary user's PATH does not look."""

# Between fork and exec a process with threads may run next to nothing, so the child sets its own death signal
# in a fresh interpreter that then becomes the broker. The parent may have died before that: getppid tells.
LAUNCHER = """
import ctypes, os, signal, sys
with_parent = getattr(ctypes.CDLL(None), "prctl", None)
if with_parent is not None:
    with_parent(1, signal.SIGTERM)
if os.getppid() != int(sys.argv[1]):
    sys.exit("the process that wanted this broker is gone")
os.execv(sys.argv[2], sys.argv[2:])
"""


class BrokerError(RuntimeError):
    """No broker could be started; the text says why and what to do."""


def find_mosquitto() -> str | None:
    """The path of an installed mosquitto, or None."""
    return shutil.which("mosquitto", path=f"{os.environ.get('PATH', '')}:{ADMIN_FOLDERS}")


class Broker:
    """A broker of one's own. The kernel ends it with the thread that started it: best the main one."""

    def __init__(self, kind: BrokerKind, directory: Path, port: int, extra: str = "") -> None:
        self.kind = kind
        self.host = HOST
        self.port = port
        self.log_path = directory / "broker.log"
        self._directory = directory
        self._extra = extra
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def pid(self) -> int | None:
        return self._process.pid if self._process is not None else None

    @property
    def running(self) -> bool:
        return self._process is not None and self._process.poll() is None

    def __str__(self) -> str:
        if self.kind == "mosquitto":
            return f"mosquitto on {self.host}:{self.port}"
        return (
            f"amqtt on {self.host}:{self.port} (no mosquitto found: good for this machine only, "
            "it forgets everything when it stops)"
        )

    def start(self) -> None:
        """Start on the same port and wait until it answers. Raises BrokerError with the end of its log."""
        if self.running:
            return
        command = self._command()
        self._check_port()
        with self.log_path.open("ab") as log:
            self._process = subprocess.Popen(
                [sys.executable, "-c", LAUNCHER, str(os.getpid()), *command],
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=self._directory,
            )
        deadline = time.monotonic() + START_SECONDS
        while time.monotonic() < deadline and self.running:
            with suppress(OSError), socket.create_connection((self.host, self.port), timeout=1.0):
                return
            time.sleep(0.02)
        self.kill()
        raise BrokerError(f"{self.kind} did not start on {self.host}:{self.port}: {self._last_words()}")

    def stop(self, timeout_seconds: float = 5.0) -> None:
        """Ask it to end, then insist."""
        if self._process is None:
            return
        self._process.terminate()
        try:
            self._process.wait(timeout_seconds)
        except subprocess.TimeoutExpired:
            self.kill()

    def kill(self) -> None:
        """End it at once, without a chance to write anything down."""
        if self._process is not None:
            self._process.kill()
            self._process.wait()

    def pause(self) -> None:
        """Let it hang: connections stay, nothing is answered."""
        self._signal(signal.SIGSTOP)

    def resume(self) -> None:
        self._signal(signal.SIGCONT)

    def _signal(self, number: signal.Signals) -> None:
        if self._process is not None and self.running:
            self._process.send_signal(number)

    def _check_port(self) -> None:
        """Whoever has the port already would answer in the place of a broker that could not start."""
        with socket.socket() as probe:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            try:
                probe.bind((self.host, self.port))
            except OSError as error:
                raise BrokerError(f"{self.kind} did not start on {self.host}:{self.port}: {error}") from error

    def _command(self) -> list[str]:
        if self.kind == "amqtt":
            return [sys.executable, "-m", "coordinator.amqtt_broker", str(self.port)]
        path = find_mosquitto()
        if path is None:
            raise BrokerError("mosquitto is not installed (Debian: apt install mosquitto)")
        configuration = self._directory / "mosquitto.conf"
        configuration.write_text(mosquitto_configuration(self._directory, self.port) + self._extra)
        return [path, "-c", str(configuration)]

    def _last_words(self) -> str:
        lines = self.log_path.read_text(errors="replace").strip().splitlines()
        return "; ".join(lines[-3:]) or "it said nothing"


def mosquitto_configuration(directory: Path, port: int) -> str:
    """Loopback only, queues deep enough for a stalled reader, and what is retained survives a restart."""
    lines = [
        f"listener {port} {HOST}",
        "allow_anonymous true",
        "max_queued_messages 10000",
        "persistence true",
        "set_tcp_nodelay true",
        f"persistence_location {directory}/",
        "log_dest stdout",
    ]
    if os.geteuid() == 0:
        # It would become the user mosquitto, who may not read or write in this directory.
        lines.append("user root")
    return "\n".join(lines) + "\n"


def free_port() -> int:
    """A port of loopback that was free a moment ago; somebody else may be faster to take it."""
    with socket.socket() as probe:
        probe.bind((HOST, 0))
        return int(probe.getsockname()[1])


def start_broker(directory: Path, port: int = 0, *, kind: BrokerKind | None = None) -> Broker:
    """Start a broker with its files in `directory`; port 0 takes a free one. Raises BrokerError."""
    if kind is None:
        kind = "mosquitto" if find_mosquitto() is not None else "amqtt"
    if kind == "amqtt" and find_spec("amqtt") is None:
        raise BrokerError(
            "no broker to start: install mosquitto (Debian: apt install mosquitto) "
            "or pip install 'edged[coordinator]', or name a running one with --broker"
        )
    directory.mkdir(parents=True, exist_ok=True)
    attempts = 1 if port else 3
    for attempt in range(attempts):
        broker = Broker(kind, directory, port or free_port())
        try:
            broker.start()
        except BrokerError:
            # Somebody else may have taken the port since it was found free.
            if attempt + 1 == attempts:
                raise
        else:
            return broker
    raise AssertionError("unreachable")
