"""How many samples fit into memory: found by a child under a real limit, kept, heeded by the coach."""

import shutil
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from edged import dealing
from edged.groups import Stepwise
from edged.messages import Train
from edged.sacrifice import MARGIN, bound, of_memory, sizes
from edged.sizing import Size, Sizing, control_groups, needed
from tests.edged.test_ranks_agent import Supervised, rank_order

TASK = """
import msgspec
from edged.tasks import Data, Defaults, OtherPoolError

NAME = "heavy"
SUMMARY = "samples that take memory and no time"
DEFAULTS = Defaults(batch=4, learning_rate=0.1)

class Options(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    megabytes: int = 16

def model(options, seed):
    import torch
    return torch.nn.Linear(1, 1)

def inspect(folder):
    raise OtherPoolError("not mine")

def load(folder, options):
    import numpy as np
    if not folder.is_dir():
        raise ValueError("no such pool")
    return Data(*[np.full(100, options.megabytes)] * 4)

def batch(data, indices):
    import torch
    return (torch.ones(len(indices), int(data.inputs[0]) * 250_000),)

def loss_sum(model, batch):
    return (batch[0] * model.weight.sum()).sum(), {}

def evaluate(model, data, max_samples=None):
    return {"loss": 1.0, "samples": 1.0}
"""
LIMIT_BYTES = 600_000_000
"""Torch alone takes 250 MB of private memory."""


def order(most: int, **changes: Any) -> Train:
    """Of ranks that have so many samples in a step together."""
    return replace(rank_order(), **{"batch": most, "batches": (1,), **changes})


def found(sizing: Sizing) -> Size:
    until = time.monotonic() + 120
    while (size := sizing.found()) is None:
        assert time.monotonic() < until
        time.sleep(0.02)
    return size


@pytest.mark.parametrize(
    ("known", "upto", "tried"),
    [(0, 1, [1]), (0, 20, [1, 2, 4, 8, 16, 20]), (4, 20, [8, 16, 20]), (0, 16, [1, 2, 4, 8, 16]), (8, 8, [])],
)
def test_sizes_are_doubled_up_to_what_is_needed(known: int, upto: int, tried: list[int]) -> None:
    assert list(sizes(known, upto)) == tried


@pytest.mark.parametrize(
    ("free", "inherited", "limit"),
    [(1000, -1, 500 + MARGIN * 1000), (1000, 900, 500 + MARGIN * 400), (1000, 400, 500), (0, -1, 500)],
)
def test_a_child_may_take_a_part_of_what_is_free(free: int, inherited: int, limit: float) -> None:
    assert bound(500, free, inherited) == limit


def test_only_what_torch_says_of_memory_counts_as_memory() -> None:
    assert of_memory(
        RuntimeError("[enforce fail at alloc_cpu.cpp:127] DefaultCPUAllocator: not enough memory: you tried")
    )
    assert of_memory(
        RuntimeError("DefaultCPUAllocator: can't allocate memory: you tried to allocate 9 bytes")
    )
    assert not of_memory(RuntimeError("mat1 and mat2 shapes cannot be multiplied"))


def test_the_narrowest_limit_of_all_control_groups_above_is_seen(tmp_path: Path) -> None:
    mine, inner = tmp_path / "cgroup", tmp_path / "a" / "b"
    inner.mkdir(parents=True)
    mine.write_text("0::/a/b\n")
    (inner / "memory.max").write_text("max\n")
    (inner / "memory.current").write_text("7\n")
    (tmp_path / "a" / "memory.max").write_text("1000\n")
    (tmp_path / "a" / "memory.current").write_text("300\n")
    assert control_groups(tmp_path, mine) == [(1000, 300)]
    assert control_groups(tmp_path, tmp_path / "none") == []


def test_a_rank_may_get_its_largest_batch_or_what_others_leave() -> None:
    assert dealing.most_in_a_step(order(20, batches=(8, 9))) == 9
    assert needed(order(20, batches=(8, 9))) == 20
    group = rank_order().rendezvous
    assert group is not None
    rule = replace(group, stepwise=Stepwise("omnilearn", 5, 0.5))
    assert dealing.most_in_a_step(replace(rank_order(), rendezvous=rule)) == 10 - 1


@pytest.mark.parametrize(
    ("size", "most", "parts"),
    [(7, None, [7]), (7, 7, [7]), (7, 3, [3, 2, 2]), (7, 1, [1] * 7), (8, 3, [3, 3, 2]), (0, 3, [])],
)
def test_a_batch_is_cut_evenly(size: int, most: int | None, parts: list[int]) -> None:
    assert dealing.cut_evenly(size, most) == parts


@pytest.mark.slow
def test_a_child_under_a_real_limit_finds_what_fits_and_the_answer_is_kept(tmp_path: Path) -> None:
    """Side by side: samples of 16 MB, a sample that cannot fit, more memory than is needed, and no pool."""
    if shutil.which("prlimit") is None:
        pytest.skip("prlimit (util-linux) is not installed")
    (tmp_path / "heavy.py").write_text(TASK)
    limited = ("prlimit", f"--data={LIMIT_BYTES}", sys.executable, "-m", "edged.sacrifice")
    heavy = order(64, task="heavy", options={"megabytes": 16})
    asked = {
        "fits": (heavy, tmp_path),
        "huge": (replace(heavy, options={"megabytes": 1000}), tmp_path),
        "small": (replace(heavy, options={"megabytes": 1}, batch=5), tmp_path),
        "no pool": (replace(heavy, options={"megabytes": 2}), tmp_path / "none"),
    }
    sizings = {name: Sizing(tmp_path / f"{name}.json", limited) for name in asked}
    for name, (one, pool) in asked.items():
        assert sizings[name].size(one) is None
        sizings[name].begin(one, str(pool), (str(tmp_path),), 1)
    fits = found(sizings["fits"])
    assert fits.most
    assert 2 <= fits.samples <= LIMIT_BYTES / 16e6
    assert found(sizings["huge"]) == Size(0, True)
    assert found(sizings["small"]) == Size(5, False)
    assert found(sizings["no pool"]) == Size(0, False)
    assert sizings["no pool"].fault() == "ValueError: no such pool"

    again = Sizing(tmp_path / "fits.json")
    assert again.size(replace(heavy, batch=999)) == fits
    assert again.size(replace(heavy, optimizer="adam")) is None
    small = asked["small"][0]
    assert Sizing(tmp_path / "small.json").size(small) == Size(5, False)
    assert Sizing(tmp_path / "small.json").size(replace(small, batch=6)) is None


def said(*words: str, end: str = "exit 0") -> tuple[str, ...]:
    """A child of few words."""
    return ("sh", "-c", f"cat > /dev/null; printf '%s\\n' {' '.join(repr(word) for word in words)}; {end}")


FITS = '{"word":"fits","samples":%d}'


@pytest.mark.parametrize(
    ("command", "size"),
    [
        (said(FITS % 1, FITS % 2, end="kill -9 $$"), Size(2, True)),
        (said(FITS % 1, FITS % 2, '{"word":"full"}'), Size(2, True)),
        (said("", end="kill -9 $$"), Size(0, True)),
        (said(FITS % 1, end="kill -4 $$"), Size(1, False)),
        (said("{torn"), Size(0, False)),
        (said(FITS % 4, end="kill -9 $$"), Size(4, False)),
    ],
)
def test_the_last_size_stands_however_the_child_ends(
    tmp_path: Path, command: tuple[str, ...], size: Size
) -> None:
    sizing = Sizing(tmp_path / "sizes.json", command)
    sizing.begin(order(4), "builtin", (), None)
    assert found(sizing) == size


def coached(tmp_path: Path, command: tuple[str, ...], micro_batch: int | None = None) -> Supervised:
    made = Supervised(
        tmp_path, known=True, sizing=Sizing(tmp_path / "sizes.json", command), micro=micro_batch
    )
    made.coach.train(order(4))
    return made


def tended(told: Supervised) -> None:
    until = time.monotonic() + 60
    while told.child.pid is None and not told.failures:
        assert time.monotonic() < until
        told.coach.tend(told.desk.at(1))
        time.sleep(0.02)


def test_the_first_order_of_a_task_is_tried_before_it_is_trained(tmp_path: Path) -> None:
    told = coached(tmp_path, said(FITS % 2, '{"word":"full"}'))
    assert told.child.pid is None
    assert not told.coach.holding  # the board computes: these are no watts of waiting
    tended(told)
    assert told.jobs == [2]
    told.child.kill()
    told.coach.train(order(4))  # known by now
    assert told.jobs == [2, 2]
    told.child.kill()


def test_a_single_sample_that_does_not_fit_is_named_and_never_trained(tmp_path: Path) -> None:
    told = coached(tmp_path, said("", end="kill -9 $$"))
    tended(told)
    assert told.failures == ["a single sample of task digits does not fit into its memory to be trained on"]
    assert told.child.pid is None


def test_an_order_that_is_taken_back_is_not_tried_on(tmp_path: Path) -> None:
    told = coached(tmp_path, ("sleep", "100"))
    told.coach.cancel(rank_order().order)
    told.coach.tend(told.desk.at(1))
    assert told.child.pid is None
    assert not told.failures


@pytest.mark.parametrize(("given", "job"), [(8, 8), (None, None)])
def test_a_size_that_the_owner_names_is_believed(tmp_path: Path, given: int | None, job: int | None) -> None:
    told = coached(tmp_path, said(FITS % 4), given)
    tended(told)
    assert told.jobs == [job]
    told.child.kill()
