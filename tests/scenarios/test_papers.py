"""The papers' other tasks from the files that people have: prepared by command, trained by four boards."""

import statistics
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import find_mosquitto
from tests.scenarios.lab import Lab, check_account

DATA = Path(__file__).resolve().parents[3] / "shared/data"
BOARDS = ("rpi4", "rpi5", "visionfive2", "n100")

pytestmark = [pytest.mark.server, pytest.mark.slow]

MakeLab = Callable[..., Lab]


@pytest.fixture
def prepared_lab(tmp_path: Path) -> Iterator[MakeLab]:
    """A lab whose boards hold one pool, made by `edged data prepare` of the named official file."""
    made: list[Lab] = []

    def make(task: str, source: str, *settings: str) -> Lab:
        if not (DATA / source).is_file():
            pytest.skip(f"../shared/data/{source} does not lie beside the project")
        if find_mosquitto() is None:
            pytest.skip("mosquitto is not installed")
        pool = tmp_path / "pool"
        command = [
            sys.executable,
            "-m",
            "edged",
            "data",
            "prepare",
            task,
            str(DATA / source),
            "-o",
            str(pool),
        ]
        subprocess.run(
            [*command, *(f"--set={setting}" for setting in settings)], check=True, stdout=subprocess.PIPE
        )
        lab = Lab(tmp_path, "mosquitto", {task: str(pool)})
        made.append(lab)
        lab.start_coordinator()
        for board in BOARDS:
            lab.start_board(board, "--emulate", board, "--speed-scale", "0.001")
        return lab

    yield make
    for lab in made:
        lab.close()


def trained(lab: Lab, task: str, budget: int, rounds: int) -> list[dict[str, Any]]:
    """Held-out figures of the initial model and after each round."""
    # Small batches, because four boards make a quarter of the steps; the optimizer's memory spans rounds.
    learning = {"batch": 16, "optimizer_state": "keep", "w_e": 0.25, "w_t": 0.75}
    run = lab.begin(task=task, pool=task, budget=budget, rounds=rounds, min_boards=len(BOARDS), **learning)
    row = lab.finish(run, 900)
    assert row["complete"], row["reason"]
    check_account(lab, run, budget, rounds)

    def figures() -> list[dict[str, Any]] | None:
        found = {row["round"]: row for row in lab.rows("evaluation", run)}
        return [found[number] for number in sorted(found)] if rounds in found else None

    found: list[dict[str, Any]] = lab.wait(figures, "the held-out figures of the last round")
    return found


def test_sentences_are_told_to_praise_or_blame(prepared_lab: MakeLab) -> None:
    lab = prepared_lab("imdb", "imdb_ccby/sentence_polarity.zip", "length=48")
    before, *after = trained(lab, "imdb", 2843, 12)
    assert before["accuracy"] < 0.56
    # What a linear model on words reaches on this set.
    assert statistics.median(row["accuracy"] for row in after[-3:]) > 0.73


def test_the_temperature_six_hours_ahead(prepared_lab: MakeLab) -> None:
    lab = prepared_lab("era5", "era5/era5_berlin_2017.csv.gz")
    before, *after = trained(lab, "era5", 3478, 40)
    assert before["loss"] == pytest.approx(0.057, abs=0.002), "the model begins as persistence"
    # What least squares on the same windows reaches. The held-out loss goes up and down by a tenth from round
    # to round, and shares follow the boards' times: fewer rounds would ask the moment at which the run ended.
    assert statistics.median(row["loss"] for row in after[-15:]) < 0.045
