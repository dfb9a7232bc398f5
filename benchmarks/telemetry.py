"""1,000 boards at 1 Hz through mosquitto into a real coordinator's store, its InfluxDB, and its live page.

The boards are one paho client that publishes births and watts raw; coordinator, mosquitto and influxd are
processes of their own. The watts are the second of publishing: a reader of the page's stream sees the lag.
"""

import argparse
import http.client
import json
import os
import shutil
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from typing import Any

import paho.mqtt.client as mqtt
import psutil
from paho.mqtt.enums import CallbackAPIVersion

from coordinator.broker import Broker, free_port
from coordinator.client import Client, client_id, client_name, mqtt_link
from coordinator.telemetry.setup import setup
from edged.controls import Action, GetStatus, RunSettings, Start
from edged.link import LinkConfig
from edged.messages import Birth, EnergyChannel, PoolOffer, Power, encode
from edged.topics import Topics
from tests.servers.influx import Influx


def ask(port: int, action: Action) -> dict[str, Any]:
    name = client_name()
    config = LinkConfig("127.0.0.1", port, client_id("bench", name))
    with Client(mqtt_link(config), config, "bench", name) as client:
        return client.demand(action).data


def lags(port: int, began: float, found: list[float], ended: threading.Event) -> None:
    """Read the page's stream and note by how much each board's watts are behind."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    connection.request("GET", "/api/events")
    stream = connection.getresponse()
    watts = False
    while not ended.is_set():
        line = stream.readline()
        if line.startswith(b"event:"):
            watts = line.strip() == b"event: watts"
        elif watts and line.startswith(b"data:"):
            now = time.monotonic() - began
            found += [now - power["watts"] for power in json.loads(line[5:]).values()]


def publish(client: mqtt.Client, boards: int, seconds: int, began: float) -> int:
    """Each board once a second, spread over it; answers how many were sent."""
    topics, sent = Topics("bench"), 0
    names = [topics.of("power", board=f"b{n:04d}") for n in range(boards)]
    for second in range(seconds):
        for n, topic in enumerate(names):
            due = began + second + n / boards
            if (wait := due - time.monotonic()) > 0.002:
                time.sleep(wait)
            watts = {"meter": time.monotonic() - began}
            power = Power(f"b{n:04d}", f"boot{n}", "meter", "measured", watts, {"meter": float(second)})
            client.publish(topic, encode(power), 0)
            sent += 1
    return sent


LIMITS = {"points dropped": 0, "points missing": 0, "share of one core": 0.5, "behind, 99 %, ms": 250.0}
"""At 1,000 boards, on two quiet cores."""


def main() -> None:
    """Print the figures; the exit code is 1 where one is above its limit."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--boards", type=int, default=1000)
    arguments.add_argument("--seconds", type=int, default=60)
    arguments.add_argument("--json", action="store_true")
    options = arguments.parse_args()
    if shutil.which("influxd") is None or shutil.which("mosquitto") is None:
        sys.exit("influxd and mosquitto are needed: apt install influxdb mosquitto")
    with tempfile.TemporaryDirectory() as name:
        figures = measured(Path(name), options.boards, options.seconds)
    for key, value in figures.items():
        print(f"{key:40} {value:,.3f}" if isinstance(value, float) else f"{key:40} {value:,}")
    if options.json:
        print(json.dumps(figures))
    above = [f"{name} is above {limit:g}" for name, limit in LIMITS.items() if figures[name] > limit]
    if above:
        sys.exit("; ".join(above))


def measured(folder: Path, boards: int, seconds: int) -> dict[str, float | int]:
    """Start everything, publish, look, and end it."""
    ports = {name: free_port() for name in ("broker", "page")}
    (folder / "broker").mkdir()
    broker = Broker("mosquitto", folder / "broker", ports["broker"])
    broker.start()
    influx = Influx(folder)
    influx.start()
    toml = folder / "coordinator.toml"
    toml.write_text(
        f'fleet = "bench"\n[broker]\nhost = "127.0.0.1"\nport = {ports["broker"]}\n[store]\n'
        f'folder = "{folder}/store"\n[telemetry]\nurl = "{influx.url}"\n'
        f'[web]\nlisten = "127.0.0.1:{ports["page"]}"\n[data.digits]\npath = "builtin"\n'
    )
    log = (folder / "log").open("wb")
    server = influx.server(api="v1")
    list(setup(server))
    command = [sys.executable, "-m", "coordinator", "serve", "--config", str(toml), "--log-level", "warning"]
    coordinator = subprocess.Popen(
        command, stdout=log, stderr=log, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )
    client = mqtt.Client(CallbackAPIVersion.VERSION2, client_id="bench")
    try:
        client.connect("127.0.0.1", ports["broker"])
        client.loop_start()
        topics, channel = Topics("bench"), EnergyChannel("meter", "board", "measured", headline=True)
        pool = {"digits": PoolOffer("f", 1000, ("digits",))}
        for n in range(boards):
            birth = Birth(f"b{n:04d}", f"boot{n}", 1, "up", channels=(channel,), pools=pool)
            client.publish(
                topics.of("birth", board=birth.board), encode(birth), 1, retain=True
            ).wait_for_publish()
        time.sleep(5)
        # A run that waits for more boards than there are: watts are recorded, and nobody trains.
        ask(ports["broker"], Start(RunSettings("digits", "digits", 100, 1, min_boards=boards + 1, name="r")))
        time.sleep(8)
        process, began = psutil.Process(coordinator.pid), time.monotonic()
        found: list[float] = []
        ended = threading.Event()
        reader = threading.Thread(target=lags, args=(ports["page"], began, found, ended), daemon=True)
        reader.start()
        cpu, rss = process.cpu_times(), process.memory_info().rss
        sent = publish(client, boards, seconds, began)
        spent = process.cpu_times()
        wall = time.monotonic() - began
        time.sleep(5)
        ended.set()
        status = ask(ports["broker"], GetStatus())
        rows = server.query('SELECT count("watts") FROM "power"')[0]["values"][0][1]
        used = (spent.user + spent.system - cpu.user - cpu.system) / wall
        return {
            "boards": boards,
            "seconds": round(wall, 1),
            "watts published": sent,
            "watts in the InfluxDB": rows,
            "points missing": sent - rows,
            "points dropped": sum(status["telemetry"]["dropped"].values()),
            "share of one core": used,
            "watts on the page's stream": len(found),
            "behind, median, ms": 1000 * statistics.median(found),
            "behind, 99 %, ms": 1000 * sorted(found)[int(0.99 * len(found))],
            "memory before, MB": rss / 1e6,
            "memory after, MB": process.memory_info().rss / 1e6,
        }
    finally:
        client.disconnect()
        client.loop_stop()
        coordinator.kill()
        coordinator.wait()
        influx.kill()
        broker.stop()
        log.close()


if __name__ == "__main__":
    main()
