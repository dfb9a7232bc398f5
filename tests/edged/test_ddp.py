"""Synchronous gradients between real processes: exactly those of one process with the same global batch."""

import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest
import torch
from msgspec.structs import replace

from edged import optimizers
from edged.bench import Bench, Memory
from edged.dealing import step_sizes, with_plan
from edged.groups import Peer, Stepwise
from edged.messages import Piece, Train
from edged.pace import Pace
from edged.regimes import Lesson, TrainingError, ddp
from edged.schedule import indices
from edged.tasks import Task
from edged.work import Meet, Word
from tests.edged.rank import Answer, Toy, gradient
from tests.edged.ranks import Ranks

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def ranks() -> Iterator[Ranks]:
    made = Ranks(4)
    yield made
    made.end()


@pytest.fixture(autouse=True)
def _whole(ranks: Ranks) -> None:
    """A test that ends a process must not take the next one along."""
    for index, process in enumerate(ranks.processes):
        if not process.alive:
            ranks.replace(index)


def alone(
    order: Train, dtype: str = "float64", hidden: int = 8
) -> tuple[list[list[float]], list[float], torch.nn.Module]:
    """Every step's gradient, the mean losses and the net of one process that trains the whole batches."""
    assert order.rendezvous is not None
    task = Toy(dtype, hidden)
    data, model = task.data(), task.model(None, 1)
    optimizer = optimizers.make(order, model)
    chosen = indices(order.pieces, order.seed, order.pool_samples)
    gradients, losses, first = [], [], 0
    for size in step_sizes(len(chosen), order.rendezvous.steps):
        optimizer.zero_grad()
        loss, _ = task.loss_sum(model, task.batch(data, chosen[first : first + size]))
        (loss / size).backward()  # type: ignore[no-untyped-call]
        gradients.append(gradient(model))
        optimizer.step()
        losses.append(float(loss.detach()) / size)
        first += size
    return gradients, losses, model


def off(found: list[float], wanted: list[float]) -> float:
    """Relative distance of two rows of numbers."""
    a, b = np.array(found), np.array(wanted)
    return float(np.linalg.norm(a - b) / np.linalg.norm(b))


def weights(model: torch.nn.Module) -> list[float]:
    return [float(v) for value in model.state_dict().values() for v in value.reshape(-1).double()]


def good(answers: list[Answer]) -> list[Answer]:
    assert not [answer.error for answer in answers if answer.error]
    return answers


@pytest.mark.parametrize(
    ("dtype", "limit", "shares"),
    [
        ("float64", 1e-12, [2 * 3, 5 * 3, 9 * 3, 16 * 3]),
        ("float64", 1e-12, [5, 50, 17, 33]),
        ("float64", 1e-12, [5, 5]),
        ("float64", 1e-12, [40]),
        ("float32", 1e-5, [5, 50, 17, 33]),
    ],
)
def test_each_steps_gradient_is_that_of_one_process(
    ranks: Ranks, dtype: str, limit: float, shares: list[int]
) -> None:
    steps = 3 if sum(shares) == 96 else 5
    orders = ranks.orders(shares, steps)
    answers = good(ranks.train(orders, dtype=dtype))
    wanted, losses, _ = alone(orders[0], dtype)
    for answer in answers:
        assert len(answer.gradients) == steps
        assert max(off(found, want) for found, want in zip(answer.gradients, wanted, strict=True)) <= limit
        assert answer.curve == pytest.approx(losses, rel=10 * limit)
    assert [answer.samples for answer in answers] == shares
    assert sum(answer.loss_sum for answer in answers) == pytest.approx(
        sum(a * b for a, b in zip(losses, step_sizes(sum(shares), steps), strict=True)), rel=10 * limit
    )
    assert len({answer.checksum for answer in answers}) == 1
    assert {answer.deviation for answer in answers} == {0.0}


@pytest.mark.parametrize(
    ("shares", "micro"),
    [([33, 5, 50, 17], (4, 1, None, 3)), ([30, 70], (1, 16)), ([60], (7,))],
)
def test_micro_batches_change_no_gradient(
    ranks: Ranks, shares: list[int], micro: tuple[int | None, ...]
) -> None:
    """Batches of up to 14 samples in parts of 1 to 16, another size on each rank; exchanged once a step."""
    orders = ranks.orders(shares, 5)
    answers = good(ranks.train(orders, {i: {"micro_batch": size} for i, size in enumerate(micro)}))
    wanted, losses, model = alone(orders[0])
    for answer in answers:
        assert max(off(found, want) for found, want in zip(answer.gradients, wanted, strict=True)) <= 1e-12
        assert answer.curve == pytest.approx(losses, rel=1e-11)
        assert off(answer.weights, weights(model)) <= 1e-12
    assert [answer.samples for answer in answers] == shares


@pytest.mark.parametrize("micro", [None, 10, 9])
def test_batches_of_batchnorm_are_not_cut_into_parts(ranks: Ranks, micro: int | None) -> None:
    """Ten samples a step: as a whole they could be trained."""
    (order,) = ranks.orders([50], 5)
    task, model = Toy("float64"), torch.nn.Sequential(torch.nn.Linear(6, 3), torch.nn.BatchNorm1d(3)).double()
    told: list[Word] = []

    class MeetingError(Exception):
        """The order was good to meet others for."""

    def meet(order: str) -> Meet:
        raise MeetingError

    bench = Bench(
        board="a",
        order=order.order,
        pace=Pace(None),
        memory=Memory(),
        tell=told.append,
        cancelled=lambda order: False,
        meet=meet,
        micro_batch=micro,
    )
    lesson = Lesson(order, cast("Task", task), None, task.data(), model)
    if micro == 9:
        text = "a step may give it 10 samples, 9 at once fit into its memory, and the model has BatchNorm"
        with pytest.raises(TrainingError, match=text):
            ddp.train(lesson, bench)
        assert told == []
    else:
        with pytest.raises(MeetingError):
            ddp.train(lesson, bench)


def test_random_batches_with_one_and_no_sample_with_the_hook_and_without(ranks: Ranks) -> None:
    good(ranks.train(ranks.orders([4, 4, 4, 4], 2)))
    generator = random.Random(3)
    drawn = [tuple(generator.randint(0, 20) for _ in range(4)) for _ in range(6)]
    task = Toy("float64")
    for sizes in [(0, 1, 1, 30), (1, 0, 0, 0), (1, 1, 1, 1), *drawn]:
        model = task.model(None, 1)
        loss, _ = task.loss_sum(model, task.batch(task.data(), np.arange(sum(sizes))))
        (loss / sum(sizes)).backward()  # type: ignore[no-untyped-call]
        wanted = gradient(model)
        for hook in (True, False):
            for answer in good(ranks.step(sizes, hook=hook)):
                assert off(answer.gradients[0], wanted) <= 1e-12, (sizes, hook)


def test_a_model_of_several_buckets(ranks: Ranks) -> None:
    orders = ranks.orders([3, 7], 1)
    wanted, _, _ = alone(orders[0], hidden=400)
    for answer in good(ranks.train(orders, hidden=400)):
        assert max(off(found, want) for found, want in zip(answer.gradients, wanted, strict=True)) <= 1e-12


RULES = {
    "round boundaries only": None,
    "ema-batch": Stepwise("ema-batch", 5, 0.3),
    "omnilearn": Stepwise("omnilearn", 5, 0.5, 0.05),
}


@pytest.mark.parametrize("optimizer", ["sgd", "adam"])
def test_hundred_steps_end_where_one_process_ends_whatever_the_shares_and_the_policy(
    ranks: Ranks, optimizer: str
) -> None:
    more: dict[str, Any] = {"optimizer": optimizer, "momentum": 0.9 if optimizer == "sgd" else 0.0}
    curves = []
    once = alone(ranks.orders([800, 800, 800, 800], 100, learning_rate=0.01, **more)[0])
    for shares in ([800, 800, 800, 800], [100, 2000, 800, 300], [1300, 100, 1700, 100]):
        for rule in RULES.values() if shares[0] == 800 else [None]:
            orders = ranks.orders(shares, 100, rule, learning_rate=0.01, **more)
            # Paces that no clock of this machine can hide: the rules have something to change.
            asks = {i: {"seconds_per_sample": 0.0005 * (i + 1)} for i in range(4)} if rule else {}
            answers = good(ranks.train(orders, asks))
            _, losses, model = once  # the same for all: samples of a step do not depend on shares
            assert max(off(answer.weights, weights(model)) for answer in answers) <= 1e-9
            assert answers[0].curve == pytest.approx(losses, rel=1e-9)
            assert sum(answer.samples for answer in answers) == 3200
            if rule is not None:
                assert answers[0].samples > 1.5 * answers[3].samples
            curves.append(answers[0].curve[:50])
    assert all(curve == pytest.approx(curves[0], rel=1e-9) for curve in curves)


def test_the_group_is_kept_over_rounds_and_formed_anew_for_other_ranks(ranks: Ranks) -> None:
    good(ranks.train(ranks.orders([10, 10, 10], 2)))
    group = ranks.group
    good(ranks.train(ranks.orders([8, 12, 10], 2, round=2)))
    assert ranks.group == group
    assert {readiness.holds for readiness in ranks.readiness} == {group}
    good(ranks.train(ranks.orders([10, 10], 2, round=3)))
    assert ranks.group != group
    assert {readiness.holds for readiness in ranks.readiness} == {""}


def test_the_others_of_a_rank_that_dies_know_at_once_and_form_anew_with_a_new_process(ranks: Ranks) -> None:
    orders = ranks.orders([50, 50, 50], 10)
    first, second, dead = ranks.train(orders, {2: {"die_after": 3}})
    assert dead.error == "died"
    for survivor in (first, second):
        assert survivor.error.startswith("another rank was lost")
        assert survivor.blames == ()
    ranks.replace(2)
    wanted, _, _ = alone(orders[0])
    for answer in good(ranks.train(orders)):
        assert {readiness.holds for readiness in ranks.readiness} == {""}
        assert off(answer.gradients[-1], wanted[-1]) <= 1e-12


def test_a_rank_that_hangs_is_given_up_after_the_time_out(ranks: Ranks) -> None:
    orders = ranks.orders([20, 20], 10, seconds=2.0)
    (waited,) = ranks.train(orders, {1: {"hang_after": 3}}, unheard=(1,))
    assert waited.error.startswith("another rank was lost")
    assert waited.blames == ()
    ranks.replace(1)


def test_a_port_that_cannot_be_reached_is_told_with_the_pair(ranks: Ranks) -> None:
    orders, closed = ranks.orders([10, 10, 10], 2), Peer("127.0.0.1", 1)
    first, second = ranks.train(orders, wrong={2: closed}, unheard=(2,))
    for answer, board in ((first, "a"), (second, "b")):
        assert answer.error.startswith(f"{board} cannot reach c at 127.0.0.1:1 (Connection refused)")
        assert answer.blames == ("c",)
    ranks.replace(2)


@pytest.mark.parametrize(
    ("changes", "text"),
    [({"momentum": 0.3}, "its plan hash is"), ({"samples": 11}, "the order says 11")],
)
def test_an_order_that_does_not_fit_is_refused_before_any_group(
    ranks: Ranks, changes: dict[str, Any], text: str
) -> None:
    orders = [replace(order, **changes) for order in ranks.orders([10, 10], 2)]
    for answer in ranks.train(orders):
        assert text in answer.error
        assert answer.blames is None


@pytest.mark.parametrize("state", ["average", "keep"])
def test_the_optimizers_state_goes_on_in_the_next_round_on_every_rank(
    ranks: Ranks, tmp_path: Path, state: str
) -> None:
    """Two rounds are one training of twice the steps, though a rank knows nothing of the first."""
    whole = ranks.orders([60, 60], 12, momentum=0.9)
    _, _, model = alone(whole[0])
    asks: dict[int, dict[str, Any]] = {i: {"kept": str(tmp_path / str(i))} for i in range(3)}
    for i in range(3):
        (tmp_path / str(i)).mkdir()
    more: dict[str, Any] = {"momentum": 0.9, "optimizer_state": state}
    good(ranks.train(ranks.orders([30, 30], 6, **more), asks))
    if state == "keep":
        # Another machine's folder: what the silo kept comes from the other rank.
        asks[0] = asks[2]
    second = [with_places(order, Piece(0, 60, 120)) for order in ranks.orders([20, 40], 6, round=2, **more)]
    for answer in good(ranks.train(second, asks, carried=True)):
        assert off(answer.weights, weights(model)) <= 1e-9
    assert not list(tmp_path.rglob("*.taken"))


def with_places(order: Train, piece: Piece) -> Train:
    assert order.rendezvous is not None
    return with_plan(replace(order, pieces=(piece,)), order.rendezvous)
