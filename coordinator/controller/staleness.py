"""How much an asynchronous update counts, by its staleness: versions since its board fetched the model.

Pure functions of the staleness alone. A stored factor that each update multiplies again shrinks for ever, as
in one published implementation of FedAsync (ALGORITHMS 3.3).
"""

from typing import Literal

Rule = Literal["constant", "polynomial", "hinge", "dynsgd"]


def discount(staleness: int, rule: Rule, a: float = 0.5, b: float = 4.0) -> float:
    """s(u): 1 | (u + 1)^-a | 1 up to b, then 1 / (a (u - b) + 1) | DynSGD's 1 / (u + 1)."""
    if staleness < 0:
        raise ValueError(f"staleness must not be negative, not {staleness}")
    if a <= 0 or b < 0:
        raise ValueError(f"a = {a} must be above 0 and b = {b} not negative")
    if rule == "constant":
        return 1.0
    if rule == "polynomial":
        return float((staleness + 1) ** -a)
    if rule == "hinge":
        return 1.0 if staleness <= b else 1 / (a * (staleness - b) + 1)
    return 1 / (staleness + 1)


def mixing(
    staleness: int, alpha: float = 0.6, rule: Rule = "polynomial", a: float = 0.5, b: float = 4.0
) -> float:
    """FedAsync's alpha_t: the model becomes (1 - alpha_t) old + alpha_t new; afresh for each update."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha = {alpha}: it must be above 0 and at most 1")
    return alpha * discount(staleness, rule, a, b)
