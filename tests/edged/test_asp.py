"""Asynchronous updates, the board's half: its gradient is that of one process, applied it is the step."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

from coordinator.application import check_gradient, descend, mix
from edged import regimes, tasks, weights
from edged.bench import Bench, Memory
from edged.messages import Manifest, Piece, Train
from edged.optimizers import GRADIENT
from edged.pace import Pace
from edged.schedule import indices, subseed

pytestmark = pytest.mark.slow


def order(grain: str, *pieces: Piece, sequence: int = 1, samples: int | None = None) -> Train:
    return Train(
        f"r.1.pi4.{sequence}",
        "r",
        1,
        sequence,
        "c",
        1,
        "asp",
        "digits",
        "h",
        "digits",
        "f",
        pieces,
        samples or sum(piece.samples for piece in pieces),
        8,
        0.05,
        "r.0",
        Manifest(1, 1, "0" * 64),
        7,
        1437,
        grain=grain,
    )


class Lessons:
    """The digits and one model of theirs."""

    def __init__(self) -> None:
        import torch

        torch.set_num_threads(1)
        self.task = tasks.find("digits")
        self.options = tasks.options_of(self.task, {})
        self.data = self.task.load(Path(tasks.BUILTIN), self.options)
        self.model = self.task.model(self.options, subseed(7, "init"))

    def bench(self, given: Train, micro_batch: int | None = None) -> Bench:
        return Bench(
            board="pi4",
            order=given.order,
            pace=Pace(None),
            memory=Memory(),
            tell=lambda _: None,
            cancelled=lambda _: False,
            micro_batch=micro_batch,
        )

    def lesson(self, given: Train) -> regimes.Lesson:
        return regimes.Lesson(given, self.task, self.options, self.data, self.model)

    def train(self, given: Train) -> regimes.Outcome:
        return regimes.find("asp").train(self.lesson(given), self.bench(given))

    def fresh(self) -> Any:
        return self.task.model(self.options, subseed(7, "init"))


@pytest.fixture(scope="module")
def lessons() -> Lessons:
    return Lessons()


def test_the_gradient_of_an_order_is_that_of_one_process(lessons: Lessons) -> None:
    import torch

    pieces = (Piece(0, 1430, 1437), Piece(1, 0, 14))
    outcome = lessons.train(order("gradient", *pieces))
    assert (outcome.samples, outcome.steps) == (21, 1)
    model = lessons.fresh()
    batch = lessons.task.batch(lessons.data, indices(pieces, 7, lessons.data.samples))
    loss, _ = lessons.task.loss_sum(model, batch)
    torch.autograd.backward(loss / 21)
    found = {name.removeprefix(GRADIENT): value for name, value in outcome.tensors.items()}
    assert found.keys() == dict(model.state_dict()).keys()
    for name, parameter in model.named_parameters():
        torch.testing.assert_close(found[name], parameter.grad, rtol=1e-6, atol=1e-8)
    assert outcome.loss_sum == pytest.approx(float(loss.detach()))


def test_parts_that_fit_into_memory_add_up_to_the_same_gradient(lessons: Lessons) -> None:
    import torch

    given = order("gradient", Piece(0, 0, 23))
    whole = lessons.train(given)
    kept = {name: value.clone() for name, value in whole.tensors.items()}
    cut = regimes.find("asp").train(lessons.lesson(given), lessons.bench(given, micro_batch=5))
    assert (cut.samples, cut.steps, cut.sums) == (whole.samples, 1, whole.sums)
    assert cut.loss_sum == pytest.approx(whole.loss_sum)
    for name, value in cut.tensors.items():
        torch.testing.assert_close(value, kept[name], rtol=1e-4, atol=1e-6)
    lessons.model = torch.nn.Sequential(lessons.fresh(), torch.nn.BatchNorm1d(10))
    with pytest.raises(regimes.TrainingError, match="5 samples at once fit into its memory"):
        regimes.find("asp").train(lessons.lesson(given), lessons.bench(given, micro_batch=5))
    lessons.model = lessons.fresh()


def test_applying_a_gradient_is_the_optimizers_step(lessons: Lessons, tmp_path: Path) -> None:
    import torch

    model = lessons.fresh()
    base, update, target = (tmp_path / f"{name}.safetensors" for name in ("base", "update", "target"))
    weights.save(base, model.state_dict())
    weights.save(update, lessons.train(order("gradient", Piece(0, 0, 16))).tensors)
    check_gradient(update, base, 0.05)
    velocity = tmp_path / "velocity.safetensors"
    manifest = descend(base, update, target, 1024, 0.05, weight_decay=0.01)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.05, momentum=0.9, weight_decay=0.01)
    loss, _ = lessons.task.loss_sum(
        model, lessons.task.batch(lessons.data, indices((Piece(0, 0, 16),), 7, lessons.data.samples))
    )
    torch.autograd.backward(loss / 16)
    optimizer.step()
    for name, value in weights.load_torch(target).items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-5, atol=1e-7)
    assert manifest.length_bytes == target.stat().st_size
    # The same gradient twice more, with the coordinator's momentum.
    second = tmp_path / "second.safetensors"
    descend(base, update, target, 1024, 0.05, weight_decay=0.01, momentum=0.9, velocity=(None, velocity))
    later = tmp_path / "later.safetensors"
    descend(target, update, second, 1024, 0.05, momentum=0.9, weight_decay=0.01, velocity=(velocity, later))
    optimizer.step()
    for name, value in weights.load_torch(second).items():
        torch.testing.assert_close(value, model.state_dict()[name], rtol=1e-4, atol=1e-6)


def test_with_grain_model_an_order_is_local_training_as_in_pma(lessons: Lessons) -> None:
    import torch

    given = order("model", Piece(0, 0, 40))
    lessons.model = lessons.fresh()
    outcome = lessons.train(given)
    assert (outcome.samples, outcome.steps) == (40, 5)
    lessons.model = lessons.fresh()
    plain = regimes.find("pma").train(lessons.lesson(given), lessons.bench(given))
    assert all(torch.equal(outcome.tensors[name], value) for name, value in plain.tensors.items())


def test_a_model_is_mixed_in_by_the_rate(lessons: Lessons, tmp_path: Path) -> None:
    import torch

    base, update, target = (tmp_path / f"{name}.safetensors" for name in ("base", "update", "target"))
    old, new = lessons.fresh().state_dict(), lessons.task.model(lessons.options, 99).state_dict()
    weights.save(base, old)
    weights.save(update, new)
    mix(base, update, target, 1024, 0.3)
    for name, value in weights.load_torch(target).items():
        torch.testing.assert_close(value, 0.7 * old[name] + 0.3 * new[name], rtol=1e-5, atol=1e-7)
    mix(base, base, target, 1024, 0.6)
    for name, value in weights.load_torch(target).items():
        torch.testing.assert_close(value, old[name], rtol=1e-6, atol=0.0)


def test_an_unknown_grain_is_refused_by_name(lessons: Lessons) -> None:
    with pytest.raises(regimes.TrainingError, match="grain 'epoch' is unknown here"):
        lessons.train(order("epoch", Piece(0, 0, 4)))


def test_the_example_of_add_a_regime_trains(lessons: Lessons, tmp_path: Path) -> None:
    import torch

    page = (Path(__file__).parents[2] / "docs/add-a-regime.md").read_text(encoding="utf-8")
    file = tmp_path / "one_step.py"
    file.write_text(page.split("```python\n")[1].split("```")[0], encoding="utf-8")
    spec = importlib.util.spec_from_file_location("one_step", file)
    assert spec is not None
    assert spec.loader is not None
    regime = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(regime)
    lessons.model = lessons.fresh()
    given = order("model", Piece(0, 0, 32))
    outcome = regime.train(lessons.lesson(given), lessons.bench(given))
    assert (outcome.samples, outcome.steps, regime.NAME) == (32, 1, "one-step")
    before = lessons.fresh().state_dict()
    assert any(not torch.equal(outcome.tensors[name], value) for name, value in before.items())
