"""Batches of indices for torch's DataLoader: every sample of an epoch once over all ranks, sizes by speed.

It deals; the sizes are changed by `edged.balance.balancer`, which is also who knows how far the loop is.
"""

from __future__ import annotations

import gc
import hashlib
import sys
import warnings
from collections.abc import Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Annotated, Any, ClassVar
from weakref import WeakSet

import msgspec

from edged.balance.deal import Beginning, Deal
from edged.balance.plan import Plan, Terms
from edged.balance.ranks import Ranks
from edged.fields import Count, Natural
from edged.schedule import permutation

if TYPE_CHECKING:
    from edged.balance.balancer import Balancer


Speed = Annotated[float, msgspec.Meta(gt=0)]


class Agreement(msgspec.Struct, frozen=True):
    """What must be equal on every rank when an epoch begins."""

    terms: Terms
    shuffle: bool
    seed: int
    epoch: int
    first: int
    sizes: str
    order: str


class State(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """How far a loop is, and by which settings; the same on all ranks."""

    samples: Natural
    batch_size: Natural
    b_min: Natural
    drop_last: bool
    shuffle: bool
    seed: int
    epoch: Count
    step: Count
    speeds: tuple[Speed, ...]


class BalancedSampler:
    """A batch sampler in place of DistributedSampler and a batch size.

    `batch_size` is the samples of one step over **all** ranks: what the DataLoader was given, times the
    number of ranks. Every rank's part of it follows its speed once `balance(model, optimizer)` is called;
    without it, and alone, parts are equal. Every sample of the epoch is dealt once, to one rank: none is
    padded or doubled. The last step has the samples that are left, or these besides its own where they do not
    reach all ranks; `drop_last` leaves them out. `len()` is the steps of a whole epoch, the same on every
    rank, also after a resumption.

    `b_min` and `b_max` bound a rank's samples of a step. Raises ValueError where bounds, batch, data set and
    ranks do not fit. The first batch of an epoch is drawn by all ranks together: ValueError on all of them
    tells in what their epochs differ.

    >>> loader = DataLoader(dataset, batch_sampler=BalancedSampler(dataset, batch_size=96))  # doctest: +SKIP
    """

    # The process has one loop, as it has one default group; weak, so a sampler that is gone is not found.
    _living: ClassVar[WeakSet[BalancedSampler]] = WeakSet()

    def __init__(
        self,
        dataset: Sized,
        batch_size: int,
        *,
        shuffle: bool = True,
        seed: int = 0,
        drop_last: bool = False,
        b_min: int = 1,
        b_max: int | None = None,
    ) -> None:
        self.ranks = Ranks.here()
        try:
            samples = len(dataset)
        except TypeError:
            raise TypeError(f"{type(dataset).__name__} has no length: its samples cannot be dealt") from None
        self.terms = Terms(samples, batch_size, self.ranks.world, b_min, b_max, drop_last)
        self.shuffle, self.seed, self.epoch = shuffle, seed, 0
        self.deal: Deal | None = None
        self.speeds: tuple[float, ...] = ()
        """Samples per second of every rank; empty while sizes are equal."""
        self._first, self._warned = 0, False
        self._balancer: Balancer | None = None
        self._living.add(self)

    @classmethod
    def newest(cls) -> BalancedSampler | None:
        """The one whose epoch has begun and that nobody balances, None as long as there is no such epoch.

        Raises RuntimeError where the process has none at all, or where several may be meant.
        """
        if not cls._living:
            raise RuntimeError("there is no BalancedSampler: make one, for the DataLoader")
        if not cls.free():
            raise RuntimeError(
                "every BalancedSampler is balanced already: close() the other, or make one for this loader"
            )
        if len(cls._fresh()) > 1:
            gc.collect()  # one that is out of use lives on in a cycle with its last epoch
        begun = cls._fresh()
        if len(begun) > 1:
            raise RuntimeError(
                f"there are {len(begun)} BalancedSamplers: say which, balance(model, optimizer, sampler)"
            )
        return begun[0] if begun else None

    @classmethod
    def free(cls) -> list[BalancedSampler]:
        """Those that nobody balances."""
        return [one for one in cls._living if one._balancer is None]

    @classmethod
    def _fresh(cls) -> list[BalancedSampler]:
        return [one for one in cls.free() if one.deal is not None and one.deal.reached is None]

    def __len__(self) -> int:
        return self.terms.steps

    def __iter__(self) -> Deal:
        """Raises TypeError where torch would make batches of these batches: sampler= in place of
        batch_sampler=."""
        from torch.utils.data import BatchSampler

        # Only its caller tells: what it does with the indices is also done where they are used as meant.
        if sys._getframe(1).f_code is BatchSampler.__iter__.__code__:
            raise TypeError(
                "a BalancedSampler deals whole batches: give it as DataLoader(data, batch_sampler=sampler), "
                "without batch_size and sampler="
            )
        return Deal(self.ranks.rank, self._begin, self._fetching)

    def set_epoch(self, epoch: int) -> None:
        """Before each epoch, as with DistributedSampler: another order. The present epoch again, after
        `load_state_dict`, goes on where it was."""
        if epoch < 0:
            raise ValueError(f"epoch = {epoch}: it must be at least 0")
        if epoch != self.epoch:
            self.epoch, self._first, self.deal = epoch, 0, None

    def state_dict(self) -> dict[str, Any]:
        """Plain numbers, the same on all ranks: how far the loop is, and the speeds.

        Raises RuntimeError within an epoch without `balance(model, optimizer)`: only forward passes tell how
        far the loop is, since a DataLoader may be ahead of it.
        """
        step, deal = self._first, self.deal
        if deal is not None and deal.reached is not None:
            step = deal.reached + 1
        elif deal is not None and deal.over:
            step = self.terms.steps
        elif deal is not None and self._balancer is None:
            raise RuntimeError("how far the loop is within the epoch is known with balance(model, optimizer)")
        epoch, step = (self.epoch + 1, 0) if step == self.terms.steps else (self.epoch, step)
        state = State(**self._settings(), epoch=epoch, step=step, speeds=self.speeds)
        found: dict[str, Any] = msgspec.to_builtins(state)
        return found

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was taken, with any number of ranks: with another one sizes begin equal.

        Raises ValueError naming what is no state's, or the setting that is another one now.
        """
        try:
            saved = msgspec.convert(dict(state), State)
        except msgspec.ValidationError as error:
            raise ValueError(f"this is no state of a BalancedSampler: {error}") from None
        for name, value in self._settings().items():
            before = getattr(saved, name)
            if before != value:
                raise ValueError(f"{name} was {before!r} when the state was saved, it is {value!r} now")
        self.speeds = saved.speeds if len(saved.speeds) == self.ranks.world else ()
        self.epoch, self._first, self.deal = saved.epoch, saved.step, None
        if self._balancer is not None:
            self._balancer.resized()

    def pair(self, balancer: Balancer) -> None:
        """From now on that one is told of fetches and changes sizes. Raises RuntimeError for a second."""
        if self._balancer is not None:
            raise RuntimeError("this sampler is balanced already: close() the other")
        self._balancer = balancer

    def part(self) -> None:
        """Nobody is told any more."""
        self._balancer = None

    def change(self, step: int, speeds: Sequence[float]) -> None:
        """Sizes by these speeds from the epoch's step on, and in later epochs; equal on all ranks."""
        self.speeds = tuple(speeds)
        if self.deal is not None:
            self.deal.plan.change(step, speeds)

    def _begin(self, deal: Deal) -> Beginning:
        import numpy as np

        before = self.deal
        if before is not None and (before.reached is not None or before.over):
            self._first = 0  # the pass that began there is done, or was left
        size = self.terms.samples
        order = permutation(self.seed, self.epoch, size) if self.shuffle else np.arange(size, dtype=np.int64)
        plan = Plan(self.terms, self.speeds)
        sizes, digest = _digest(bytes(str(plan.sizes(0)), "ascii")), _digest(order.tobytes())
        self._agree(Agreement(self.terms, self.shuffle, self.seed, self.epoch, self._first, sizes, digest))
        if before is not None and before.over and self._balancer is None and self.ranks.world > 1:
            self._warn_once()
        self.deal = deal
        return Beginning(plan, order, self._first)

    def _warn_once(self) -> None:
        if not self._warned and self.ranks.rank == 0:
            self._warned = True
            warnings.warn(
                "no balance(model, optimizer) uses this BalancedSampler: its batches stay equal", stacklevel=2
            )

    def _fetching(self) -> None:
        if self._balancer is not None:
            self._balancer.fetching()

    def _settings(self) -> dict[str, Any]:
        terms = self.terms
        return {
            "samples": terms.samples,
            "batch_size": terms.batch,
            "b_min": terms.b_min,
            "drop_last": terms.drop_last,
            "shuffle": self.shuffle,
            "seed": self.seed,
        }

    def _agree(self, mine: Agreement) -> None:
        said = self.ranks.gather(mine)
        theirs = [{**msgspec.to_builtins(one), **msgspec.to_builtins(one.terms)} for one in said]
        for name in [*msgspec.to_builtins(mine.terms), "shuffle", "seed", "epoch", "first", "sizes", "order"]:
            for rank, one in enumerate(theirs):
                if one[name] != theirs[0][name]:
                    raise ValueError(
                        f"ranks do not deal the same epoch: {_WORDS.get(name, name)} is {theirs[0][name]} on "
                        f"rank 0 and {one[name]} on rank {rank}"
                    )


def _digest(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()[:12]


_WORDS = {
    "samples": "the data set's length",
    "batch": "batch_size",
    "epoch": "the epoch (set_epoch)",
    "first": "the step to go on from (load_state_dict)",
    "sizes": "the digest of the first step's sizes (load_state_dict)",
    "order": "the digest of the permutation (numpy or edged differ)",
}
