"""Boards of other instruction sets without torch: imports, protocol, sensors, and the link to a real broker.

The project's own tests are run there, by that instruction set's Python and Debian's builds of the libraries.
"""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from coordinator.broker import Broker, find_mosquitto, free_port
from edged.link import LinkConfig
from edged.paho_link import PahoLink
from tests.boards.conftest import MakeEmulated
from tests.boards.tree import ISAS, LIGHT_PACKAGES, Emulated
from tests.edged.stand_in import StandIn

pytestmark = [pytest.mark.boards, pytest.mark.server]

PYTEST = "-m pytest -q --import-mode=importlib -p no:cacheprovider".split()
PATIENCE_SECONDS = 120.0


@pytest.fixture(scope="module", params=[isa.name for isa in ISAS])
def board(request: pytest.FixtureRequest, emulated: MakeEmulated) -> Emulated:
    return emulated(request.param, LIGHT_PACKAGES)


@pytest.mark.parametrize(
    ("file", "choice", "least"),
    [
        ("tests/test_layout.py", "every_module_imports", 1),
        ("tests/edged/test_messages.py", "version_one or has_every_message", 36),
        ("tests/probes/test_fixtures.py", "recorded_machine", 50),
    ],
)
def test_what_holds_here_holds_there(board: Emulated, file: str, choice: str, least: int) -> None:
    """At least so many of the tests are run, and none is skipped or fails."""
    done = board.run(*PYTEST, file, "-k", choice, cwd=board.sources)
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    words = done.stdout.splitlines()[-1].split()
    assert (int(words[0]), words[1].rstrip(",")) >= (least, "passed"), done.stdout
    assert not {"skipped", "failed"} & {word.rstrip(",") for word in words}


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[Broker]:
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    (tmp_path / "broker").mkdir()
    made = Broker("mosquitto", tmp_path / "broker", free_port())
    made.start()
    yield made
    made.stop()


def test_the_daemon_links_and_tells_what_it_is(board: Emulated, broker: Broker, tmp_path: Path) -> None:
    """Its children start as well: one of them lists the pools, and finds that there is no torch."""
    link = PahoLink(LinkConfig("127.0.0.1", broker.port, "edged-main-coordinator"))
    coordinator = StandIn(link)
    words = ["--board", board.isa.name, "--broker", f"127.0.0.1:{broker.port}", "--pool", "digits=builtin"]
    log = tmp_path / "log"
    with log.open("wb") as out:
        daemon = subprocess.Popen(
            [board.python, "-m", "edged", "run", *words, "--runtime", str(tmp_path / "runtime")],
            stderr=out,
            env={**os.environ, **board.environment},
        )
    try:
        coordinator.until(
            lambda: coordinator.births and coordinator.births[-1].pools,
            "a birth with pools",
            PATIENCE_SECONDS,
        )
        birth = coordinator.births[-1]
        assert (birth.board, birth.arch, birth.link) == (board.isa.name, board.isa.machine, "up")
        assert birth.pools["digits"].samples == 1437
        assert "digits" in birth.tasks
        daemon.terminate()
        assert daemon.wait(PATIENCE_SECONDS) == 0
        coordinator.until(lambda: coordinator.births[-1].link == "closed", "the farewell", PATIENCE_SECONDS)
    finally:
        if daemon.poll() is None:
            daemon.kill()
            daemon.wait()
        link.close()
    assert "Traceback" not in log.read_text()
