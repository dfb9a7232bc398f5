"""Sizes of a loop's batches by measured speed, and gradients that stay the mean over the global batch.

It hooks into a model and an optimizer and leaves the loop as it is; which sizes follow from which times is
`edged.stepwise`'s, who trains what `edged.balance.plan`'s.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from types import TracebackType
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakSet, ref

from msgspec.structs import replace

from edged.balance.deal import Deal
from edged.balance.joules import Joules
from edged.balance.plan import Plan
from edged.balance.ranks import Ranks
from edged.balance.report import Rank, Report, Said
from edged.balance.sampler import BalancedSampler
from edged.balance.watch import Watch
from edged.groups import Stepwise
from edged.stepwise import Adjuster

if TYPE_CHECKING:
    import torch

RULE = "omnilearn"
FIRST = 5
"""Measured steps before the first exchange: equal sizes are the worst ones."""
SETTLE = 2
"""Steps that are not measured at the start and after a change: caches, allocators, kernels of new shapes."""


class Balancer:
    """What `balance` returns; a context that ends with `close`."""

    # Weak: hooks of the model and the optimizer keep it, as long as there are these.
    _open: ClassVar[WeakSet[Balancer]] = WeakSet()

    def __init__(
        self,
        model: torch.nn.Module,
        optimizer: torch.optim.Optimizer,
        sampler: BalancedSampler | None,
        *,
        ranks: Ranks,
        rule: Stepwise,
        joules: Joules | None,
        watch: Watch,
    ) -> None:
        self.weight = 1.0
        """b_k K / B of the batch in hand. A mean loss times it, averaged over the ranks, is the mean over the
        global batch: for logs, since gradients have it already."""
        self._sampler: BalancedSampler | None = None
        self._ranks, self._rule = ranks, rule
        self._joules, self._watch = joules, watch
        self._adjuster: Adjuster | None = None
        self._place: tuple[Deal, int] | None = None
        self._size = 0
        self._gradients = self._warned = False
        self._batches = self._changes = self._exchanges = 0
        self._unmeasured, self._measured = SETTLE, 0
        self._seconds, self._samples = 0.0, 0
        self._said: list[Said] = []
        if sampler is not None:
            self._pair(sampler)
        parameters: list[Any] = [one for one in model.parameters() if one.requires_grad]
        self._hooks: list[Any] = [
            model.register_forward_pre_hook(self._forward, with_kwargs=True),
            optimizer.register_step_post_hook(self._stepped),
            *(one.register_hook(self._weigh) for one in parameters),
        ]
        self._model, self._optimizer = ref(model), ref(optimizer)
        self._open.add(self)

    @classmethod
    def balanced(cls, model: torch.nn.Module, optimizer: torch.optim.Optimizer) -> str:
        """Which of the two a balance has that is not closed, "" for neither: gradients of both would be
        weighted twice."""
        if any(one._model() is model for one in cls._open):
            return "model"
        return "optimizer" if any(one._optimizer() is optimizer for one in cls._open) else ""

    def __enter__(self) -> Balancer:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Take the hooks off: from then on gradients are what plain DDP makes of them, and sizes stay."""
        for hook in self._hooks:
            hook.remove()
        self._hooks = []
        self._open.discard(self)
        if self._adjuster is not None and self._sampler is not None:
            self._sampler.part()
            self._adjuster = None
        if self._joules is not None:
            self._joules.close()

    def report(self) -> Report:
        """As of the last exchange. Not collective: one rank may print it alone. Raises RuntimeError before
        the first batch."""
        if self._sampler is None or not self._batches:
            raise RuntimeError("there is nothing to report yet: no batch was trained")
        terms, ranks = self._sampler.terms, []
        for rank, size in enumerate(Plan(terms, self._sampler.speeds).sizes(0)):
            said = self._said[rank] if self._said else None
            tau = None if said is None else said.seconds / said.samples
            ranks.append(Rank(rank, size, tau, None if said is None else said.energy))
        return Report(terms.batch, self._batches, self._changes, tuple(ranks))

    def fetching(self) -> None:
        """The sampler tells that a batch is being fetched."""
        self._watch.fetch()

    def resized(self) -> None:
        """The sampler tells that its sizes are other ones: what was measured says nothing of them."""
        assert self._sampler is not None
        terms = self._sampler.terms
        rule = replace(self._rule, lower=terms.b_min, upper=terms.b_max)
        self._adjuster = Adjuster(rule, Plan(terms, self._sampler.speeds).sizes(0))
        self._place, self._gradients = None, False
        self._unmeasured, self._measured = SETTLE, 0
        self._seconds, self._samples = 0.0, 0

    def _pair(self, sampler: BalancedSampler) -> None:
        sampler.pair(self)
        self._sampler = sampler
        self.resized()

    def _forward(self, module: torch.nn.Module, given: tuple[object, ...], named: dict[str, object]) -> None:
        import torch

        if not module.training or not torch.is_grad_enabled():
            return
        if self._sampler is None and (newest := BalancedSampler.newest()) is not None:
            self._pair(newest)
        deal = None if self._sampler is None else self._sampler.deal
        step = None if deal is None else deal.reach()
        if self._place != (deal, step):
            self._book()
        if deal is None or step is None:
            # No batch of an epoch is in hand: what plain DDP does is right, and nothing is measured.
            self._place, self.weight = None, 1.0
            return
        if self._place != (deal, step):
            self._watch.forward()
            self._place = deal, step
            self._batches += 1
        self._size = deal.plan.sizes(step)[self._ranks.rank]
        self._compare([*given, *named.values()])
        self.weight = deal.plan.weight(step, self._ranks.rank)

    def _compare(self, inputs: Sequence[object]) -> None:
        """Weights go by the batch that is taken to be in hand; a loop may do what nobody thought of."""
        import torch

        rows = next((len(one) for one in inputs if isinstance(one, torch.Tensor) and one.dim()), self._size)
        if rows != self._size and not self._warned:
            self._warned = True
            warnings.warn(
                f"the model is given {rows} rows of a batch of {self._size} samples: gradients are weighted "
                f"by the batch, which is right where rows are no samples, wrong where batches are skipped",
                stacklevel=2,
            )

    def _weigh(self, gradient: torch.Tensor) -> torch.Tensor | None:
        """One parameter's, before it is added to those of earlier batches and handed to DDP: so each of
        several accumulated batches has its own weight."""
        if self._place is not None:
            self._gradients = True
            self._watch.gradient()
        return None if self.weight == 1.0 else gradient * self.weight

    def _stepped(self, _optimizer: object, _arguments: object, _keywords: object) -> None:
        """All ranks have just waited for each other: an exchange costs the least now."""
        self._book()
        due = self._rule.every if self._exchanges else min(FIRST, self._rule.every)
        if self._measured >= due and self._place is not None:
            self._exchange(*self._place)

    def _book(self) -> None:
        """The batch in hand is done, if it had gradients."""
        if not self._gradients:
            return
        self._gradients = False
        if self._unmeasured > 0:
            self._unmeasured -= 1
            return
        self._seconds += self._watch.seconds()
        self._samples += self._size
        self._measured += 1

    def _exchange(self, deal: Deal, step: int) -> None:
        assert self._sampler is not None
        assert self._adjuster is not None
        energy = None if self._joules is None else self._joules.read()
        said = self._ranks.gather(Said(self._batches, self._seconds, self._samples, deal.dealt, energy))
        _check(said)
        self._said, self._exchanges = said, self._exchanges + 1
        self._measured, self._seconds, self._samples = 0, 0.0, 0
        if not self._adjuster.hear([one.seconds for one in said], [one.samples for one in said]):
            return
        speeds, terms = self._adjuster.speeds or (), deal.plan.terms
        if Plan(terms, speeds).sizes(0) == Plan(terms, self._sampler.speeds).sizes(0):
            return
        # What any rank's DataLoader has been dealt already stays, however far each fetches ahead; the first
        # step that none has is the same for all.
        first = max(one.dealt for one in said)
        self._sampler.change(first, speeds)
        self._changes += 1
        self._unmeasured = first - step - 1 + SETTLE


def _check(said: Sequence[Said]) -> None:
    for rank, one in enumerate(said):
        if one.batches != said[0].batches:
            raise RuntimeError(
                f"the ranks' loops are out of step: rank 0 has had {said[0].batches} batches, "
                f"rank {rank} {one.batches}"
            )
