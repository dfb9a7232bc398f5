"""An x86, an arm64 and a riscv64 board train one model: real daemons, Debian's torch, a real mosquitto.

Emulation shows that it runs and that the figures agree; its seconds are nobody's, its joules are emulated.
"""

import os
import subprocess
import sys
from collections.abc import Iterator

import pytest

from coordinator.broker import find_mosquitto
from edged.controls import GetBoards
from tests.boards.conftest import MakeEmulated
from tests.boards.tree import ISAS, ROOT, TORCH_PACKAGES
from tests.scenarios.lab import ENVIRONMENT, Lab, check_account

pytestmark = [pytest.mark.boards, pytest.mark.slow, pytest.mark.server]

KINDS = {"x86": "n100", "arm64": "rpi4", "riscv64": "visionfive2"}
"""Each is paced and metered like this board."""
SCALE = "0.02"
BUDGET, BATCH = 240, 12
PATIENCE_SECONDS = 1200.0
"""Where torch is imported by three boards on two cores, one of them by an emulator after the other."""
LONG = {"deadline_floor_seconds": 600.0, "min_boards": 3}
LOG = ROOT / "out" / "three-instruction-sets.txt"


@pytest.fixture(scope="module")
def lab(tmp_path_factory: pytest.TempPathFactory, emulated: MakeEmulated) -> Iterator[Lab]:
    """The three boards, up and with torch seen."""
    if find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    boards = {isa.name: emulated(isa.name, TORCH_PACKAGES) for isa in ISAS}
    made = Lab(tmp_path_factory.mktemp("lab"))
    made.start_coordinator()
    for name, kind in KINDS.items():
        options = ("--emulate", kind, "--speed-scale", SCALE)
        if name in boards:
            environment = {**ENVIRONMENT, **boards[name].environment}
            made.start_board(name, *options, python=boards[name].python, environment=environment)
        else:
            made.start_board(name, *options)
    yield made
    made.close()


def versions(lab: Lab) -> dict[str, tuple[str, str]]:
    """Instruction set and torch of each board that is there and knows its torch."""
    rows = lab.ask(GetBoards()).data["boards"]
    return {
        row["board"]: (row["arch"], row["versions"]["torch"]) for row in rows if "torch" in row["versions"]
    }


def tell(lab: Lab, run: str, title: str) -> None:
    """Keep what the operator sees of the run, for docs/boards.md."""
    command = [
        sys.executable,
        "-m",
        "coordinator",
        "rounds",
        run,
        "--config",
        str(lab.folder / "coordinator.toml"),
    ]
    done = subprocess.run(
        command, capture_output=True, text=True, check=False, env={**os.environ, "COLUMNS": "110"}
    )
    LOG.parent.mkdir(exist_ok=True)
    with LOG.open("a") as log:
        log.write(f"{title}\n{versions(lab)}\n{done.stdout}{done.stderr}\n")


def accuracy(lab: Lab, run: str, number: int) -> float:
    """Held-out, after that round; by the coordinator's own torch."""

    def found() -> list[float]:
        return [row["accuracy"] for row in lab.rows("evaluation", run) if row["round"] == number]

    return float(lab.wait(found, f"the figures of round {number}")[0])


def test_three_instruction_sets_train_one_model_together(lab: Lab) -> None:
    lab.wait(lambda: len(versions(lab)) == 3, "torch", PATIENCE_SECONDS)
    assert {board: arch for board, (arch, _) in versions(lab).items()} == {
        "x86": "x86_64",
        "arm64": "aarch64",
        "riscv64": "riscv64",
    }
    run = lab.begin(budget=BUDGET, batch=BATCH, rounds=4, policy="adaptive", learning_rate=0.05, **LONG)
    row = lab.finish(run, PATIENCE_SECONDS)
    tell(lab, run, "pma")
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 4)
    boards = lab.rows("board_round", run)
    for number in range(1, 5):
        assert {
            row["board"] for row in boards if row["round"] == number and row["status"] == "accepted"
        } == set(KINDS)
    assert {row["basis"] for row in boards} == {"emulated"}
    assert accuracy(lab, run, 4) > 0.25  # guessing gives 0.1


def test_gradients_are_summed_across_instruction_sets(lab: Lab) -> None:
    """One round over gloo, of three builds of torch; all ranks end with the same model."""
    lab.wait(lambda: len(versions(lab)) == 3, "torch", PATIENCE_SECONDS)
    settings = {"regime": "ddp", "policy": "equal", "budget": BUDGET, "batch": 3 * BATCH, "rounds": 1}
    run = lab.begin(learning_rate=0.05, **settings, **LONG)
    row = lab.finish(run, PATIENCE_SECONDS)
    tell(lab, run, "ddp")
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, 1)
    ranks = lab.rows("board_round", run)
    assert {rank["board"] for rank in ranks} == set(KINDS)
    assert len({rank["checksum"] for rank in ranks}) == 1
    assert all(rank["deviation"] == 0.0 for rank in ranks)
