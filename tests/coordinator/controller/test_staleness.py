"""Factors of asynchronous updates depend on the staleness and on nothing that came before."""

from typing import Any

import pytest

from coordinator.controller import staleness
from coordinator.controller.staleness import UnknownRuleError, mixing

RULES = staleness.names()


def by(rule: str, age: int, boards: int = 4, **options: Any) -> float:
    return staleness.factor(rule, age, boards, staleness.options(rule, options))


def test_there_is_a_file_for_each_rule() -> None:
    assert RULES == ("consgd", "constant", "dynsgd", "hinge", "none", "polynomial", "ssp")


@pytest.mark.parametrize("name", RULES)
def test_a_rule_keeps_the_contract(name: str) -> None:
    rule = staleness.find(name)
    assert all(hasattr(rule, part) for part in staleness.CONTRACT)
    assert name == rule.NAME
    assert rule.SUMMARY
    given = staleness.options(name, {})
    found = [staleness.factor(name, age, boards, given) for age in range(200) for boards in (1, 3, 50)]
    assert all(0 < value <= 1 for value in found)
    ages = [staleness.factor(name, age, 3, given) for age in range(200)]
    assert ages == sorted(ages, reverse=True)
    with pytest.raises(UnknownRuleError, match=f"{name} has no option speed"):
        staleness.options(name, {"speed": 1})
    with pytest.raises(ValueError, match="must not be negative, not -1"):
        staleness.factor(name, -1, 3, given)


@pytest.mark.parametrize(
    ("rule", "age", "options", "expected"),
    [
        ("none", 9, {}, 1.0),
        ("constant", 9, {}, 1.0),
        ("polynomial", 0, {}, 1.0),
        ("polynomial", 3, {}, 0.5),
        ("polynomial", 3, {"a": 1.0}, 0.25),
        ("hinge", 4, {}, 1.0),
        ("hinge", 6, {}, 0.5),
        ("hinge", 2, {"a": 1.0, "b": 0}, 1 / 3),
        ("dynsgd", 0, {}, 1.0),
        ("dynsgd", 3, {}, 0.25),
        ("consgd", 7, {}, 0.25),
        ("consgd", 7, {"constant": 0.3}, 0.3),
        ("ssp", 7, {}, 1.0),
    ],
)
def test_factors(rule: str, age: int, options: dict[str, Any], expected: float) -> None:
    assert by(rule, age, **options) == pytest.approx(expected)


@pytest.mark.parametrize("rule", RULES)
def test_the_factor_is_the_same_after_a_hundred_equal_updates(rule: str) -> None:
    """Plato multiplies the stored factor by s at each update, so that it shrinks for ever."""
    first = mixing(0.6, by(rule, 3))
    assert [mixing(0.6, by(rule, 3)) for _ in range(100)] == [first] * 100


def test_fedasyncs_mixing_at_a_staleness_of_three() -> None:
    assert mixing(0.6, by("polynomial", 3)) == pytest.approx(0.3)


def test_only_bounded_staleness_makes_boards_wait() -> None:
    waits = {rule: staleness.ahead(rule, staleness.options(rule, {})) for rule in RULES}
    assert {rule: found for rule, found in waits.items() if found is not None} == {"ssp": 3}
    assert staleness.ahead("ssp", staleness.options("ssp", {"ahead": 1})) == 1


@pytest.mark.parametrize(
    ("rule", "options", "text"),
    [
        ("fresh", {}, "no staleness rule 'fresh'; there are consgd, constant"),
        ("polynomial", {"a": 0}, "a = 0.0: it must be above 0"),
        ("polynomial", {"a": "much"}, "polynomial: a: Expected `float`, got `str`"),
        ("hinge", {"b": -1}, "b = -1.0: it must not be negative"),
        ("consgd", {"constant": 2}, "constant = 2.0: it must be above 0 and at most 1"),
        ("ssp", {"ahead": 0}, "ahead = 0: it must be at least 1"),
    ],
)
def test_what_cannot_be_is_refused(rule: str, options: dict[str, Any], text: str) -> None:
    with pytest.raises(UnknownRuleError) as told:
        staleness.options(rule, options)
    assert text in str(told.value)


def test_a_mixing_factor_above_one_is_refused() -> None:
    with pytest.raises(ValueError, match=r"alpha = 1.5"):
        mixing(1.5, 1.0)
    assert mixing(0.9, 2.0) == 1.0
