"""A balanced loop of one process: what it hooks into, what it counts, what it is told of joules."""

import gc
import warnings
from collections.abc import Iterator

import pytest
import torch
from torch.utils.data import DataLoader, TensorDataset

from edged.balance import BalancedSampler, Balancer, balance
from edged.balance.entry import _warn_of_batch_norm
from edged.balance.joules import Joules
from edged.balance.ranks import Ranks
from edged.balance.watch import HostWatch
from tests.probes.bench import VDD_IN, Bench, steady
from tests.probes.scripted import Scripted

DATA = TensorDataset(torch.arange(80, dtype=torch.float64).reshape(80, 1))


class Desk:
    """A user's loop; a sample takes 0.5 s, an optimizer step 100 s."""

    def __init__(self) -> None:
        torch.manual_seed(0)
        self.model = torch.nn.Sequential(torch.nn.Linear(1, 2), torch.nn.Linear(2, 1)).double()
        self.model[0].weight.requires_grad_(False)
        self.optimizer = torch.optim.SGD(self.model.parameters(), lr=0.0)
        self.sampler = BalancedSampler(DATA, 8)
        self.loader = DataLoader(DATA, batch_sampler=self.sampler)
        self.now = 0.0

    def balance(self) -> Balancer:
        return balance(self.model, self.optimizer, watch=HostWatch(lambda: self.now))

    def steps(self, count: int) -> Iterator[int]:
        for step, (x,) in enumerate(self.loader):
            if step == count:
                return
            self.now += 0.5 * len(x)
            torch.autograd.backward(self.model(x).mean())
            self.now += 100.0
            self.optimizer.step()
            self.model.eval()
            self.model(x)  # a look at how it does is no batch
            self.model.train()
            yield step


def test_alone_it_measures_compute_and_leaves_gradients_as_they_are() -> None:
    desk = Desk()
    with desk.balance() as balancer:
        with pytest.raises(RuntimeError, match="no batch was trained"):
            balancer.report()
        for _ in desk.steps(10):
            assert balancer.weight == 1.0
        report = balancer.report()
    assert (report.batch, report.batches, report.changes) == (8, 10, 0)
    assert [(one.samples, one.seconds_per_sample) for one in report.ranks] == [(8, 0.5)]
    assert str(report).splitlines() == [
        "8 samples a step, sizes changed 0 times in 10 steps",
        "rank  samples  seconds a sample",
        "   0        8               0.5",
    ]


def test_the_first_steps_are_not_measured() -> None:
    desk = Desk()
    with desk.balance() as balancer:
        for step in desk.steps(7):
            assert (balancer.report().ranks[0].seconds_per_sample is None) == (step < 6)


def test_the_end_takes_every_hook_off_so_that_another_may_begin() -> None:
    desk = Desk()
    for _ in range(2):
        with desk.balance():
            for _ in desk.steps(2):
                assert desk.model._forward_pre_hooks
    assert not desk.model._forward_pre_hooks
    assert not desk.optimizer._optimizer_step_post_hooks
    assert not any(one._backward_hooks for one in desk.model.parameters())


def test_a_second_balance_is_refused_and_hooks_into_nothing() -> None:
    desk = Desk()
    with balance(desk.model, desk.optimizer, desk.sampler):
        with pytest.raises(RuntimeError, match="balanced already"):
            balance(desk.model, desk.optimizer, desk.sampler)
        assert len(desk.model._forward_pre_hooks) == 1


def test_a_second_balance_of_a_model_or_an_optimizer_is_refused_at_once() -> None:
    desk, other = Desk(), Desk()
    with desk.balance():
        with pytest.raises(RuntimeError, match=r"this model is balanced already: close\(\) the other"):
            desk.balance()
        both = torch.optim.SGD([*desk.model.parameters(), *other.model.parameters()], lr=0.0)
        desk.optimizer.add_param_group({"params": other.model[0].bias})
        with pytest.raises(RuntimeError, match=r"this optimizer is balanced already: close\(\) the other"):
            balance(other.model, desk.optimizer)
        with pytest.raises(RuntimeError, match="this model is balanced already"):
            balance(desk.model, both)
        assert len(desk.model._forward_pre_hooks) == len(desk.optimizer._optimizer_step_post_hooks) == 1
        assert list(desk.steps(2)) == [0, 1]
    with desk.balance():
        assert list(desk.steps(2)) == [0, 1]


def test_a_sampler_that_another_model_has_is_not_taken_for_none() -> None:
    desk, other = Desk(), Desk()
    other.loader, other.sampler = desk.loader, desk.sampler
    gc.collect()  # samplers of other tests
    refused = pytest.raises(RuntimeError, match=r"balanced already: close\(\) the other, or make one")
    with balance(desk.model, desk.optimizer, desk.sampler), other.balance(), refused:
        next(other.steps(1))


def test_two_samplers_at_work_have_to_be_told_apart() -> None:
    desk, other = Desk(), BalancedSampler(DATA, 4)
    next(iter(other))
    with desk.balance(), pytest.raises(RuntimeError, match="there are 2 BalancedSamplers: say which"):
        next(desk.steps(1))


def test_training_outside_an_epoch_is_left_alone() -> None:
    desk = Desk()
    with desk.balance() as balancer:
        for _ in range(2):
            for _ in range(9):
                torch.autograd.backward(desk.model(DATA[0][0]).mean())
                desk.optimizer.step()
                assert balancer.weight == 1.0
            assert list(desk.steps(20)) == list(range(10))
        assert balancer.report().batches == 20


def test_a_loop_that_splits_batches_is_warned_once() -> None:
    desk = Desk()
    with desk.balance(), warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        for (x,) in desk.loader:
            torch.autograd.backward(desk.model(input=x[:3]).mean())
    assert [str(one.message)[:57] for one in caught] == [
        "the model is given 3 rows of a batch of 8 samples: gradie"
    ]


def test_batch_norm_alone_is_as_ever() -> None:
    model = torch.nn.BatchNorm1d(1)
    sampler = BalancedSampler(DATA, 8)
    balance(model, torch.optim.SGD(model.parameters(), lr=0.1), sampler).close()  # warnings are errors here


ONE = "with b_min = 1 a rank's batch may become one sample, on which it fails: set b_min=2"
MANY = "it fails on a batch of one sample: set BalancedSampler's b_min=2"


@pytest.mark.parametrize(
    ("named", "b_mins", "words"),
    [(True, [1, 2], ONE), (True, [2, 1], ""), (False, [1, 2], MANY), (False, [1], ONE), (False, [2], "")],
)
def test_batch_norm_among_ranks_is_warned_of_with_what_it_fails_on(
    named: bool, b_mins: list[int], words: str
) -> None:
    gc.collect()  # samplers of other tests
    samplers = [BalancedSampler(DATA, 8, b_min=one) for one in b_mins]
    model = torch.nn.Sequential(torch.nn.BatchNorm1d(1))
    with pytest.warns(UserWarning, match="^0 is BatchNorm, which normalises") as caught:
        _warn_of_batch_norm(model, Ranks(0, 2), samplers[0] if named else None)
    (text,) = [str(one.message) for one in caught]
    assert text.endswith(words or "SyncBatchNorm it is)")


def test_joules_are_the_meters_with_its_basis() -> None:
    bench = Bench(Scripted("ina", (VDD_IN, steady(2.0))))
    joules = Joules(bench.meter)
    bench.run(10.0)
    found = joules.read()
    assert found.joules == pytest.approx(20.0)
    assert str(found) == "20.0 (measured, module)"
    joules.close()
    assert bench.meter.live().joules is not None  # a meter of the user's goes on


def test_unknown_joules_say_why(monkeypatch: pytest.MonkeyPatch) -> None:
    blind = Joules(Bench().meter).read()
    assert blind.joules is None
    assert str(blind) == f"unknown: {blind.reason}" != "unknown: "
    monkeypatch.setenv("LOCAL_RANK", "1")
    assert "machine's first rank" in Joules().read().reason
