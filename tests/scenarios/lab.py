"""A laboratory of real processes: a broker, a coordinator, boards; started, killed, asked, never patched."""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from coordinator.broker import Broker, BrokerKind, free_port
from coordinator.client import Client, client_id, client_name, mqtt_link
from coordinator.history import History
from edged.controls import Action, Reply, RunSettings, Start
from edged.link import LinkConfig
from edged.messages import Piece
from tests.scenarios.bridge import Bridge

PATIENCE_SECONDS = 120.0
ENVIRONMENT = {**os.environ, "OMP_NUM_THREADS": "1", "PYTHONDONTWRITEBYTECODE": ""}


class Lab:
    """Everything lies under one folder; `close` ends what was started, by its process group."""

    def __init__(
        self,
        folder: Path,
        kind: BrokerKind = "mosquitto",
        pools: dict[str, str] | None = None,
        bridge: Bridge | None = None,
    ) -> None:
        self.folder, self.bridge = folder, bridge
        self.pools = pools or {"digits": "builtin"}
        (folder / "broker").mkdir()
        gate = f"listener {free_port()} {bridge.network}.1\n" if bridge is not None else ""
        self.broker = Broker(kind, folder / "broker", free_port(), gate)
        self.broker.start()
        self.gate = gate.split()[1] if bridge is not None else str(self.broker.port)
        self.processes: dict[str, subprocess.Popen[bytes]] = {}
        self.store = folder / "store"

    def close(self) -> None:
        for process in self.processes.values():
            if process.poll() is None:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
        self.broker.stop()

    def start(
        self,
        name: str,
        *command: str,
        prefix: tuple[str, ...] = (),
        python: str = sys.executable,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        with (self.folder / f"{name}.log").open("ab") as log:
            self.processes[name] = subprocess.Popen(
                [*prefix, python, "-m", *command],
                stdout=log,
                stderr=log,
                stdin=subprocess.DEVNULL,
                env=environment,
                start_new_session=True,
            )

    def start_coordinator(self, tables: str = "") -> None:
        """`tables` are more of its settings."""
        config = self.folder / "coordinator.toml"
        pools = "".join(f'[data.{name}]\npath = "{path}"\n' for name, path in self.pools.items())
        config.write_text(
            f'fleet = "lab"\n[broker]\nhost = "127.0.0.1"\nport = {self.broker.port}\n'
            f'[store]\nfolder = "{self.store}"\nkeep_checkpoints = 0\n{pools}{tables}'
        )
        self.start("coordinator", "coordinator", "serve", "--config", str(config))

    def start_board(
        self,
        name: str,
        *options: str,
        process: str = "",
        pools: dict[str, str] | None = None,
        python: str = sys.executable,
        environment: Mapping[str, str] = ENVIRONMENT,
    ) -> None:
        """`process` names a second one of the same board; with a bridge it lives in the board's namespace.
        `python` may be another interpreter, with an environment of its own."""
        prefix = ("ip", "netns", "exec", self.bridge.space(name)) if self.bridge is not None else ()
        host = f"{self.bridge.network}.1" if self.bridge is not None else "127.0.0.1"
        base = {
            "board": name,
            "fleet": "lab",
            "broker": f"{host}:{self.gate}",
            "runtime": str(self.folder / f"runtime-{process or name}"),
            "threads": "1",
        }
        words = [f"--{option}={value}" for option, value in base.items()]
        words += [f"--pool={pool}={path}" for pool, path in (pools or self.pools).items()]
        command = ("edged", "run", *words, *options)
        self.start(process or name, *command, prefix=prefix, python=python, environment=environment)

    def kill(self, name: str) -> None:
        """Kill -9 of the process itself; its children have to notice."""
        self.processes[name].kill()
        self.processes[name].wait()

    def ask(self, action: Action, patience: float = PATIENCE_SECONDS) -> Reply:
        """The coordinator's answer, once it is there."""
        until = time.monotonic() + patience
        while True:
            try:
                name = client_name()
                config = LinkConfig("127.0.0.1", self.broker.port, client_id("lab", name))
                with Client(mqtt_link(config), config, "lab", name) as client:
                    return client.ask(action)
            except ConnectionError:
                if time.monotonic() > until:
                    raise
                time.sleep(0.3)

    def begin(self, **settings: Any) -> str:
        """Start a run; its name."""
        reply = self.ask(Start(RunSettings(**{"task": "digits", "pool": "digits", "seed": 7, **settings})))
        assert reply.ok, reply.text
        return str(reply.data["run"])

    def rows(self, table: str, run: str) -> list[dict[str, Any]]:
        history = History.open(self.store)
        try:
            return history.rows(table, run)
        finally:
            history.close()

    def ended(self, run: str) -> dict[str, Any] | None:
        history = History.open(self.store)
        try:
            return next((row for row in history.runs() if row["run"] == run and row["ended"]), None)
        finally:
            history.close()

    def wait(self, true: Callable[[], Any], what: str, patience: float = PATIENCE_SECONDS) -> Any:
        """What `true` answers as soon as it is something; the logs' ends where it takes too long."""
        until = time.monotonic() + patience
        while not (found := true()):
            assert time.monotonic() < until, f"waited {patience:g} s for {what}\n{self.logs()}"
            time.sleep(0.1)
        return found

    def finish(self, run: str, patience: float = PATIENCE_SECONDS) -> dict[str, Any]:
        """The ended run's row."""
        row: dict[str, Any] = self.wait(lambda: self.ended(run), f"the end of {run}", patience)
        return row

    def wait_round(self, run: str, number: int) -> None:
        self.wait(lambda: any(r["round"] >= number for r in self.rows("decision", run)), f"round {number}")

    def logs(self) -> str:
        files = sorted(self.folder.glob("*.log"))
        return "\n".join(f"== {f.name}\n" + "\n".join(f.read_text().splitlines()[-15:]) for f in files)


def accepted_places(lab: Lab, run: str) -> list[tuple[int, int]]:
    """(epoch, place) of every accepted sample, from the stored orders."""
    pieces: list[Piece] = []
    for row in lab.rows("board_round", run) + lab.rows("push", run):
        if row["status"] == "accepted":
            pieces += [Piece(*piece) for piece in row["pieces"]]
    return [(piece.epoch, place) for piece in pieces for place in range(piece.start, piece.stop)]


def check_account(lab: Lab, run: str, budget: int, rounds: int) -> None:
    """Accepted + outstanding = ordered in every round, R x N in all, and no place twice."""
    rows = lab.rows("round", run)
    for row in rows:
        assert row["accepted"] + row["outstanding"] == row["ordered"]
    assert sum(row["accepted"] for row in rows) == budget * rounds == rows[-1]["accepted_in_all"]
    places = accepted_places(lab, run)
    assert len(places) == len(set(places)) == budget * rounds


def check_decisions(lab: Lab, run: str) -> None:
    """What each decision wanted is inversely proportional to its costs, to a sample and above the floor."""
    for row in lab.rows("decision", run):
        decision = row["decision"]
        costs, wanted = decision["costs"], decision["wanted"]
        if not wanted or any(costs.get(board) is None for board in wanted):
            continue
        free = [board for board in wanted if wanted[board] > min(wanted.values())]
        whole = sum(wanted[board] for board in free)
        inverse = {board: 1 / costs[board] for board in free}
        for board in free:
            assert abs(wanted[board] - whole * inverse[board] / sum(inverse.values())) <= 1.0
