"""A sampler of one process: what a user without torchrun has, and what is common to all ranks."""

import json
from itertools import chain
from threading import Thread
from typing import Any, cast

import msgspec
import pytest
import torch
from msgspec.structs import replace
from torch.utils.data import DataLoader, Dataset, TensorDataset

from edged.balance import BalancedSampler, balance
from edged.balance.balancer import _check
from edged.balance.ranks import Ranks, T
from edged.balance.report import Said

DATA = TensorDataset(torch.arange(25, dtype=torch.float32).reshape(25, 1))


def drawn(sampler: BalancedSampler) -> list[list[int]]:
    return list(sampler)


def test_alone_it_is_a_plain_sampler() -> None:
    sampler = BalancedSampler(DATA, 10)
    batches = drawn(sampler)
    assert [len(batch) for batch in batches] == [10, 10, 5]
    assert sorted(chain(*batches)) == list(range(25))
    assert len(sampler) == len(DataLoader(DATA, batch_sampler=sampler)) == 3
    assert drawn(BalancedSampler(DATA, 10, shuffle=False, drop_last=True))[1] == list(range(10, 20))


def test_an_epoch_has_its_own_order_and_a_seed_too() -> None:
    sampler, other = BalancedSampler(DATA, 25), BalancedSampler(DATA, 25, seed=1)
    first = drawn(sampler)
    assert drawn(sampler) == first != drawn(other)
    sampler.set_epoch(1)
    assert drawn(sampler) != first
    with pytest.raises(ValueError, match="epoch = -1"):
        sampler.set_epoch(-1)


@pytest.mark.parametrize("workers", [0, 1])
@pytest.mark.parametrize("options", [{"batch_size": 5}, {"batch_size": 5, "drop_last": True}, {}])
def test_a_loader_that_makes_batches_of_its_batches_is_refused(options: dict[str, Any], workers: int) -> None:
    """Not even torch refuses it where all are as large: 5 of 5 samples stack."""
    sampler = BalancedSampler(DATA, 5)
    loader = DataLoader(DATA, sampler=cast(Any, sampler), num_workers=workers, **options)
    with pytest.raises(TypeError, match=r"batch_sampler=sampler\), without batch_size"):
        next(iter(loader))
    (x,) = next(iter(DataLoader(DATA, batch_sampler=sampler)))
    assert len(x) == 5  # the sampler itself is as good as before


class Columns(Dataset[Any]):
    """It takes a list of indices at once, as data sets of columns do; `asked` are the types it saw."""

    def __init__(self) -> None:
        self.asked: set[type] = set()

    def __len__(self) -> int:
        return 25

    def __getitem__(self, index: Any) -> list[int]:
        return self.__getitems__(index)

    def __getitems__(self, indices: Any) -> list[int]:
        self.asked.add(type(indices))
        return [int(one) for one in indices]


@pytest.mark.parametrize("workers", [0, 1])
def test_data_sets_that_take_lists_are_given_lists(workers: int) -> None:
    data, sampler = Columns(), BalancedSampler(DATA, 10)
    wanted = drawn(sampler)
    batched = DataLoader(data, batch_sampler=sampler, num_workers=workers, collate_fn=list)
    unbatched = DataLoader(
        data, sampler=cast(Any, sampler), batch_size=None, num_workers=workers, collate_fn=list
    )
    assert list(batched) == list(unbatched) == wanted
    assert data.asked == (set() if workers else {list})


def test_a_data_set_without_a_length_is_refused() -> None:
    with pytest.raises(TypeError, match="generator has no length"):
        BalancedSampler(cast(Any, (one for one in "abc")), 2)


def test_ranks_that_have_not_met_are_told_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("WORLD_SIZE", "3")
    with pytest.raises(RuntimeError, match="init_process_group"):
        BalancedSampler(DATA, 10)


@pytest.mark.parametrize("workers", [0, 2])
def test_it_goes_on_where_the_loop_was_not_the_loader(workers: int) -> None:
    model = torch.nn.Linear(1, 1)
    optimizer = torch.optim.SGD(model.parameters(), lr=0.0)
    data = TensorDataset(torch.arange(40, dtype=torch.float32).reshape(40, 1))
    sampler, again = BalancedSampler(data, 5), BalancedSampler(data, 5)
    seen: list[float] = []
    state: dict[str, Any] = {}
    with balance(model, optimizer, sampler):
        sampler.set_epoch(4)
        for (x,) in DataLoader(data, batch_sampler=sampler, num_workers=workers):
            torch.autograd.backward(model(x).mean())
            optimizer.step()
            seen += x.flatten().tolist()
            state = sampler.state_dict()
            if len(seen) == 15:
                break
    assert (state["epoch"], state["step"]) == (4, 3)
    again.load_state_dict(json.loads(json.dumps(state)))
    again.set_epoch(4)
    seen += chain(*drawn(again))
    assert sorted(seen) == list(range(40))
    assert again.state_dict()["epoch"] == 5
    assert [len(batch) for batch in drawn(again)] == [5] * 8


def test_what_cannot_be_gone_on_with_is_refused() -> None:
    sampler = BalancedSampler(DATA, 10)
    state = sampler.state_dict()
    with pytest.raises(ValueError, match="batch_size was 10 when the state was saved, it is 5 now"):
        BalancedSampler(DATA, 5).load_state_dict(state)
    with pytest.raises(ValueError, match=r"no state of a BalancedSampler: .* missing required field `seed`"):
        sampler.load_state_dict({name: value for name, value in state.items() if name != "seed"})
    with pytest.raises(ValueError, match=r"`float` > 0.0 - at `\$.speeds\[0\]`"):
        sampler.load_state_dict({**state, "speeds": [0.0]})
    next(iter(sampler))
    with pytest.raises(RuntimeError, match=r"known with balance\(model, optimizer\)"):
        sampler.state_dict()


@pytest.mark.parametrize("ahead", [0, 1, 4, 9])
def test_the_batch_in_hand_is_told_from_those_fetched_ahead(ahead: int) -> None:
    sampler = BalancedSampler(DATA, 5)
    deal, reached = iter(sampler), []

    def fetch() -> None:
        next(deal, None)

    for _ in range(ahead):
        fetch()
    for _ in range(5):
        fetch()
        reached += [deal.reach(), deal.reach()]  # a loop may go twice through a batch
    assert reached == [0, 0, 1, 1, 2, 2, 3, 3, 4, 4]
    assert deal.dealt == 5


def test_a_loader_drawn_from_in_another_thread_is_refused() -> None:
    sampler = BalancedSampler(DATA, 5)
    deal = iter(sampler)
    thread = Thread(target=lambda: next(deal))
    thread.start()
    thread.join()
    with pytest.raises(RuntimeError, match="in another thread than the model is trained in"):
        deal.reach()


class Odd(Ranks):
    """Beside a rank whose numpy orders samples in another way."""

    def gather(self, said: T) -> list[T]:
        other: Any = said
        return [said, replace(other, order="another")]


def test_another_permutation_is_told_before_a_sample_is_trained_twice() -> None:
    sampler = BalancedSampler(DATA, 5)
    sampler.ranks = Odd(0, 1)
    with pytest.raises(ValueError, match=r"\(numpy or edged differ\) is \w+ on rank 0 and another"):
        next(iter(sampler))


def test_a_rank_that_says_something_else_is_named() -> None:
    said = msgspec.json.encode(Said(7, 1.0, 10, 7))
    assert Ranks._read(1, said.ljust(200), Said) == Said(7, 1.0, 10, 7)
    with pytest.raises(RuntimeError, match="rank 1 is elsewhere in its loop, or has another version"):
        Ranks._read(1, b'{"terms":{}}', Said)


def test_ranks_at_different_batches_are_told_so() -> None:
    _check([Said(7, 1.0, 10, 7), Said(7, 2.0, 10, 9)])
    with pytest.raises(RuntimeError, match="rank 0 has had 7 batches, rank 1 8"):
        _check([Said(7, 1.0, 10, 7), Said(8, 1.0, 10, 8)])
