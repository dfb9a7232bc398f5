"""`balance`: looks whether a model, an optimizer and options can be balanced, and makes the balancer.

It hooks into nothing itself.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING

from edged.balance.balancer import RULE, Balancer
from edged.balance.joules import Joules
from edged.balance.ranks import Ranks
from edged.balance.sampler import BalancedSampler
from edged.balance.watch import Watch, watch_for
from edged.groups import Stepwise

if TYPE_CHECKING:
    import torch

    from probes.meter import Meter


def balance(
    model: torch.nn.Module,
    optimizer: torch.optim.Optimizer,
    sampler: BalancedSampler | None = None,
    *,
    every: int = 20,
    deadband: float = 0.05,
    beta: float = 0.5,
    joules: bool | Meter = False,
    watch: Watch | None = None,
) -> Balancer:
    """Let this rank's batches follow its speed, and weight its gradients so that every step is the mean
    over the global batch. Call it on every rank, after DistributedDataParallel and the optimizer are made.

    The loss has to be the mean over the local batch, with one forward before its backward pass. `sampler` is
    the process's BalancedSampler, to be named where there are several. Every `every` steps ranks tell each
    other their compute times; sizes change once one of them is off by more than `deadband` (a share of it),
    by times averaged since the last change with `beta` for the newest. `joules` measures this machine's
    energy (True, or a running `probes.meter.Meter`); `watch` takes the times, by default by the model's
    device. It lasts until `close()`, or the end of a `with`.

    Raises TypeError for a model without DistributedDataParallel among several ranks and for what is no
    optimizer; ValueError for an optimizer of other parameters and for options out of range; RuntimeError for
    a model, an optimizer or a sampler that another balance has. Warns of BatchNorm.

    >>> with balance(model, optimizer) as balancer:  # doctest: +SKIP
    ...     train(model, loader, optimizer)
    ...     print(balancer.report())
    """
    from torch.nn.parallel import DistributedDataParallel
    from torch.optim import Optimizer

    ranks = Ranks.here()
    if ranks.world > 1 and not isinstance(model, DistributedDataParallel):
        raise TypeError(
            f"{type(model).__name__} does not exchange gradients with the other {ranks.world - 1} ranks: "
            f"give balance() the model that DistributedDataParallel(model) returned"
        )
    if not isinstance(optimizer, Optimizer):
        raise TypeError(f"{type(optimizer).__name__} is no torch.optim.Optimizer")
    own = {id(one) for one in model.parameters()}
    if not any(id(one) in own for group in optimizer.param_groups for one in group["params"]):
        raise ValueError("the optimizer has none of the model's parameters")
    if every < 1 or not 0 <= deadband < 1 or not 0 < beta <= 1:
        raise ValueError(
            f"every = {every}, deadband = {deadband}, beta = {beta}: every must be at least 1, deadband at "
            f"least 0 and below 1, beta above 0 and at most 1"
        )
    if again := Balancer.balanced(model, optimizer):
        raise RuntimeError(
            f"this {again} is balanced already: close() the other, which the first balance() returned"
        )
    _warn_of_batch_norm(model, ranks, sampler)
    return Balancer(
        model,
        optimizer,
        sampler,
        ranks=ranks,
        rule=Stepwise(RULE, every, beta, deadband),
        joules=None if joules is False else Joules(None if joules is True else joules),
        watch=watch or watch_for(model),
    )


def _warn_of_batch_norm(model: torch.nn.Module, ranks: Ranks, sampler: BalancedSampler | None) -> None:
    from torch.nn import SyncBatchNorm
    from torch.nn.modules.batchnorm import _BatchNorm

    if ranks.world == 1 or ranks.rank > 0:
        return
    for name, one in model.named_modules():
        if isinstance(one, _BatchNorm) and not isinstance(one, SyncBatchNorm):
            warnings.warn(
                f"{name} is BatchNorm, which normalises by each rank's own batch: the step is not exactly "
                f"that of the global batch (with GroupNorm, LayerNorm or SyncBatchNorm it is)"
                f"{_fails(sampler)}",
                stacklevel=3,
            )
            return


def _fails(sampler: BalancedSampler | None) -> str:
    """What BatchNorm makes of the smallest batch, as far as it is known which sampler is meant."""
    meant = {one.terms.b_min for one in (BalancedSampler.free() if sampler is None else [sampler])}
    if meant == {1}:
        return "; with b_min = 1 a rank's batch may become one sample, on which it fails: set b_min=2"
    if len(meant) == 1:
        return ""
    return "; it fails on a batch of one sample: set BalancedSampler's b_min=2"
