"""The real outside: this machine's files, clocks, commands and network, as a `Context`."""

from __future__ import annotations

import importlib
import subprocess
import threading
import time
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

from probes import CommandError, CommandResult, Context, HttpError
from probes._files import read_bytes

BODY_BYTES = 65536  # no plug answers more
LINE_CHARACTERS = 65536

Subscribe = Callable[[str, Callable[[str, bytes], None]], Callable[[], None]]


class SystemClock:
    """See `probes.Clock`."""

    def monotonic(self) -> float:
        return time.monotonic()

    def boottime(self) -> float:
        return time.clock_gettime(time.CLOCK_BOOTTIME)


def run(command: Sequence[str], timeout_seconds: float) -> CommandResult:
    """The output of a command. Raises CommandError where it is not there, not permitted or too slow."""
    try:
        done = subprocess.run(
            list(command),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=timeout_seconds,
            check=False,
            env={"LC_ALL": "C", "PATH": "/usr/sbin:/usr/bin:/sbin:/bin:/opt/vc/bin"},
        )
    except FileNotFoundError:
        raise CommandError(f"{command[0]} is not installed") from None
    except PermissionError:
        raise CommandError(f"{command[0]} may not be run by this user") from None
    except subprocess.TimeoutExpired:
        raise CommandError(f"{command[0]} did not end within {timeout_seconds:g} s") from None
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}") from None
    return CommandResult(
        done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace")
    )


def stream(command: Sequence[str], line: Callable[[str | None], None]) -> Callable[[], None]:
    """Start a command that goes on printing. Raises CommandError where it cannot be started."""
    try:
        process = subprocess.Popen(
            list(command),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
    except OSError as error:
        raise CommandError(f"{command[0]}: {error.strerror}") from None

    def follow() -> None:
        assert process.stdout is not None
        with process.stdout:
            for text in process.stdout:
                line(text[:LINE_CHARACTERS])
        process.wait()
        line(None)

    threading.Thread(target=follow, name="edged-stream", daemon=True).start()
    return process.terminate


def no_stream(command: Sequence[str], line: Callable[[str | None], None]) -> Callable[[], None]:
    """Like `no_commands`."""
    raise CommandError(f"{command[0]} is not run: the root is not this machine's")


def no_module(name: str) -> Any:
    """Libraries look at this machine, not below another root."""
    raise ImportError(f"{name} is not used: the root is not this machine's")


def no_commands(command: Sequence[str], timeout_seconds: float) -> CommandResult:
    """Below another root this machine's commands would answer for the wrong machine."""
    raise CommandError(f"{command[0]} is not run: the root is not this machine's")


def http_get(url: str, timeout_seconds: float) -> bytes:
    """The body of a GET without proxies, redirects or passwords: a plug stands in the same network.

    Raises HttpError with host, port and cause.
    """
    from http.client import HTTPConnection, HTTPException
    from urllib.parse import urlsplit

    parts = urlsplit(url)
    if parts.scheme != "http" or not parts.hostname:
        raise HttpError(f"{url!r} is not an http:// address")
    where = f"{parts.hostname}:{parts.port or 80}"
    connection = HTTPConnection(parts.hostname, parts.port or 80, timeout=timeout_seconds)
    try:
        connection.request("GET", parts.path + (f"?{parts.query}" if parts.query else ""))
        answer = connection.getresponse()
        body = answer.read(BODY_BYTES + 1)
    except (OSError, HTTPException) as error:
        raise HttpError(f"{where}: {str(error) or type(error).__name__}") from None
    finally:
        connection.close()
    if answer.status != 200:
        raise HttpError(f"{where}: answered {answer.status} {answer.reason}")
    if len(body) > BODY_BYTES:
        raise HttpError(f"{where}: answered more than {BODY_BYTES} bytes")
    return body


def real_context(
    root: Path = Path("/"),
    options: Mapping[str, Mapping[str, object]] | None = None,
    mqtt_subscribe: Subscribe | None = None,
    activity: Callable[[float], float] | None = None,
) -> Context:
    """This machine; below another root only files are read, never this machine's commands and GPUs."""
    here = root == Path("/")
    return Context(
        root=root,
        clock=SystemClock(),
        run=run if here else no_commands,
        stream=stream if here else no_stream,
        http_get=http_get,
        read_bytes=read_bytes,
        mqtt_subscribe=mqtt_subscribe,
        load_module=importlib.import_module if here else no_module,
        activity=activity,
        options=options or {},
    )
