"""An operator's desk: runs commands of `edged-coordinator` against a whole coordinator in memory.

Waiting for an answer lets virtual time pass in the hall, so that nothing runs beside the test.
"""

import json
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any

import msgspec
from typer.testing import CliRunner

from coordinator.cli import app
from coordinator.commands._surroundings import Outside
from coordinator.tools import Tools
from edged.link import Link, LinkConfig
from edged.memory_link import MemoryLink
from tests.coordinator.hall import Hall
from tests.coordinator.stand_ins import Crew, Examiner

TURNS = 40


class Turning(SimpleQueue[object]):
    """A link's events: an empty queue is a reason to let the hall turn."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def get(self, block: bool = True, timeout: float | None = None) -> object:
        for _ in range(TURNS):
            if not self.empty():
                return super().get_nowait()
            self._hall.turn()
        raise Empty


class Fielded(SimpleQueue[object]):
    """The events of a coordinator in the foreground: an empty queue lets time pass for the boards."""

    def __init__(self, hall: Hall) -> None:
        self._hall = hall

    def get(self, block: bool = True, timeout: float | None = None) -> object:
        if self.empty():
            self._hall.now += 0.05
            self._hall.broker.pump()
            for board in self._hall.boards:
                board.step()
        return super().get_nowait()


class Result(msgspec.Struct):
    """How a command ended, and what it said where."""

    status: int
    output: str
    complaint: str

    @property
    def json(self) -> Any:
        return json.loads(self.output)

    @property
    def documents(self) -> list[Any]:
        return [json.loads(line) for line in self.output.splitlines()]


class Desk:
    """`run` one command. The coordinator that it finds is the hall's, as long as that is not closed."""

    def __init__(self, hall: Hall, answer_seconds: float = 0.3) -> None:
        self.hall = hall
        tools = Tools(self._announced, lambda: hall.now, lambda: hall.now, Crew, Examiner)
        self.outside = Outside(self._link, answer_seconds, tools)
        self.config = hall.folder / "coordinator.toml"
        self.config.write_text(f'fleet = "main"\n[store]\nfolder = "{hall.folder / "store"}"\n')

    def run(self, *arguments: str | Path, text: str | None = None) -> Result:
        environment = {"EDGED_COORDINATOR_CONFIG": str(self.config), "COLUMNS": "200"}
        done = CliRunner().invoke(
            app, [str(argument) for argument in arguments], obj=self.outside, env=environment, input=text
        )
        if done.exception is not None and not isinstance(done.exception, SystemExit):
            raise done.exception
        return Result(done.exit_code, done.stdout, done.stderr)

    def _link(self, config: LinkConfig) -> Link:
        return MemoryLink(self.hall.broker, config, events=Turning(self.hall))

    def _announced(self, config: LinkConfig, announcement: Any) -> Link:
        return MemoryLink(self.hall.broker, config, announcement, events=Fielded(self.hall))
