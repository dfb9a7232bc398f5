"""Hierarchical federated learning, a rank's half: synchronous gradients within a silo, as in `ddp`.

What differs is outside: the coordinator averages the silos' models at the end of each round.
"""

from edged.regimes.ddp import train

NAME = "hfl-ddp"
SUMMARY = "gradients are summed in every step within a silo, models of silos are averaged at round ends"

__all__ = ["NAME", "SUMMARY", "train"]
