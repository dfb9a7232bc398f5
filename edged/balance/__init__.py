"""Balance anybody's PyTorch loop over unlike ranks: three lines in a script that torchrun starts.

`BalancedSampler` in place of DistributedSampler and a batch size, and `balance(model, optimizer)`; no
coordinator and no MQTT (docs/balance.md).
"""

from edged.balance.balancer import Balancer
from edged.balance.entry import balance
from edged.balance.joules import Reading
from edged.balance.report import Rank, Report
from edged.balance.sampler import BalancedSampler

__all__ = ["BalancedSampler", "Balancer", "Rank", "Reading", "Report", "balance"]
