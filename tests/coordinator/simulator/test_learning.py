"""Real training under virtual time with asynchronous updates: a small part of `benchmarks.asynchronous`."""

from pathlib import Path

import pytest
from msgspec import structs

from benchmarks.asynchronous import NOISE, Gradients, Setup, interval, pair, run
from coordinator.simulator.asynchronous import play, settings, workers
from coordinator.simulator.profiles import PROFILES
from coordinator.simulator.training import Lesson, RealTraining
from edged import tasks
from edged.controls import AsynchronousSettings

SMALL = Setup("digits", 3_840, 0.02, 3, {"width": 8})


def test_equalised_work_learns_as_well_as_uniform_on_as_many_samples_and_is_less_stale() -> None:
    pairs = [pair(SMALL, "hl8", seed) for seed in range(1, 1 + SMALL.seeds)]
    for found in pairs:
        assert min(found.uniform, found.equalised) > 0.6
        assert found.equalised_staleness < 0.7 * found.uniform_staleness
    # Few samples tell little: the bound of one point is the benchmark's, over more seeds and samples.
    assert interval(pairs).mean > -0.05


def test_the_same_seed_gives_the_same_model() -> None:
    setup = structs.replace(SMALL, samples=640)
    assert run(setup, "hl4", "dynamic", 1) == run(setup, "hl4", "dynamic", 1)
    assert run(setup, "hl4", "dynamic", 1) != run(setup, "hl4", "dynamic", 2)


@pytest.mark.slow
def test_the_training_child_and_the_coordinators_files_come_to_the_same_losses(tmp_path: Path) -> None:
    lesson = Lesson("digits", tasks.BUILTIN, SMALL.options, (str(tasks.FOLDER),))
    boards = structs.replace(workers("hl4", PROFILES["resnet18"], NOISE), pool_samples=lesson.samples)
    plan = settings(
        "dynamic",
        boards,
        1,
        3,
        AsynchronousSettings(),
        task="digits",
        budget=320,
        rounds=2,
        learning_rate=0.02,
        options=SMALL.options,
    )

    def losses(training: RealTraining | Gradients) -> list[float]:
        return [row["loss"] for row in play(boards, plan, training)[0].rows["push"]]

    with RealTraining(lesson, plan.seed, tmp_path) as training:
        real = losses(training)
        assert len(list(tmp_path.glob("*.safetensors"))) <= 3  # old models are not kept
    assert losses(Gradients(SMALL, plan.seed)) == pytest.approx(real, rel=1e-3)
