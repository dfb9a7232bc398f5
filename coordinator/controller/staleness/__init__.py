"""Staleness rules, one file each in this folder: how much an asynchronous update counts, and who waits.

The staleness of an update is the number of versions made since its board got the model. A rule is a function
of that alone, asked afresh for each update: a stored factor that every update multiplies again shrinks for
ever, as in one published implementation of FedAsync (ALGORITHMS 3.3).
"""

import functools
import importlib
import pkgutil
from collections.abc import Mapping
from typing import Any, Protocol, cast, runtime_checkable

import msgspec
from msgspec import Struct

from coordinator.wording import dotted

CONTRACT = ("NAME", "SUMMARY", "Options", "factor")


class UnknownRuleError(ValueError):
    """No rule of that name, or options that it does not have; the text names what there is."""


class Rule(Protocol):
    """One file of this folder: these names at module level."""

    NAME: str
    """As in settings: the file's name."""
    SUMMARY: str
    """One line for people: the formula and where it is from."""
    Options: type[Struct]

    def factor(self, staleness: int, boards: int, options: Any, /) -> float:
        """By how much the update is multiplied, above 0 and at most 1. `staleness` is at least 0; `boards`
        are those that take part now."""


@runtime_checkable
class Holding(Protocol):
    """What a rule has in addition under which fast boards wait."""

    def ahead(self, options: Any, /) -> int:
        """So many updates a board may be ahead of the slowest that takes part, at least 1."""


@functools.cache
def names() -> tuple[str, ...]:
    """The rules of this folder, listed once: every update looks its rule up."""
    return tuple(sorted(info.name for info in pkgutil.iter_modules(__path__)))


def find(name: str) -> Rule:
    """The rule of that name. Raises UnknownRuleError with the names there are."""
    if name not in names():
        raise UnknownRuleError(f"no staleness rule {name!r}; there are {', '.join(names())}")
    return cast(Rule, importlib.import_module(f"{__name__}.{name}"))


def options(name: str, given: Mapping[str, Any]) -> Any:
    """The rule's Options from plain values. Raises UnknownRuleError naming the option and what it may be."""
    rule = find(name)
    known = {field.name for field in msgspec.structs.fields(rule.Options)}
    unknown = sorted(given.keys() - known)
    if unknown:
        raise UnknownRuleError(
            f"staleness rule {name} has no option {', '.join(unknown)}; "
            + (f"it has {', '.join(sorted(known))}" if known else "it has none")
        )
    try:
        return msgspec.convert(dict(given), rule.Options)
    except msgspec.ValidationError as error:
        raise UnknownRuleError(f"staleness rule {name}: {dotted(str(error))}") from error


def factor(name: str, staleness: int, boards: int, given: Any) -> float:
    """The factor of one update under the rule, with checked Options. Raises ValueError."""
    if staleness < 0:
        raise ValueError(f"staleness must not be negative, not {staleness}")
    return find(name).factor(staleness, boards, given)


def ahead(name: str, given: Any) -> int | None:
    """So many updates a board may be ahead of the slowest; None where nobody waits."""
    rule = find(name)
    return rule.ahead(given) if isinstance(rule, Holding) else None


def mixing(alpha: float, factor: float) -> float:
    """FedAsync's alpha_t: the model becomes (1 - alpha_t) old + alpha_t new. Raises ValueError."""
    if not 0 < alpha <= 1:
        raise ValueError(f"alpha = {alpha}: it must be above 0 and at most 1")
    return min(1.0, alpha * factor)
