"""Recorded machines for the probes' tests: a fixture is JSON, path -> content, laid out below a folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from probes import CommandError, CommandResult, Context, HttpError

FIXTURES = Path(__file__).parents[3] / "shared" / "fixtures" / "probes"


def recorded(name: str) -> dict[str, Any]:
    """One recorded machine; skips where the recordings are not beside the repository."""
    path = FIXTURES / f"{name}.json"
    if not path.exists():
        pytest.skip(f"no recorded machines at {FIXTURES}")
    record: dict[str, Any] = json.loads(path.read_text())
    return record


def put(context: Context, path: str, content: str) -> None:
    """Write one file of the machine."""
    target = context.path(path)
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content)


class Pages:
    """An HTTP getter over a table of path -> body; counts what was asked."""

    def __init__(self, pages: Mapping[str, str | bytes]) -> None:
        self.pages = dict(pages)
        self.asked: list[str] = []

    def __call__(self, url: str, timeout_seconds: float) -> bytes:
        self.asked.append(url)
        path = "/" + url.partition("://")[2].partition("/")[2]
        if path not in self.pages:
            raise HttpError(f"{url}: answered 404 Not Found")
        page = self.pages[path]
        return page.encode() if isinstance(page, str) else page


class Broker:
    """An MQTT subscriber that a test publishes to."""

    def __init__(self) -> None:
        self.subscribers: list[tuple[str, Callable[[str, bytes], None]]] = []

    def __call__(self, topic: str, callback: Callable[[str, bytes], None]) -> Callable[[], None]:
        entry = (topic, callback)
        self.subscribers.append(entry)
        return lambda: self.subscribers.remove(entry)

    def publish(self, topic: str, payload: str | bytes) -> None:
        body = payload.encode() if isinstance(payload, str) else payload
        for wanted, callback in list(self.subscribers):
            if wanted == topic:
                callback(topic, body)


class NotSupportedError(Exception):
    """As NVML words it."""

    def __str__(self) -> str:
        return "Not Supported"


def nvml(*, millijoules: int | None, milliwatts: int | None, count: int = 1) -> Callable[[str], Any]:
    """A module loader that knows `pynvml` alone, with `count` GPUs that all read the same."""

    def reading(value: int | None) -> Callable[[Any], int]:
        def read(handle: Any) -> int:
            if value is None:
                raise NotSupportedError
            return value

        return read

    module = SimpleNamespace(
        nvmlInit=lambda: None,
        nvmlDeviceGetCount=lambda: count,
        nvmlDeviceGetHandleByIndex=lambda index: index,
        nvmlDeviceGetUUID=lambda handle: f"GPU-{handle}",
        nvmlDeviceGetTotalEnergyConsumption=reading(millijoules),
        nvmlDeviceGetPowerUsage=reading(milliwatts),
    )

    def load(name: str) -> Any:
        if name != "pynvml":
            raise ImportError(name)
        return module

    return load


def commands(table: Mapping[str, str | CommandResult]) -> Callable[[Sequence[str], float], CommandResult]:
    """A runner over a table of command lines."""

    def run(command: Sequence[str], timeout_seconds: float) -> CommandResult:
        said = table.get(" ".join(command))
        if said is None:
            raise CommandError(f"{command[0]} is not installed")
        return said if isinstance(said, CommandResult) else CommandResult(0, said, "")

    return run
