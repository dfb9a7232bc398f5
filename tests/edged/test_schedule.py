"""The dealing of samples: the same everywhere, each sample once an epoch, no tail batch."""

import itertools
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from edged.messages import Piece
from edged.schedule import even_batches, indices, permutation, subseed

quick = settings(max_examples=100, deadline=None)

# Made by a second implementation in plain Python integers.
GOLDEN_0 = [2, 5, 9, 1, 8, 0, 4, 7, 3, 6]
GOLDEN_3 = [717, 1196, 1269, 601, 1415, 464, 978, 1190, 1065, 1224, 560, 1227]
GOLDEN_INIT = 5356530577125278590
GOLDEN_DROPOUT = 3966895382623956161


def test_the_permutation_is_this_one_on_every_machine() -> None:
    """Golden values: a change of them would let boards of two versions train each other's samples."""
    assert permutation(0, 0, 10).tolist() == GOLDEN_0
    assert permutation(20251130, 3, 1437)[:12].tolist() == GOLDEN_3
    assert subseed(7, "init") == GOLDEN_INIT
    assert subseed(7, "dropout", "pi4", 3) == GOLDEN_DROPOUT


@quick
@given(st.integers(0, 2**63), st.integers(0, 1000), st.integers(0, 500))
def test_an_epoch_deals_every_sample_once(seed: int, epoch: int, size: int) -> None:
    assert sorted(permutation(seed, epoch, size).tolist()) == list(range(size))


def test_epochs_and_seeds_deal_in_another_order() -> None:
    one, other_epoch, other_seed = permutation(1, 0, 1000), permutation(1, 1, 1000), permutation(2, 0, 1000)
    # By chance one place in a thousand agrees; ten is far outside that.
    assert (one == other_epoch).sum() < 10
    assert (one == other_seed).sum() < 10


def test_a_contiguous_part_is_a_fair_sample() -> None:
    """Files are often sorted by label; a board's piece must still see all labels."""
    labels = np.repeat(np.arange(10), 1000)
    piece = labels[permutation(5, 0, 10_000)[:1000]]
    assert np.bincount(piece, minlength=10).min() > 60


def test_pieces_of_two_epochs_are_laid_end_to_end() -> None:
    first, second = permutation(9, 0, 100), permutation(9, 1, 100)
    dealt = indices([Piece(0, 90, 100), Piece(1, 0, 5)], 9, 100)
    assert dealt.tolist() == [*first[90:], *second[:5]]
    assert dealt.dtype == np.int64
    assert indices([], 9, 100).tolist() == []


@quick
@given(st.lists(st.integers(0, 300), max_size=8), st.integers(0, 2**32))
def test_disjoint_pieces_give_disjoint_samples(cuts: list[int], seed: int) -> None:
    edges = sorted({0, 300, *cuts})
    dealt = [indices([Piece(2, a, b)], seed, 300) for a, b in itertools.pairwise(edges)]
    assert sorted(np.concatenate(dealt).tolist()) == list(range(300))


@pytest.mark.parametrize("piece", [Piece(0, 0, 101), Piece(0, 60, 50), Piece(0, -1, 5), Piece(-1, 0, 5)])
def test_a_piece_outside_the_pool_is_named(piece: Piece) -> None:
    with pytest.raises(
        ValueError, match=f"piece .epoch {piece.epoch}, {piece.start} to {piece.stop}. is outside"
    ):
        indices([piece], 0, 100)


@quick
@given(st.integers(0, 5000), st.integers(1, 300))
def test_batches_differ_by_at_most_one(samples: int, batch: int) -> None:
    sizes = even_batches(samples, batch)
    assert sum(sizes) == samples
    assert len(sizes) == -(-samples // batch)
    assert not sizes or (max(sizes) - min(sizes) <= 1 and min(sizes) >= 1 and max(sizes) <= batch)


def test_an_awkward_count_has_no_tail_batch() -> None:
    assert even_batches(33, 32) == [17, 16]
    assert even_batches(0, 32) == []
    with pytest.raises(ValueError, match="batches of 0"):
        even_batches(10, 0)


def test_subseeds_are_apart() -> None:
    """Neither the order of names, nor where one ends, nor a number's type may be lost."""
    seeds = {
        subseed(1, "init"),
        subseed(2, "init"),
        subseed(1, "dropout", "a", 1),
        subseed(1, "dropout", 1, "a"),
        subseed(1, "dropout", "a1"),
        subseed(1, "dropout", "a", "1"),
    }
    assert len(seeds) == 6
    assert all(0 <= seed < 2**63 for seed in seeds)


def test_the_agent_may_import_it() -> None:
    code = (
        "import sys, edged.schedule; sys.exit(any(m in sys.modules for m in ('numpy', 'torch', 'msgspec')))"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
