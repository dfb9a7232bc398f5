"""A real InfluxDB 1.x in a folder of its own on loopback: started, killed, started again, asked."""

import os
import shutil
import signal
import subprocess
import time
import urllib.error
import urllib.request
from pathlib import Path

from coordinator.broker import free_port
from coordinator.telemetry.server import InfluxServer
from coordinator.telemetry.settings import TelemetryOptions

STARTS_SECONDS = 60.0

CONFIGURATION = """
reporting-enabled = false
bind-address = "127.0.0.1:{rpc}"
[meta]
  dir = "{folder}/meta"
[data]
  dir = "{folder}/data"
  wal-dir = "{folder}/wal"
[monitor]
  store-enabled = false
[coordinator]
  log-queries-after = "0s"
[http]
  bind-address = "127.0.0.1:{port}"
  auth-enabled = {auth}
  log-enabled = false
"""


def find_influxd() -> str | None:
    return shutil.which("influxd")


class Influx:
    """`auth`: it wants users; the first one is made by `server`."""

    def __init__(self, folder: Path, auth: bool = False) -> None:
        self.folder, self.port, self.auth = folder, free_port(), auth
        self.url = f"http://127.0.0.1:{self.port}"
        self._process: subprocess.Popen[bytes] | None = None

    def start(self) -> None:
        file = self.folder / "influxdb.conf"
        text = CONFIGURATION.format(
            rpc=free_port(), port=self.port, folder=self.folder, auth=str(self.auth).lower()
        )
        file.write_text(text)
        with (self.folder / "influxd.log").open("ab") as log:
            self._process = subprocess.Popen(
                ["influxd", "run", "-config", str(file)], stdout=log, stderr=log, start_new_session=True
            )
        until = time.monotonic() + STARTS_SECONDS
        while not answers(self.url + "/ping"):
            assert time.monotonic() < until, (self.folder / "influxd.log").read_text()[-2000:]
            time.sleep(0.05)

    def kill(self) -> None:
        if self._process is not None:
            os.killpg(self._process.pid, signal.SIGKILL)
            self._process.wait()
            self._process = None

    def options(self, **changes: object) -> TelemetryOptions:
        return TelemetryOptions(**{"url": self.url, **changes})  # type: ignore[arg-type]

    def server(self, **changes: object) -> InfluxServer:
        return InfluxServer(self.options(**changes))


def answers(url: str) -> bool:
    try:
        with urllib.request.urlopen(url, timeout=2) as answer:
            return int(answer.status) < 300
    except urllib.error.HTTPError:
        return True
    except OSError:
        return False


def count(server: InfluxServer, measurement: str, field: str, where: str = "") -> int:
    """Points with that field."""
    found = server.query(f'SELECT count("{field}") FROM "{measurement}"{where}')
    return int(found[0]["values"][0][1]) if found else 0
