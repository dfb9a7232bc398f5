"""The official MNIST files, four unlike boards, ten rounds: over mosquitto and over amqtt."""

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator.broker import BrokerKind, find_mosquitto
from edged.tasks import mnist
from tests.scenarios.lab import Lab, accepted_places, check_account, check_decisions

MNIST = Path(__file__).resolve().parents[3] / "shared/data/mnist"
BOARDS = ("rpi4", "rpi5", "visionfive2", "n100")
BUDGET, ROUNDS = 2000, 10

pytestmark = [pytest.mark.server, pytest.mark.slow]


@pytest.fixture(params=["mosquitto", "amqtt"])
def lab(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Lab]:
    kind: BrokerKind = request.param
    if not MNIST.is_dir():
        pytest.skip("the official MNIST files do not lie beside the project (../shared/data/mnist)")
    if kind == "mosquitto" and find_mosquitto() is None:
        pytest.skip("mosquitto is not installed")
    made = Lab(tmp_path, kind, {"mnist": str(MNIST)})
    made.start_coordinator()
    for board in BOARDS:
        made.start_board(board, "--emulate", board, "--speed-scale", "0.002")
    yield made
    made.close()


def held_out(lab: Lab, run: str) -> dict[int, dict[str, Any]] | None:
    """Evaluations by round once the last one is there; they come after the run's end."""
    found = {row["round"]: row for row in lab.rows("evaluation", run)}
    return found if ROUNDS in found else None


def test_four_boards_learn_to_read_digits_and_every_sample_counts_once(lab: Lab) -> None:
    run = lab.begin(
        task="mnist", pool="mnist", budget=BUDGET, rounds=ROUNDS, min_boards=len(BOARDS), w_e=0.25, w_t=0.75
    )
    row = lab.finish(run, 400)
    assert row["complete"], row["reason"]
    check_account(lab, run, BUDGET, ROUNDS)
    size = mnist.inspect(MNIST).samples
    places = sorted(accepted_places(lab, run))
    epochs = BUDGET * ROUNDS // size
    assert epochs == 2
    assert places[: epochs * size] == [(epoch, place) for epoch in range(epochs) for place in range(size)]
    evaluated = lab.wait(lambda: held_out(lab, run), "the held-out figures of the last round")
    assert evaluated[0]["accuracy"] < 0.3
    assert evaluated[ROUNDS]["accuracy"] > 0.90
    check_decisions(lab, run)
    assert set(lab.rows("round", run)[-1]["compute_joules_by_basis"]) == {"emulated"}
