"""Debian's Chromium without a screen, driven over its debugging socket; one tab, ended with the test."""

import base64
import itertools
import json
import os
import shutil
import signal
import subprocess
import time
import urllib.request
from collections.abc import Callable
from pathlib import Path
from typing import Any

from websockets.sync.client import ClientConnection, connect

FLAGS = (
    "--headless --no-sandbox --disable-gpu --disable-quic --no-first-run --disable-background-networking "
    "--disable-component-update --disable-sync --disable-dev-shm-usage --hide-scrollbars "
    "--js-flags=--expose-gc --remote-debugging-port=0 --remote-allow-origins=*"
).split()
PATIENCE_SECONDS = 90.0


def find_chromium() -> str | None:
    return shutil.which("chromium")


class Browser:
    """`console` collects errors of the page, `dialogs` whatever it wanted to say to the user."""

    def __init__(self, folder: Path) -> None:
        self._numbers = itertools.count(1)
        self.console: list[str] = []
        self.dialogs: list[str] = []
        self.held: dict[str, str] = {}
        """Addresses that the page waits for, by the request's id: see `hold`."""
        profile = folder / "profile"
        self._log = (folder / "chromium.log").open("wb")
        self._process = subprocess.Popen(
            ["chromium", *FLAGS, f"--user-data-dir={profile}", "about:blank"],
            stdout=self._log,
            stderr=self._log,
            start_new_session=True,
        )
        file = profile / "DevToolsActivePort"
        until = time.monotonic() + PATIENCE_SECONDS
        while not (file.exists() and "\n" in file.read_text()):
            assert time.monotonic() < until, (folder / "chromium.log").read_text()[-2000:]
            time.sleep(0.05)
        port = file.read_text().split()[0]
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/json", timeout=30) as answer:
            tab = next(one for one in json.load(answer) if one["type"] == "page")
        self._socket: ClientConnection = connect(tab["webSocketDebuggerUrl"], max_size=None)
        for domain in ("Page", "Runtime", "Log", "Performance", "HeapProfiler"):
            self.do(f"{domain}.enable")

    def close(self) -> None:
        self._socket.close()
        os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()
        self._log.close()

    def do(self, method: str, **parameters: Any) -> dict[str, Any]:
        """One command of the protocol; what happens meanwhile is collected."""
        number = next(self._numbers)
        self._socket.send(json.dumps({"id": number, "method": method, "params": parameters}))
        while True:
            message = json.loads(self._socket.recv(timeout=PATIENCE_SECONDS))
            if message.get("id") == number:
                assert "error" not in message, (method, message["error"])
                result: dict[str, Any] = message["result"]
                return result
            self._happened(message)

    def open(self, url: str) -> None:
        self.do("Page.navigate", url=url)

    def hold(self, *patterns: str) -> None:
        """Let requests for such addresses (`*` stands for anything) wait for `release`."""
        self.do("Fetch.enable", patterns=[{"urlPattern": pattern} for pattern in patterns])

    def holds(self, part: str) -> bool:
        """True when an address with this in it is held."""
        self.do("Page.enable")  # any command: its answer comes after what has happened before it
        return any(part in url for url in self.held.values())

    def release(self) -> None:
        """Let all requests go on; from here on none is held."""
        self.do("Fetch.disable")
        self.held.clear()

    def value(self, script: str) -> Any:
        """What a script comes to in the page; promises are waited for."""
        found = self.do("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        assert "exceptionDetails" not in found, found["exceptionDetails"]
        return found["result"].get("value")

    def text(self, selector: str) -> str:
        return str(self.value(f"document.querySelector({selector!r})?.textContent ?? ''"))

    def until(self, script: str, seconds: float = PATIENCE_SECONDS) -> Any:
        """What a script comes to, once that is something."""
        end = time.monotonic() + seconds
        while not (found := self.value(script)):
            assert time.monotonic() < end, f"waited for {script}; {self.console[-5:]}"
            time.sleep(0.1)
        return found

    def look(self, dark: bool = False, width: int = 1280, height: int = 900) -> None:
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        self.do("Emulation.setEmulatedMedia", features=[scheme])
        metrics = {"width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 600}
        self.do("Emulation.setDeviceMetricsOverride", **metrics)

    def picture(self, file: Path) -> None:
        shot = self.do("Page.captureScreenshot", format="png", captureBeyondViewport=True)
        file.write_bytes(base64.b64decode(shot["data"]))

    def key(self, name: str, code: int) -> None:
        for kind in ("keyDown", "keyUp"):
            self.do("Input.dispatchKeyEvent", type=kind, key=name, code=name, windowsVirtualKeyCode=code)

    def heap_bytes(self) -> int:
        """What the page's script holds after a collection; the least of some, since a chart being drawn
        holds half as much again for a moment.
        """
        found = []
        for _ in range(4):
            self.do("HeapProfiler.collectGarbage")
            found.append(int(self.do("Runtime.getHeapUsage")["usedSize"]))
            time.sleep(0.4)
        return min(found)

    def wait(self, true: Callable[[], bool], seconds: float = PATIENCE_SECONDS) -> None:
        end = time.monotonic() + seconds
        while not true():
            assert time.monotonic() < end
            time.sleep(0.1)

    def _happened(self, message: dict[str, Any]) -> None:
        what, told = message["method"], message["params"]
        if what == "Runtime.exceptionThrown":
            self.console.append(json.dumps(told["exceptionDetails"])[:500])
        elif what == "Log.entryAdded" and told["entry"]["level"] == "error":
            self.console.append(f"{told['entry']['text']} {told['entry'].get('url', '')}")
        elif what == "Fetch.requestPaused":
            self.held[told["requestId"]] = told["request"]["url"]
        elif what == "Page.javascriptDialogOpening":
            self.dialogs.append(str(told["message"]))
            self._socket.send(
                json.dumps(
                    {
                        "id": next(self._numbers),
                        "method": "Page.handleJavaScriptDialog",
                        "params": {"accept": False},
                    }
                )
            )
